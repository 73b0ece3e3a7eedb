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
