package breakable

import (
	"fmt"
	"testing"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// Nodes is how a test speaks to a cluster of three masters, past the network in front
// of them.
type Nodes struct {
	Do       func(tb testing.TB, key, cmd string, args ...any) any // at the master of key's slot
	OnMaster []func(tb testing.TB, cmd string, args ...any) any
	Sharded  bool // it has sharded pub/sub
}

// Cluster is [Nodes.Harness] for a cluster that redistest has started with three masters.
func Cluster(c *redistest.Cluster, fence *redistest.Proxies, open func(testing.TB) transport.Transport) transporttest.Harness {
	nodes := Nodes{Do: c.DoAt, Sharded: true}
	for _, s := range c.Nodes()[:len(masters)] {
		nodes.OnMaster = append(nodes.OnMaster, s.Do)
	}
	return nodes.Harness(fence, open)
}

// Harness makes the conformance suite's harness of the nodes behind a fence, which is the
// case's own. What open makes connects through the fence alone.
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
		c.do(tb, "SCRIPT", "FLUSH") // as if they had been started again
		n.change(false, func(p *redistest.Proxy) { p.Refuse(false) })(tb)
	}
	return h
}

// do runs a command on the node of its first argument, and SCRIPT on all masters.
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

// subscribers returns how many listen to a channel at the master of its slot.
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

// harness returns what the network can do alone.
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
