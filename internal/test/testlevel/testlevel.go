// Package testlevel chooses the tests that only `make test-all` and CI (REDLATCH_TEST=all) run: others skip them or run
// fewer rounds. -short means a machine without a server.
package testlevel

import (
	"os"
	"testing"
)

// Env is the environment variable of the level: all or empty.
const Env = "REDLATCH_TEST"

// Left starts the reason of each test that All skips: test/testrun fails on it in a run of all tests.
const Left = "left to make test-all: "

// NotWithRace starts the reason of each test that NoRace skips: test/testrun -all runs them without the race detector.
const NotWithRace = "not with the race detector: "

// OneGoroutine is a reason for NoRace.
const OneGoroutine = "it shares nothing between goroutines, and would take half as long again"

// All skips the test unless all tests run. why is its cost.
func All(tb testing.TB, why string) {
	tb.Helper()
	if !IsAll() {
		tb.Skip(Left + why)
	}
	if testing.Short() {
		tb.Skip("-short: " + why)
	}
}

// NoRace skips the test in a binary with the race detector.
func NoRace(tb testing.TB, why string) {
	tb.Helper()
	if Race {
		tb.Skip(NotWithRace + why)
	}
}

// Rounds returns all if all tests run, and otherwise quick.
func Rounds(quick, all int) int {
	if IsAll() {
		return all
	}
	return quick
}

// Part returns all if all tests run, and otherwise every step-th element, at least one. The length of name selects the
// first.
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

// IsAll reports whether all tests run. It panics on an unknown level, which would skip tests.
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

// Drawn hides the test binary's deadline from rapid.Check, which would pass with few tries near it.
type Drawn struct{ *testing.T }
