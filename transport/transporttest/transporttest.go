package transporttest

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// Harness is what the suite needs to know of a transport and its server. New
// and Do are required. The faults are optional: with a nil one, the cases that
// need it are skipped. All functions but Do are called from the test's own
// goroutine only, and end the test when they fail.
type Harness struct {
	// New returns a new transport to the server, connected or not. The suite
	// closes it.
	New func(tb testing.TB) transport.Transport

	// Do runs one command over a connection that is not the transport's, and
	// that no fault but Freeze and Stop concerns. It returns the reply in the
	// shapes of RESP2: nil, int64, string or []byte, []any. An error of any kind
	// ends the test. In a cluster it asks the node of the first argument.
	Do func(tb testing.TB, cmd string, args ...any) any

	// Subscribers returns how many subscriptions the server has for a channel.
	// The default asks with Do: PUBSUB NUMSUB and, where the transport publishes
	// with SPUBLISH, PUBSUB SHARDNUMSUB.
	Subscribers func(tb testing.TB, channel string) int64

	// CutConnections breaks all connections on which the transport sends
	// commands, if need be others of the transport too. New ones work.
	CutConnections func(tb testing.TB)

	// CutSubscribers breaks all connections on which the transport listens, if
	// need be others of the transport too. New ones work.
	CutSubscribers func(tb testing.TB)

	// Freeze makes the server answer nothing, on connections old and new, until
	// Thaw. Connections stay, and what is sent on them may run at Thaw. Do need
	// not work meanwhile.
	Freeze, Thaw func(tb testing.TB)

	// HoldReplies lets commands run and holds back what the server answers, on
	// all connections of the transport, until release. Connections that are cut
	// meanwhile break at once, and what is held for them is lost.
	HoldReplies func(tb testing.TB) (release func())

	// HoldRequest holds back, on the first connection of the transport that
	// carries text to the server, that text and all after it, and closes seen
	// when it has some. Other connections pass. CutConnections breaks the
	// transport's end of such a connection only: release still delivers to the
	// server what was held, as a network can.
	HoldRequest func(tb testing.TB, text string) (seen <-chan struct{}, release func())

	// Stop makes the server refuse connections, after it has broken all there
	// are, until Start. Start brings it back, empty.
	Stop, Start func(tb testing.TB)

	// Forbid takes the right to a command from every user, Do included.
	Forbid func(tb testing.TB, cmd string)

	// Replica brings a replica of the server up, in step with it, and returns what stops
	// the server's writes from reaching it, and lets them go on. It stays connected
	// meanwhile. It ends with the test.
	Replica func(tb testing.TB) (stop, goOn func())

	// UrgentFirst says that calls can wait inside the transport for a
	// connection, so that urgent ones must overtake there. It needs Freeze, and
	// a New that does not wait for the server.
	UrgentFirst bool

	// Patience is how long the suite waits for what must happen before it calls
	// it missing. The default is 30 s: nothing is learnt from a machine that is
	// merely slow.
	Patience time.Duration
}

// testCase is one subtest. Its name is a sentence.
type testCase struct {
	name string
	run  func(f *fixture)
}

// Run runs the suite: a subtest for every case, each with a harness of its own,
// which newHarness makes for it. Where the harnesses do not disturb each other,
// newHarness may begin with t.Parallel.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	groups := []struct {
		name  string
		cases []testCase
	}{
		{"calls", callCases},
		{"scripts", scriptCases},
		{"abandoned", abandonCases},
		{"load", loadCases},
		{"faults", faultCases},
		{"subscriptions", subscribeCases},
		{"gaps", gapCases},
		{"close", closeCases},
		{"optional", optionalCases},
		{"lead", leadCases},
		{"replicas", replicaCases},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) { c.run(newFixture(t, newHarness(t))) })
			}
		})
	}
}
