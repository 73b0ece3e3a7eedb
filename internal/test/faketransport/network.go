package faketransport

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// Network is a transport to a server of the test, which also chooses delays and faults.
type Network struct {
	sync.Locker // held while Next and Way.Observe run

	// Next returns the way of a call or, if call is nil, of another command or a message.
	Next func(call *transport.Call) Way

	Publishes string // the command with which scripts publish

	conns  atomic.Int64
	killed sync.Map // by the number of the connection

	closed    bool
	subs      []*subscription
	delivered bool // an event, since the last Subscribe or Received
}

// Way is the way of a call, subscription or message through the network.
type Way struct {
	Fault               Fault
	Send, Arrive, Reply time.Duration // delays; each begins when the previous one ends
	Break               time.Duration // from sending until the connection breaks; 0 means when the reply would arrive
	Run                 func() any    // runs the call; if Break is not 0, the client may already reuse it

	// Observe observes "not sent", "sent" and "replied" for a call, "subscribed", or "published" for a message.
	Observe func(event string)
}

// Fault is a fault of the network. Any fault makes a subscription fail and replaces a message by a gap.
type Fault int

// The faults of a call.
const (
	NoFault   Fault = iota
	Unsent          // it is not sent
	Late            // only its delays are long
	ReplyLost       // its connection breaks, but it runs
	CallLost        // its connection breaks, and it does not run
)

var (
	errLost   = fmt.Errorf("%w: connection reset", transport.ErrUncertain)
	errClosed = fmt.Errorf("%w: %w", transport.ErrNotSent, transport.ErrClosed)
)

func (n *Network) next(call *transport.Call) Way {
	n.Lock()
	defer n.Unlock()
	return n.Next(call)
}

// Start implements transport.Transport.
func (n *Network) Start(call *transport.Call, done transport.Done) {
	w := n.next(call)
	if w.Send == 0 {
		n.send(call, &w, done)
		return
	}
	time.AfterFunc(w.Send, func() { n.send(call, &w, done) })
}

func (n *Network) send(call *transport.Call, w *Way, done transport.Done) {
	conn := n.conns.Add(1)
	if err := n.claim(call, w, conn); err != nil {
		done(nil, err)
		return
	}
	breaks := w.Fault >= ReplyLost
	if breaks && w.Break > 0 {
		time.AfterFunc(w.Break, func() { done(nil, errLost) })
	}
	time.AfterFunc(w.Arrive, func() {
		reply, err := any(nil), errLost
		if _, killed := n.killed.Load(conn); !killed && w.Fault != CallLost {
			reply, err = w.Run(), nil
		}
		time.Sleep(w.Reply)
		switch {
		case breaks && w.Break > 0:
			return
		case breaks:
			reply, err = nil, errLost
		case err == nil && !call.Abandoned():
			n.Lock()
			w.Observe("replied")
			n.Unlock()
		}
		done(reply, err)
	})
}

func (n *Network) claim(call *transport.Call, w *Way, conn int64) error {
	n.Lock()
	defer n.Unlock()
	if n.closed {
		return errClosed
	}
	if w.Fault == Unsent || !call.Claim(conn) {
		w.Observe("not sent")
		return transport.ErrNotSent
	}
	w.Observe("sent")
	return nil
}

// Subscribe implements transport.Transport.
func (n *Network) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	w := n.next(nil)
	time.Sleep(w.Send + w.Arrive)
	n.Lock()
	defer n.Unlock()
	switch {
	case n.closed:
		return nil, errClosed
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", transport.ErrNotSent, ctx.Err())
	case w.Fault != NoFault:
		return nil, transport.ErrNotSent
	}
	s := &subscription{network: n, channel: channel, events: make(chan transport.Event, 1)}
	n.subs, n.delivered = append(n.subs, s), false
	w.Observe("subscribed")
	return s, nil
}

// Channels returns the channel of each subscription.
func (n *Network) Channels() (channels []string) {
	n.Lock()
	defer n.Unlock()
	for _, s := range n.subs {
		channels = append(channels, s.channel)
	}
	return channels
}

// Publish sends a message to the subscriptions to a channel. It must be called with n locked.
func (n *Network) Publish(channel string) {
	for _, s := range n.subs {
		if s.channel == channel {
			w := n.Next(nil)
			w.Observe("published")
			time.AfterFunc(w.Send+w.Arrive, func() { s.deliver(&w) })
		}
	}
}

// Received reports whether the client has received an event since the last Subscribe or Received. It must be called with
// n locked.
func (n *Network) Received() bool {
	unread := func(s *subscription) bool { return len(s.events) > 0 }
	if !n.delivered || len(n.subs) == 0 || slices.ContainsFunc(n.subs, unread) {
		return false
	}
	n.delivered = false
	return true
}

// PublishCommand implements transport.Transport.
func (n *Network) PublishCommand() string { return n.Publishes }

// Close implements transport.Transport.
func (n *Network) Close() error {
	n.Lock()
	defer n.Unlock()
	n.closed = true
	return nil
}

// FencingNetwork is a Network that can kill connections.
type FencingNetwork struct{ *Network }

// Fence implements transport.Fencer. It takes as long as a subscription.
func (f FencingNetwork) Fence(_ context.Context, call *transport.Call) error {
	w := f.next(nil)
	if time.Sleep(w.Send + w.Arrive); w.Fault != NoFault {
		return transport.ErrUncertain
	}
	f.killed.Store(call.Conn(), true)
	return nil
}

type subscription struct {
	network *Network
	channel string
	events  chan transport.Event
}

func (s *subscription) deliver(w *Way) {
	s.network.Lock()
	defer s.network.Unlock()
	if len(s.events) == 0 && slices.Contains(s.network.subs, s) {
		s.events <- transport.Event{Payload: "0", Gap: w.Fault != NoFault}
		s.network.delivered = true
	}
}

func (s *subscription) Events() <-chan transport.Event { return s.events }
func (*subscription) Err() error                       { return nil }

func (s *subscription) Close() {
	s.network.Lock()
	defer s.network.Unlock()
	s.network.subs = slices.DeleteFunc(s.network.subs, func(other *subscription) bool { return other == s })
}
