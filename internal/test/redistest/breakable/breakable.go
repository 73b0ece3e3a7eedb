// Package breakable implements the harness of the conformance suite for any transport by means of proxies.
package breakable

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// Harness returns the faults that the proxy can inject for any server. The caller must set New and the functions that
// need the server.
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

// Behind returns the faults that a proxy and its server can inject. The caller must set New.
func Behind(proxy *redistest.Proxy, server *redistest.Server) transporttest.Harness {
	h := Harness(proxy)
	h.Do, h.Forbid, h.Replica = server.Do, Forbid(server), Replica(server)
	h.Stop = func(testing.TB) { server.Kill() }
	h.Start = func(testing.TB) { server.Restart() }
	return h
}

// Outage returns a Stop and a Start function. Stop makes a running server unreachable. Before Start makes it reachable
// again, it runs the command forget, which drops unsaved state.
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

// Alone returns the faults that a server without a proxy can inject. The caller must set New.
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

// Forbid returns a Forbid function for the harness. It applies to the default user.
func Forbid(server *redistest.Server) func(testing.TB, string) {
	return func(tb testing.TB, cmd string) {
		tb.Helper()
		server.Do(tb, "ACL", "SETUSER", "default", "-"+cmd)
	}
}

// Replica returns a Replica function for the harness.
func Replica(server *redistest.Server) func(testing.TB) (stop, goOn func()) {
	return func(tb testing.TB) (stop, goOn func()) {
		tb.Helper()
		replica := redistest.StartReplica(tb, server)
		// Periodic pings would be queued behind the commands that the proxy holds.
		server.Do(tb, "CONFIG", "SET", "repl-ping-replica-period", "3600")
		link := redistest.NewProxy(tb, server.Addr())
		replica.Follow(tb, link.Addr())
		return func() { link.Blackhole() }, func() { link.Heal() }
	}
}

// StopAnswering checks that calls return if a server stops responding, and that Close does not wait for tr's client. tr
// must use the proxy, and its reply limit and dial timeout must be one second. StopAnswering closes tr.
func StopAnswering(t *testing.T, proxy *redistest.Proxy, tr transport.Transport) {
	t.Helper()
	key := redistest.Key(t)
	require.Eventually(t, func() bool { return run(tr, "INCR", key) == nil }, time.Minute, 10*time.Millisecond, "it connects")
	proxy.Blackhole()
	require.ErrorIs(t, run(tr, "INCR", key), transport.ErrUncertain)
	require.ErrorIs(t, run(tr, "INCR", key), transport.ErrNotSent)
	require.NoError(t, tr.Close())
	proxy.Heal()
}

// Nodes sends the commands of a test to a cluster with three masters, bypassing its proxies.
type Nodes struct {
	Do       func(tb testing.TB, key, cmd string, args ...any) any
	OnMaster []func(tb testing.TB, cmd string, args ...any) any
	Sharded  bool
}

// Cluster returns [Nodes.Harness] for a cluster of this package's redistest with three masters.
func Cluster(c *redistest.Cluster, fence *redistest.Proxies, open func(testing.TB) transport.Transport) transporttest.Harness {
	nodes := Nodes{Do: c.DoAt, Sharded: true}
	for _, s := range c.Nodes()[:len(masters)] {
		nodes.OnMaster = append(nodes.OnMaster, s.Do)
	}
	return nodes.Harness(fence, open)
}

// Harness returns the harness for nodes behind the proxies in fence. No other test case may use these proxies at the
// same time, and the transports that open returns must connect only through them.
func (c Nodes) Harness(fence *redistest.Proxies, open func(testing.TB) transport.Transport) transporttest.Harness {
	n := &network{proxies: fence}
	h := n.harness()
	h.New = func(tb testing.TB) transport.Transport {
		tb.Helper()
		return n.add(open(tb))
	}
	h.Do, h.Subscribers = c.do, c.subscribers
	h.Start = func(tb testing.TB) {
		tb.Helper()
		c.do(tb, "SCRIPT", "FLUSH")
		n.change(false, func(p *redistest.Proxy) { p.Refuse(false) })(tb)
	}
	return h
}

func (c Nodes) do(tb testing.TB, cmd string, args ...any) (reply any) {
	tb.Helper()
	if cmd != "SCRIPT" {
		return c.Do(tb, fmt.Sprint(args[0]), cmd, args...)
	}
	for _, do := range c.OnMaster {
		reply = do(tb, cmd, args...)
	}
	return reply
}

func (c Nodes) subscribers(tb testing.TB, channel string) (sum int64) {
	tb.Helper()
	asks := []string{"NUMSUB"}
	if c.Sharded {
		asks = append(asks, "SHARDNUMSUB")
	}
	for _, ask := range asks {
		sum += c.Do(tb, channel, "PUBSUB", ask, channel).([]any)[1].(int64)
	}
	return sum
}

func (n *network) harness() transporttest.Harness {
	reset := (*redistest.Proxy).Reset
	return transporttest.Harness{
		CutConnections: func(tb testing.TB) {
			tb.Helper()
			n.change(n.cutOff, reset)(tb)
		},
		CutSubscribers: func(testing.TB) { n.proxies.Each(reset) },
		Freeze:         n.change(true, func(p *redistest.Proxy) { p.Blackhole() }),
		Thaw:           n.change(false, func(p *redistest.Proxy) { p.Heal() }),
		HoldReplies: func(tb testing.TB) func() {
			tb.Helper()
			n.change(true, func(p *redistest.Proxy) { p.Blackhole(redistest.ToClient) })(tb)
			return func() { n.change(false, func(p *redistest.Proxy) { p.Heal(redistest.ToClient) })(tb) }
		},
		HoldRequest: func(_ testing.TB, text string) (<-chan struct{}, func()) { return n.proxies.Hold(text) },
		Stop: func(tb testing.TB) {
			tb.Helper()
			n.change(true, func(p *redistest.Proxy) {
				p.Refuse(true)
				p.Reset()
			})(tb)
			n.miss(tb)
		},
		UrgentFirst: true,
	}
}

var masters = []string{"bar", "one", "foo"}

type network struct {
	proxies *redistest.Proxies
	made    []transport.Transport
	cutOff  bool
}

// add makes tr connect to all masters, because the suite assumes that all commands use the same connection.
func (n *network) add(tr transport.Transport) transport.Transport {
	n.made = append(n.made, tr)
	n.connect()
	return tr
}

func (n *network) connect() {
	for _, tr := range n.made {
		for _, key := range masters {
			for !n.cutOff {
				if err := run(tr, "GET", key); err == nil || errors.Is(err, transport.ErrClosed) {
					break
				}
			}
		}
	}
}

func (n *network) miss(tb testing.TB) {
	tb.Helper()
	for _, tr := range n.made {
		for _, key := range masters {
			for limit := time.Now().Add(time.Minute); ; {
				err := run(tr, "GET", key)
				if errors.Is(err, transport.ErrNotSent) || errors.Is(err, transport.ErrClosed) {
					break
				}
				if time.Now().After(limit) {
					tb.Fatalf("breakable: the nodes are down, and GET %s ends with %v", key, err)
				}
			}
		}
	}
}

func run(tr transport.Transport, cmd, key string) error {
	came := make(chan error, 1)
	tr.Start(&transport.Call{Command: cmd, NumKeys: 1, Args: []any{key}}, func(_ any, err error) { came <- err })
	return <-came
}

func (n *network) change(cutOff bool, do func(p *redistest.Proxy)) func(testing.TB) {
	return func(testing.TB) {
		n.cutOff = cutOff
		n.proxies.Each(do)
		n.connect()
	}
}
