// Package testlevel selects the tests that are only run by `make test-all` and in CI, which set REDLATCH_TEST=all.
// Other runs skip them or use fewer rounds. The flag -short is for machines without a Redis server.
package testlevel

import (
	"os"
	"testing"
)

// Env is the environment variable for the level. Its value is all or empty.
const Env = "REDLATCH_TEST"

// Left is the prefix of the messages with which All skips tests. In a run of all tests, test/testrun rejects them.
const Left = "left to make test-all: "

// NotWithRace is the prefix of the messages with which NoRace skips tests. test/testrun -all runs these tests without
// the race detector.
const NotWithRace = "not with the race detector: "

// OneGoroutine is a reason for NoRace.
const OneGoroutine = "it shares nothing between goroutines, and would take half as long again"

// All skips the test unless all tests are run. The argument why says what the test costs.
func All(tb testing.TB, why string) {
	tb.Helper()
	if !IsAll() {
		tb.Skip(Left + why)
	}
	if testing.Short() {
		tb.Skip("-short: " + why)
	}
}

// NoRace skips the test if the race detector is enabled.
func NoRace(tb testing.TB, why string) {
	tb.Helper()
	if Race {
		tb.Skip(NotWithRace + why)
	}
}

// Rounds returns all if all tests are run, and otherwise quick.
func Rounds(quick, all int) int {
	if IsAll() {
		return all
	}
	return quick
}

// Part returns all if all tests are run, and otherwise every step-th element, but at least one. The length of name
// determines the first element.
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

// IsAll reports whether all tests are run. It panics if the level is unknown.
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

// Drawn hides the test binary's deadline from rapid.Check, which otherwise passes after only a few tries when the
// deadline is near.
type Drawn struct{ *testing.T }
