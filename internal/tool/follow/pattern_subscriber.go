package follow

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// backlog is how many messages may wait to be read. What is more is dropped: each
	// of them is a reason to look, and there are enough.
	backlog = 1024
	// retryPause is the pause before a connection is made anew.
	retryPause = time.Second
)

// Message is a message on a lock's channel. Without a name it is about the connection: some
// messages may be missed from now on, when it has an error, or they arrive again.
type Message struct {
	// At is when it was received.
	At time.Time
	// Name is the lock's, Owner the waiter that is called, "" for all.
	Name, Owner string
	// Gap is why the connection was lost.
	Gap error
}

// PatternSubscriber receives the messages on the channels of locks through patterns.
type PatternSubscriber struct {
	// Messages delivers the messages. It is not closed.
	Messages <-chan Message

	messages chan Message
	dial     func(ctx context.Context) (redis.Conn, error)
	patterns [][]string // of each family of channels
	matches  func(name string) bool
	conn     redis.Conn // that Listen has made
	unheard  error      // see Unheard
}

// SubscribePatterns connects and subscribes to the channels of the locks whose names match pattern, as
// matches decides. Messages that are published after it has returned are delivered by Run,
// which must follow. An error is dial's or the server's.
func SubscribePatterns(ctx context.Context, dial func(context.Context) (redis.Conn, error), pattern string, matches func(string) bool) (*PatternSubscriber, error) {
	heard := make(chan Message, backlog)
	s := &PatternSubscriber{Messages: heard, messages: heard, dial: dial, matches: matches}
	for _, f := range []family{lockChannels, readWriteChannels} {
		s.patterns = append(s.patterns, f.patterns(pattern))
	}
	var err error
	s.conn, err = s.subscribe(ctx)
	return s, err
}

// Unheard is the server's refusal of the channels of read/write locks, nil where it has
// confirmed them: a user that has no such locks needs no right to these channels. It is to
// be called before Run.
func (s *PatternSubscriber) Unheard() error { return s.unheard }

// subscribe connects and waits until the server has confirmed all patterns, or has refused
// those of read/write locks.
func (s *PatternSubscriber) subscribe(ctx context.Context) (redis.Conn, error) {
	c, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	var refused redis.Error
	err = s.psubscribe(c, 0, lockChannels.patterns("*"))
	if err == nil {
		err = s.psubscribe(c, 1, readWriteChannels.patterns("*"))
		if errors.As(err, &refused) {
			s.unheard, err = err, nil
		}
	}
	if err != nil {
		_ = c.Close() // refused, or broken
		return nil, err
	}
	return c, nil
}

// psubscribe subscribes to the patterns of a family. A user whose channels are limited may
// subscribe to just the patterns of the limit: where the patterns are refused, those of all
// locks' channels are tried.
func (s *PatternSubscriber) psubscribe(c redis.Conn, family int, all []string) error {
	err := confirmed(c, s.patterns[family])
	var refused redis.Error
	if errors.As(err, &refused) && !slices.Equal(s.patterns[family], all) {
		s.patterns[family] = all
		err = confirmed(c, all)
	}
	return err
}

// confirmed subscribes to patterns and waits until the server has confirmed each. A message
// that comes meanwhile is dropped: the first look at the locks is still to come.
func confirmed(c redis.Conn, patterns []string) error {
	sub := redis.PubSubConn{Conn: c}
	if err := sub.PSubscribe(redis.Args{}.AddFlat(patterns)...); err != nil {
		return err
	}
	for confirmed := 0; confirmed < len(patterns); {
		switch m := sub.Receive().(type) {
		case error:
			return m
		case redis.Subscription:
			confirmed++
		}
	}
	return nil
}

// Run delivers messages until ctx ends. It makes a new connection in place of one that is
// lost.
func (s *PatternSubscriber) Run(ctx context.Context) {
	for c := s.conn; c != nil; c = s.reconnect(ctx) {
		if err := s.read(ctx, c); ctx.Err() == nil {
			s.deliverGap(ctx, Message{At: time.Now(), Gap: err})
		}
	}
}

// reconnect returns a new connection, nil when ctx has ended.
func (s *PatternSubscriber) reconnect(ctx context.Context) redis.Conn {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryPause):
		}
		// One that fails is tried again: the next look reports the error.
		if c, err := s.subscribe(ctx); err == nil {
			s.deliverGap(ctx, Message{At: time.Now()})
			return c
		}
	}
}

// read reads messages until the connection is lost or ctx ends.
func (s *PatternSubscriber) read(ctx context.Context, c redis.Conn) error {
	// A connection knows nothing of ctx: closing it ends the read.
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer func() {
		stop()
		_ = c.Close() // broken, or at its end
	}()
	sub := redis.PubSubConn{Conn: c}
	for {
		switch m := sub.ReceiveWithTimeout(0).(type) {
		case error:
			return m
		case redis.Message:
			name, owner := Parse(m.Channel)
			if !s.matches(name) {
				continue
			}
			select {
			case s.messages <- Message{At: time.Now(), Name: name, Owner: owner}:
			default:
			}
		}
	}
}

// deliverGap delivers a gap, which is never dropped.
func (s *PatternSubscriber) deliverGap(ctx context.Context, m Message) {
	select {
	case s.messages <- m:
	case <-ctx.Done():
	}
}
