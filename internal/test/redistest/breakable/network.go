package breakable

import (
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// masters has a key for each of three masters: slots 5061, 9084 and 12182.
var masters = []string{"bar", "one", "foo"}

// network is the proxies between the transports of one case and the nodes of a cluster of
// three masters, which have equal parts of the slots. It is for one goroutine.
type network struct {
	proxies *redistest.Proxies
	made    []transport.Transport
	cutOff  bool // the nodes answer no client
}

// add registers a transport whose connections go through the fence, and returns it. It has
// it connect to all masters: the suite knows of one connection for commands, which is there
// or is not.
func (n *network) add(tr transport.Transport) transport.Transport {
	n.made = append(n.made, tr)
	n.connect()
	return tr
}

// connect has all transports connect, unless the nodes answer no client.
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

// miss waits until all transports have noticed that no master takes connections: the suite
// waits until one call is not sent, which says nothing of the connections to others.
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

// run runs a command with one key and no more.
func run(tr transport.Transport, cmd, key string) error {
	came := make(chan error, 1)
	tr.Start(&transport.Call{Command: cmd, NumKeys: 1, Args: []any{key}}, func(_ any, err error) { came <- err })
	return <-came
}

// change makes a fault of do, which is applied to every proxy. After it the nodes answer no
// client, or all transports connect.
func (n *network) change(cutOff bool, do func(p *redistest.Proxy)) func(testing.TB) {
	return func(testing.TB) {
		n.cutOff = cutOff
		n.proxies.Each(do)
		n.connect()
	}
}
