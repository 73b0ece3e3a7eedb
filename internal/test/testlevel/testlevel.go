// Package testlevel says which tests are left to `make test-all`.
//
// `make test` is to take three minutes on two processors. What needs a Java machine, a
// cluster, much load, many seconds of a real lease or many rounds is left out of it or runs
// fewer rounds. `make test-all` sets REDLATCH_TEST=all: then all of it runs, and so it does
// in CI. Nothing else decides this: there are no build tags, and -short keeps its meaning,
// which is a machine without a server.
package testlevel

import (
	"os"
	"testing"
)

// Env is the environment variable that chooses the level: all, or nothing.
const Env = "REDLATCH_TEST"

// Left begins the reason of each test that All skips. test/testrun fails when it sees it
// in a run of all tests.
const Left = "left to make test-all: "

// NotWithRace begins the reason of each test that NoRace skips. test/testrun runs those again
// without the race detector, where all tests run.
const NotWithRace = "not with the race detector: "

// OneGoroutine is why NoRace skips a test that takes long: the race detector has nothing to find.
const OneGoroutine = "it shares nothing between goroutines, and would take half as long again"

// All skips the test unless all tests are to run; why says what it costs. Under -short it
// skips too.
func All(tb testing.TB, why string) {
	tb.Helper()
	if !IsAll() {
		tb.Skip(Left + why)
	}
	if testing.Short() {
		tb.Skip("-short: " + why)
	}
}

// NoRace skips the test in a binary with the race detector: that disturbs it, or finds nothing in
// it and makes it last much longer; why says which.
func NoRace(tb testing.TB, why string) {
	tb.Helper()
	if race {
		tb.Skip(NotWithRace + why)
	}
}

// Rounds is how many rounds a test takes, which costs time and adds certainty: quick in
// make test, all where all tests run.
func Rounds(quick, all int) int {
	if IsAll() {
		return all
	}
	return quick
}

// Part is what a test tries of all, where each costs time and adds certainty: in make test every
// step-th, one at least, beginning where the length of name decides, so that the parts of several
// tests differ; all where all tests run.
func Part[T any](all []T, step int, name string) []T {
	if IsAll() || len(all) == 0 {
		return all
	}
	var part []T
	for i := len(name) % min(step, len(all)); i < len(all); i += step {
		part = append(part, all[i])
	}
	return part
}

// IsAll reports whether all tests are to run. It panics when the variable has another value: a
// misspelt one would leave tests out.
func IsAll() bool {
	switch level := os.Getenv(Env); level {
	case "":
		return false
	case "all":
		return true
	default:
		panic(Env + "=" + level + ": it is all, or not set")
	}
}

// Drawn is a test for rapid.Check, which then draws as many sequences as it says. Of a bare
// *testing.T it would ask when the package's time is over, and end early, and pass, when that is
// near: on a slow machine, with hardly anything tried.
type Drawn struct{ *testing.T }
