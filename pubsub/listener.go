package pubsub

import "github.com/redlatch/redlatch/transport"

// listener is one Subscription. Its mutable fields are guarded by the
// Subscriber's mutex, under which events is also sent to and closed.
type listener struct {
	sub    *Subscriber
	events chan transport.Event
	ready  chan struct{} // closed when established or failed; nil if never pending

	ch          *channel // nil once closed or failed
	place       int      // index in ch.listeners
	established bool
	err         error
}

var _ transport.Subscription = (*listener)(nil)

// Events implements [transport.Subscription].
func (l *listener) Events() <-chan transport.Event { return l.events }

// Err implements [transport.Subscription].
func (l *listener) Err() error {
	l.sub.mu.Lock()
	defer l.sub.mu.Unlock()
	return l.err
}

// Close implements [transport.Subscription].
func (l *listener) Close() { l.sub.leave(l) }

// establish ends the wait of a pending listener, and tells an established one
// of the gap.
func (l *listener) establish() {
	if l.established {
		l.offer(transport.Event{Gap: true})
		return
	}
	l.established = true
	close(l.ready)
}

// offer never blocks: a full slot holds a wake-up already.
func (l *listener) offer(e transport.Event) {
	select {
	case l.events <- e:
	default:
	}
}

// fail ends a listener that its channel has let go of.
func (l *listener) fail(err error) {
	l.err, l.ch = err, nil
	if !l.established {
		close(l.ready)
	}
	close(l.events)
}
