package pubsub

import (
	"context"
	"sync"

	"github.com/redlatch/redlatch/transport"
)

// Subscriber listens to channels of one server over one connection of its own.
// All methods are safe for concurrent use. Make one with [New].
type Subscriber struct {
	cfg    Config
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wake   chan struct{} // tells run that there is something to do
	done   chan struct{} // closed when run has ended, or when it never will begin

	// mu guards the fields below and those of channels and listeners. It is
	// never held across I/O or while waiting for anything.
	mu      sync.Mutex
	table   table
	running bool
	closed  bool
	session *session // the present connection, or nil
	dials   uint64
}

// New makes a Subscriber. It does no I/O: the connection is dialled when the
// first channel is wanted, and then kept until Close. New panics when cfg.Dial is
// nil.
func New(cfg Config) *Subscriber {
	s := &Subscriber{
		cfg:   cfg.withDefaults(),
		wake:  make(chan struct{}, 1),
		done:  make(chan struct{}),
		table: table{channels: make(map[string]*channel)},
	}
	s.table.most = s.cfg.most()
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Subscribe listens to channel and returns after the server has acknowledged it,
// or at once if it is subscribed already: a message published after that becomes
// an event, or is made up for by a gap. It sends SUBSCRIBE, together with those of
// other callers.
//
// Each call makes a listener of its own, which ends with its Close method. When
// ctx ends first, nothing stays behind and the error is ctx's. While the
// connection keeps breaking, Subscribe keeps trying until ctx ends. When a dial
// fails, the server has no room for a client, or three connections in a row end without
// an answer, the error wraps [transport.ErrNotSent]; when the server refuses the channel, or every command,
// the error is a [*transport.ServerError]; after Close it is
// [transport.ErrClosed].
func (s *Subscriber) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	if ctx == nil {
		panic("pubsub: nil Context")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l := &listener{sub: s, events: make(chan transport.Event, 1)}
	if err := s.join(channel, l); err != nil {
		return nil, err
	}
	if l.ready == nil {
		return l, nil
	}
	select {
	case <-l.ready:
	case <-ctx.Done():
		l.Close()
		return nil, ctx.Err()
	}
	if err := l.Err(); err != nil {
		return nil, err
	}
	return l, nil
}

// Listen is Subscribe for callers that need no channel of events: sink is called
// for each event, and Listen does not wait. It is not called any more after stop, which may be
// called more than once; it does not wait for the server, and must not be called by the
// sink. After Close the sink gets [transport.ErrClosed] before Listen returns. A nil
// sink makes it panic.
func (s *Subscriber) Listen(channel string, sink Sink) (stop func()) {
	if sink == nil {
		panic("pubsub: nil Sink")
	}
	l := &listener{sub: s, sink: sink}
	if err := s.join(channel, l); err != nil {
		sink.Failed(err)
	}
	return l.Close
}

// join enters l, and starts the run goroutine for the first one.
func (s *Subscriber) join(channel string, l *listener) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return transport.ErrClosed
	}
	s.table.join(channel, l)
	if !s.running {
		s.running = true
		go s.run()
	}
	s.nudge()
	return nil
}

func (s *Subscriber) leave(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.leave(l)
	s.nudge()
}

// nudge has run look at the table. It never blocks.
func (s *Subscriber) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Reconnect gives the present connection up, if there is one, and has it made anew, as
// if it were lost: each listener gets a gap. It is for an address that leads to another
// server by now. It does not wait.
func (s *Subscriber) Reconnect() {
	s.mu.Lock()
	x := s.session
	s.mu.Unlock()
	if x != nil {
		x.end(errUnwanted)
	}
}

// Close ends every listener and every waiting Subscribe with
// [transport.ErrClosed], closes the connection, and returns when no goroutine of
// the Subscriber runs any more; a dial under way is cancelled and waited for. It
// may be called more than once. The error is always nil.
func (s *Subscriber) Close() error {
	s.cancel()
	if x := s.shut(); x != nil {
		x.end(transport.ErrClosed) // also a write that hangs
	}
	<-s.done
	return nil
}

// shut fails all listeners, and returns the connection that is still in use.
func (s *Subscriber) shut() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.table.failAll(transport.ErrClosed)
		if !s.running {
			close(s.done)
		}
	}
	return s.session
}

// Stats is what a Subscriber holds at one moment. Without listeners, and once
// the server has answered, all but Connected and Dials are zero.
type Stats struct {
	// Channels counts the channels that have listeners, or had them and are not
	// yet unsubscribed, or were refused within the last second.
	Channels int
	// Listeners counts the subscriptions, Pending those of them that Subscribe
	// has not returned yet.
	Listeners, Pending int
	// Connected is true while there is a connection that is not known to be
	// broken.
	Connected bool
	// Dials counts the connections made so far.
	Dials uint64
}

// Stats returns the present counts. It takes time proportional to the number of
// listeners and sends nothing.
func (s *Subscriber) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{Channels: len(s.table.channels), Connected: s.session != nil, Dials: s.dials}
	st.Listeners, st.Pending = s.table.count()
	return st
}

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

func (l *listener) Events() <-chan transport.Event { return l.events }

func (l *listener) Err() error {
	l.sub.mu.Lock()
	defer l.sub.mu.Unlock()
	return l.err
}

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
