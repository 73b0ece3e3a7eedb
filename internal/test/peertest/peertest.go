// Package peertest gives tests a live Redisson, or the reason why there is none.
//
// A test that needs one is skipped on a machine without the Java program, so that Go alone
// is enough to work here. Where it is required (CI=true, or REDLATCH_COMPAT=1) that is a
// failure: otherwise nothing would be compared, and the skip would go unnoticed.
package peertest

import (
	"os"
	"testing"

	"github.com/redlatch/redlatch/internal/test/peer"
)

// Look returns the program with a release of Redisson, below root, the folder of the
// module. What is missing is an error, for tests that go on without, and a failure where
// it must be there.
func Look(tb testing.TB, root, release string) (peer.Program, error) {
	tb.Helper()
	program, err := peer.Find(root, release)
	if err != nil && (os.Getenv("CI") == "true" || os.Getenv("REDLATCH_COMPAT") == "1") {
		tb.Fatal(err)
	}
	return program, err
}

// Find is Look for tests that need the program: where it is missing they are skipped,
// with loss, which is what they do not try, and why.
func Find(tb testing.TB, root, release, loss string) peer.Program {
	tb.Helper()
	program, err := Look(tb, root, release)
	if err != nil {
		tb.Skipf("%s: %v", loss, err)
	}
	return program
}

// Start starts the program. It ends with the test, and what it complained of is shown
// when that has failed.
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
