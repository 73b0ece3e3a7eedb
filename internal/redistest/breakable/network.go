package breakable

import (
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// masters has a key for each of three masters: slots 5061, 9084 and 12182.
var masters = []string{"bar", "one", "foo"}

// Network is what stands between the transports of one case and the nodes of a cluster
// of three masters, who share out the slots in equal parts. It is for one goroutine.
type Network struct {
	fence *redistest.Fence
	made  []transport.Transport
	dark  bool // nobody is answered
}

// NewNetwork makes the network of the proxies of a fence.
func NewNetwork(fence *redistest.Fence) *Network { return &Network{fence: fence} }

// Add takes in a transport whose connections go through the fence, and returns it. It
// has it connect to all masters: the suite knows of one connection for commands, which
// is there or is not.
func (n *Network) Add(tr transport.Transport) transport.Transport {
	n.made = append(n.made, tr)
	n.connect()
	return tr
}

// connect has all transports connect, unless nobody is answered.
func (n *Network) connect() {
	for _, tr := range n.made {
		for _, key := range masters {
			for !n.dark {
				if err := get(tr, key); err == nil || errors.Is(err, transport.ErrClosed) {
					break
				}
			}
		}
	}
}

// miss waits until all transports have noticed that no master takes connections: the suite
// waits until one call is not sent, which says nothing of the connections to others.
func (n *Network) miss(tb testing.TB) {
	tb.Helper()
	for _, tr := range n.made {
		for _, key := range masters {
			for limit := time.Now().Add(time.Minute); ; {
				err := get(tr, key)
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

// get runs GET.
func get(tr transport.Transport, key string) error {
	came := make(chan error, 1)
	tr.Start(&transport.Call{Command: "GET", NumKeys: 1, Args: []any{key}}, func(_ any, err error) { came <- err })
	return <-came
}

// change makes a fault of what is done to every proxy, after which nobody is answered,
// or all transports connect.
func (n *Network) change(dark bool, do func(p *redistest.Proxy)) func(testing.TB) {
	return func(testing.TB) {
		n.dark = dark
		n.fence.Each(do)
		n.connect()
	}
}

// Harness returns what the network can do. The caller adds New, which gives each
// transport to Add, and what only the nodes can do; flush makes their masters forget all
// scripts, as those that were started again have.
func (n *Network) Harness(flush func(tb testing.TB)) transporttest.Harness {
	reset := (*redistest.Proxy).Reset
	return transporttest.Harness{
		CutConnections: func(tb testing.TB) {
			tb.Helper()
			n.change(n.dark, reset)(tb)
		},
		CutSubscribers: func(testing.TB) { n.fence.Each(reset) },
		Freeze:         n.change(true, func(p *redistest.Proxy) { p.Blackhole() }),
		Thaw:           n.change(false, func(p *redistest.Proxy) { p.Heal() }),
		HoldReplies: func(tb testing.TB) func() {
			tb.Helper()
			n.change(true, func(p *redistest.Proxy) { p.Blackhole(redistest.ToClient) })(tb)
			return func() { n.change(false, func(p *redistest.Proxy) { p.Heal(redistest.ToClient) })(tb) }
		},
		HoldRequest: func(_ testing.TB, text string) (<-chan struct{}, func()) { return n.fence.Hold(text) },
		Stop: func(tb testing.TB) {
			tb.Helper()
			n.change(true, func(p *redistest.Proxy) {
				p.Refuse(true)
				p.Reset()
			})(tb)
			n.miss(tb)
		},
		Start: func(tb testing.TB) {
			tb.Helper()
			flush(tb)
			n.change(false, func(p *redistest.Proxy) { p.Refuse(false) })(tb)
		},
		UrgentFirst: true,
	}
}
