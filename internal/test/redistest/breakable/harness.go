// Package breakable makes the conformance suite's harness of a proxy, for whichever
// transport is behind it. It has no state: the proxy has.
package breakable

import (
	"testing"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// Harness returns what a proxy can do, whatever server is behind it. The caller adds
// New, which leads through the proxy, and what only a server can do: [Behind] knows that.
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

// Behind returns what a proxy and the server behind it can do. The caller adds New.
func Behind(proxy *redistest.Proxy, server *redistest.Server) transporttest.Harness {
	h := Harness(proxy)
	h.Do, h.Forbid, h.Replica = server.Do, Forbid(server), Replica(server)
	h.Stop = func(testing.TB) { server.Kill() }
	h.Start = func(testing.TB) { server.Restart() }
	return h
}

// Outage returns the harness's Stop and Start for a server that goes on while no client
// reaches it. Before clients reach it again, do runs the command that makes it forget what
// a restarted server would not know.
func Outage(
	proxy *redistest.Proxy, do func(tb testing.TB, cmd string, args ...any) any, forget string, args ...any,
) (stop, start func(testing.TB)) {
	stop = func(testing.TB) {
		proxy.Refuse(true)
		proxy.Reset()
	}
	return stop, func(tb testing.TB) {
		tb.Helper()
		do(tb, forget, args...)
		proxy.Refuse(false)
	}
}

// Alone returns what a server can do without a proxy in front of it: it is killed and
// frozen itself. The caller adds New.
func Alone(server *redistest.Server) transporttest.Harness {
	kill := func(kind string) func(testing.TB) {
		return func(tb testing.TB) {
			tb.Helper()
			server.KillClients(tb, kind)
		}
	}
	return transporttest.Harness{
		Do:             server.Do,
		CutConnections: kill("normal"),
		CutSubscribers: kill("pubsub"),
		Freeze:         func(testing.TB) { server.Pause() },
		Thaw:           func(testing.TB) { server.Resume() },
		Stop:           func(testing.TB) { server.Shutdown() },
		Start:          func(testing.TB) { server.Restart() },
		Forbid:         Forbid(server),
		UrgentFirst:    true,
	}
}

// Forbid returns the harness's Forbid for a server whose users are all the default user.
func Forbid(server *redistest.Server) func(testing.TB, string) {
	return func(tb testing.TB, cmd string) {
		tb.Helper()
		server.Do(tb, "ACL", "SETUSER", "default", "-"+cmd)
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
