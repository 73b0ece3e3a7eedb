// Package breakable makes the conformance suite's harness of a proxy, for whichever
// transport is behind it. It has no state: the proxy has.
package breakable

import (
	"testing"

	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// Harness returns what a proxy can do, whatever server is behind it. The caller adds
// New, which leads through the proxy, and what only a server can do.
func Harness(proxy *redistest.Proxy) transporttest.Harness {
	reset := func(testing.TB) { proxy.Reset() }
	return transporttest.Harness{
		CutConnections: reset,
		CutSubscribers: reset,
		Freeze:         func(testing.TB) { proxy.Blackhole() },
		Thaw:           func(testing.TB) { proxy.Heal() },
		HoldReplies: func(testing.TB) func() {
			proxy.Blackhole(redistest.ToClient)
			return func() { proxy.Heal(redistest.ToClient) }
		},
		HoldRequest: func(_ testing.TB, text string) (<-chan struct{}, func()) {
			proxy.KeepHalfDead(true)
			held := proxy.HoldMatching(redistest.ToServer, text)
			return held.Seen(), held.Release
		},
		UrgentFirst: true,
	}
}

// Replica returns the harness's Replica for a server: it makes replicas that can be cut
// off.
func Replica(server *redistest.Server) func(testing.TB) (stop, goOn func()) {
	return func(tb testing.TB) (stop, goOn func()) {
		tb.Helper()
		replica := redistest.StartReplica(tb, server)
		// What the server sends replicas of its own accord is behind what they lack.
		server.Do(tb, "CONFIG", "SET", "repl-ping-replica-period", "3600")
		link := redistest.NewProxy(tb, server.Addr())
		replica.Follow(tb, link.Addr())
		return func() { link.Blackhole() }, func() { link.Heal() }
	}
}
