package schedules

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/test/schedule"
	"github.com/redlatch/redlatch/transport"
)

// network is the transport of one client. Its calls stay in order.
type network struct {
	*faketransport.Network
	server *server

	// Guarded by the Network.
	choice *schedule.Actor
	faults bool // some calls and replies are lost, some replies are late, and some messages are replaced by gaps
	last   time.Time
	worst  faketransport.Fault // the worst fault that occurs
}

func newNetwork(s *schedule.Schedule, srv *server, name string, faults bool) *network {
	n := &network{server: srv, choice: s.Actor(name), faults: faults, worst: faketransport.CallLost}
	n.Network = &faketransport.Network{Locker: &sync.Mutex{}, Next: n.next, Publishes: "PUBLISH"}
	return n
}

// ways is such that one in that many calls is affected by each fault.
const ways = 20

// next draws the way of the next call, subscription or message.
func (n *network) next(call *transport.Call) faketransport.Way {
	pick := func() time.Duration { return time.Duration(n.choice.Pick(3) * 1021) }
	w := faketransport.Way{Send: pick(), Reply: pick(), Run: func() any { return n.server.run(call) }, Observe: func(string) {}}
	w.Send = max(w.Send, time.Until(n.last)+1, 1)
	w.Arrive = 1 + pick()
	n.last = time.Now().Add(w.Send + w.Arrive)
	if n.faults {
		w.Fault = faketransport.Fault(1 + n.choice.Pick(ways))
	}
	if w.Fault > n.worst {
		w.Fault = faketransport.NoFault
	}
	if w.Fault == faketransport.Late {
		w.Reply += time.Duration(1+n.choice.Pick(5)) * time.Second
	}
	return w
}

// heal ends the faults.
func (n *network) heal() {
	n.Lock()
	defer n.Unlock()
	n.faults = false
}

// publish sends a message to the client.
func (n *network) publish(channel string) {
	n.Lock()
	defer n.Unlock()
	n.Publish(channel)
}

func (n *network) Listeners(_ context.Context, channels ...string) ([]int64, error) {
	counts := make([]int64, len(channels))
	for _, other := range n.server.networks {
		for i, c := range channels {
			if slices.Contains(other.Channels(), c) {
				counts[i]++
			}
		}
	}
	return counts, nil
}
