package pubsub

import "github.com/redlatch/redlatch/transport"

// Sink is the listener of a channel that [Subscriber.Listen] calls. Its methods run
// with the Subscriber's lock held, one at a time: they return at once, and call
// nothing of the Subscriber.
type Sink interface {
	// Acked reports that the server has acknowledged the channel: what is published
	// from now on is heard. Again is true when it had done so before, and messages may
	// have been missed since.
	Acked(again bool)
	// Message reports a message.
	Message(payload string)
	// Failed reports that nothing will be heard any more, and why: one of the errors of
	// [Subscriber.Subscribe], which wraps [transport.ErrNotSent], too, when the server has
	// refused the connection and not the channel, or the channel for now only. It comes last.
	Failed(err error)
}

// listener is one Subscription, or one Sink. Its mutable fields are guarded by the
// Subscriber's mutex, under which events is also sent to and closed.
type listener struct {
	sub    *Subscriber
	sink   Sink // called for each event; nil: events and ready are
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
	if l.sink != nil {
		l.sink.Acked(l.established)
		l.established = true
		return
	}
	if l.established {
		l.offer(transport.Event{Gap: true})
		return
	}
	l.established = true
	close(l.ready)
}

// offer never blocks: a full slot holds a wake-up already, and counts this one. There
// is no other sender, so that what was taken out has room again.
func (l *listener) offer(e transport.Event) {
	select {
	case first := <-l.events:
		first.Coalesced++
		e = first
	default:
	}
	l.events <- e
}

// message passes a message on.
func (l *listener) message(payload string) {
	if l.sink != nil {
		l.sink.Message(payload)
		return
	}
	l.offer(transport.Event{Payload: payload})
}

// fail ends a listener that its channel has let go of.
func (l *listener) fail(err error) {
	l.err, l.ch = err, nil
	if l.sink != nil {
		l.sink.Failed(err)
		return
	}
	if !l.established {
		close(l.ready)
	}
	close(l.events)
}
