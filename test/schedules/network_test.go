package schedules

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/test/schedule"
	"github.com/redlatch/redlatch/transport"
)

// network is the transport of one client. It delays calls, which stay in order, replies and messages.
type network struct {
	server   *server
	schedule *schedule.Schedule
	name     string

	mu     sync.Mutex // guards the fields below
	choice *schedule.Actor
	faults bool // some calls and replies are lost, some replies are late, and some messages are replaced by gaps
	last   time.Time
	closed bool
	worst  fault // the worst fault that occurs
}

var (
	errLost   = fmt.Errorf("%w: connection reset", transport.ErrUncertain)
	errClosed = fmt.Errorf("%w: %w", transport.ErrNotSent, transport.ErrClosed)
)

func newNetwork(s *schedule.Schedule, srv *server, name string, faults bool) *network {
	return &network{server: srv, schedule: s, name: name, choice: s.Actor(name), faults: faults, worst: lostCall}
}

// way is what happens to a call or a message.
type way struct {
	sent, arrives time.Time
	replies       time.Duration // after it has arrived
	fault         fault
}

type fault int

const (
	unsent   fault = iota // the call
	overdue               // the reply
	lost                  // the reply
	lostCall              // the call
	none                  // and all above
)

// ways is such that one in that many calls is affected by each fault.
const ways = 20

// next draws the way of the next call or message.
func (n *network) next() way {
	n.mu.Lock()
	defer n.mu.Unlock()
	pick := func() time.Duration { return time.Duration(n.choice.Pick(3) * 1021) }
	w := way{sent: time.Now().Add(pick()), replies: pick(), fault: none}
	if !w.sent.After(n.last) {
		w.sent = n.last.Add(1)
	}
	w.arrives = w.sent.Add(1 + pick())
	n.last = w.arrives
	if n.faults {
		w.fault = fault(n.choice.Pick(ways))
	}
	if w.fault > n.worst {
		w.fault = none
	}
	if w.fault == overdue {
		w.replies += time.Duration(1+n.choice.Pick(5)) * time.Second
	}
	return w
}

// heal ends the faults.
func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = false
}

func (n *network) isClosed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closed
}

func (n *network) Start(call *transport.Call, done transport.Done) {
	w := n.next()
	go func() {
		time.Sleep(time.Until(w.sent))
		switch {
		case n.isClosed():
			done(nil, errClosed)
			return
		case w.fault == unsent || !call.Claim(0):
			done(nil, transport.ErrNotSent)
			return
		}
		time.Sleep(time.Until(w.arrives))
		var reply any
		if w.fault != lostCall {
			reply = n.server.run(call)
		}
		time.Sleep(w.replies)
		if w.fault == lost || w.fault == lostCall {
			done(nil, errLost)
			return
		}
		done(reply, nil)
	}()
}

func (n *network) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	w := n.next()
	time.Sleep(time.Until(w.arrives))
	switch {
	case n.isClosed():
		return nil, errClosed
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", transport.ErrNotSent, ctx.Err())
	case w.fault != none:
		return nil, transport.ErrNotSent
	}
	s := n.server
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := &subscription{network: n, channel: channel, events: make(chan transport.Event, 1)}
	s.subs[channel] = append(s.subs[channel], sub)
	return sub, nil
}

func (n *network) Listeners(_ context.Context, channels ...string) ([]int64, error) {
	n.server.mu.Lock()
	defer n.server.mu.Unlock()
	var counts []int64
	for _, c := range channels {
		networks := map[*network]bool{}
		for _, sub := range n.server.subs[c] {
			networks[sub.network] = true
		}
		counts = append(counts, int64(len(networks)))
	}
	return counts, nil
}

func (*network) PublishCommand() string { return "PUBLISH" }

func (n *network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	return nil
}

// subscription is a subscription to a channel of the server.
type subscription struct {
	network *network
	channel string
	events  chan transport.Event
}

// send delivers an event later.
func (s *subscription) send(e transport.Event) {
	w := s.network.next()
	e.Gap = w.fault != none
	time.AfterFunc(time.Until(w.arrives), func() {
		select {
		case s.events <- e:
		default: // another event is pending
		}
	})
}

func (s *subscription) Events() <-chan transport.Event { return s.events }
func (*subscription) Err() error                       { return nil }

func (s *subscription) Close() {
	srv := s.network.server
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.subs[s.channel] = slices.DeleteFunc(srv.subs[s.channel], func(other *subscription) bool { return other == s })
}
