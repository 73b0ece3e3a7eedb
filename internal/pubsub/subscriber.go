// Package pubsub implements the public package pubsub. It can also deliver every message to a [Sink]. An
// acknowledgement counts only if its kind and channel match the oldest pending command. If a command is rejected, its
// channels are subscribed individually, so that only the forbidden ones fail. If the reply to the first PING is an
// error other than NOPERM, the server is considered faulty, and the Subscriber connects again. One mutex guards the
// state, and is not held during I/O.
package pubsub

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/transport"
)

// Config has the fields of the public package's Config.
type Config struct {
	Dial                   func(ctx context.Context) (redis.Conn, error)
	PingInterval           time.Duration
	DeadAfter              time.Duration
	DialTimeout            time.Duration
	BackoffMin, BackoffMax time.Duration
	Sharded                bool
	OnReconnect            func()
	OnLost                 func(err error)
	Logger                 *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Dial == nil {
		panic("pubsub: Config.Dial is nil")
	}
	c.PingInterval = cmp.Or(max(0, c.PingInterval), 10*time.Second)
	c.DeadAfter = cmp.Or(max(0, c.DeadAfter), c.PingInterval/2)
	c.DialTimeout = cmp.Or(max(0, c.DialTimeout), 5*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.OnReconnect == nil {
		c.OnReconnect = func() {}
	}
	if c.OnLost == nil {
		c.OnLost = func(error) {}
	}
	return c
}

// Subscriber subscribes to channels of one server over one connection. It is safe for concurrent use.
type Subscriber struct {
	cfg    Config
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wake   chan struct{} // cap 1; receives a value when run has work
	done   chan struct{}

	// mu guards the fields below, channels and listeners. It is never held while waiting for anything.
	mu      sync.Mutex
	table   table
	running bool
	closed  bool
	session *session
	dials   uint64
}

// New returns a Subscriber. It panics if cfg.Dial is nil.
func New(cfg Config) *Subscriber {
	s := &Subscriber{
		cfg:   cfg.withDefaults(),
		wake:  make(chan struct{}, 1),
		done:  make(chan struct{}),
		table: table{channels: make(map[string]*channel)},
	}
	s.table.most = batchSize
	if cfg.Sharded {
		s.table.most = 1
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Subscribe returns when the server has acknowledged the channel. Every later message becomes an event or part of a
// gap.
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

// Listen is like Subscribe, but it delivers messages to sink and does not wait. After stop has returned, no call to
// sink begins. The sink itself must not call stop. If s is closed, sink receives [transport.ErrClosed] before Listen
// returns. Listen panics if sink is nil.
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

func (s *Subscriber) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Reconnect replaces the current connection as if it were lost. It does not wait.
func (s *Subscriber) Reconnect() {
	s.mu.Lock()
	x := s.session
	s.mu.Unlock()
	if x != nil {
		x.end(errUnwanted)
	}
}

// Close ends all subscriptions and waits for all goroutines.
func (s *Subscriber) Close() error {
	s.cancel()
	if x := s.shut(); x != nil {
		x.end(transport.ErrClosed)
	}
	<-s.done
	return nil
}

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

// Stats contains the counts for a Subscriber. If there are no listeners and the server has answered, only Connected
// and Dials can be nonzero.
type Stats struct {
	// Channels counts the channels that have listeners, are being unsubscribed, or were refused within the last second.
	Channels int
	// Listeners counts subscriptions. Pending counts subscriptions that have not been acknowledged yet.
	Listeners, Pending int
	// Connected is true if there is a connection that is not known to be broken.
	Connected bool
	Dials     uint64
}

// Stats returns the counts. It takes time proportional to the number of listeners.
func (s *Subscriber) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{Channels: len(s.table.channels), Connected: s.session != nil, Dials: s.dials}
	st.Listeners, st.Pending = s.table.count()
	return st
}

// Sink is a listener for [Subscriber.Listen]. Its methods are called one at a time, with the Subscriber's lock held.
// They must not block or call the Subscriber.
type Sink interface {
	// Acked reports an acknowledgement. If again is true, it is not the first one, and messages may have been missed.
	Acked(again bool)
	Message(payload string)
	// Failed is called after the last event, with the error that [Subscriber.Subscribe] would return. The error also
	// wraps [transport.ErrNotSent] if the server rejected the connection instead of the channel, or rejected the
	// channel only temporarily.
	Failed(err error)
}

// A listener is a Subscription or a Sink. Subscriber.mu guards its mutable fields, and is held while code sends to
// events or closes it.
type listener struct {
	sub    *Subscriber
	sink   Sink // if nil, events and ready are used
	events chan transport.Event
	ready  chan struct{} // closed when established or failed; nil if never pending

	ch          *channel // nil after close or failure
	place       int
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

// establish marks the listener as established, or reports a gap if it is established already.
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

// offer sends the event, or adds it to a pending event. It never blocks, because there is no other
// sender.
func (l *listener) offer(e transport.Event) {
	select {
	case first := <-l.events:
		first.Coalesced++
		e = first
	default:
	}
	l.events <- e
}

func (l *listener) message(payload string) {
	if l.sink != nil {
		l.sink.Message(payload)
		return
	}
	l.offer(transport.Event{Payload: payload})
}

// fail ends a listener that was removed from its channel.
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
