// Package peertest finds a live Redisson for tests. Without the Java program a test is skipped, or fails
// with CI=true or REDLATCH_COMPAT=1.
package peertest

import (
	"os"
	"testing"

	"github.com/redlatch/redlatch/internal/test/peer"
)

// Look returns the program with a release of Redisson. root is the folder of the module. A missing program
// is an error, or fails the test if it is required.
func Look(tb testing.TB, root, release string) (peer.Program, error) {
	tb.Helper()
	program, err := peer.Find(root, release)
	if err != nil && (os.Getenv("CI") == "true" || os.Getenv("REDLATCH_COMPAT") == "1") {
		tb.Fatal(err)
	}
	return program, err
}

// Find is Look for tests that need the program. Without it they are skipped; loss is what they miss.
func Find(tb testing.TB, root, release, loss string) peer.Program {
	tb.Helper()
	program, err := Look(tb, root, release)
	if err != nil {
		tb.Skipf("%s: %v", loss, err)
	}
	return program
}

// Start starts the program until the end of the test. If the test fails, it logs the program's stderr.
func Start(tb testing.TB, program peer.Program) *peer.Peer {
	tb.Helper()
	p, err := peer.Start(program)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		p.Close()
		if tb.Failed() {
			tb.Logf("the Redisson peer's complaints:\n%s", p.Stderr())
		}
	})
	return p
}
