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
	patterns []string
	matches  func(name string) bool
	conn     redis.Conn // that Listen has made
}

// SubscribePatterns connects and subscribes to the channels of the locks whose names match pattern, as
// matches decides. Messages that are published after it has returned are delivered by Run,
// which must follow. An error is dial's or the server's.
func SubscribePatterns(ctx context.Context, dial func(context.Context) (redis.Conn, error), pattern string, matches func(string) bool) (*PatternSubscriber, error) {
	heard := make(chan Message, backlog)
	s := &PatternSubscriber{Messages: heard, messages: heard, dial: dial, patterns: Patterns(pattern), matches: matches}
	var err error
	s.conn, err = s.subscribe(ctx)
	return s, err
}

// subscribe connects and waits until the server has confirmed all patterns. A user whose
// channels are limited may subscribe to just the patterns of the limit: where the patterns
// are refused, those of all locks' channels are tried.
func (s *PatternSubscriber) subscribe(ctx context.Context) (redis.Conn, error) {
	c, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	err = s.psubscribe(c)
	var refused redis.Error
	if all := Patterns("*"); errors.As(err, &refused) && !slices.Equal(s.patterns, all) {
		s.patterns = all
		err = s.psubscribe(c)
	}
	if err != nil {
		_ = c.Close() // refused, or broken
		return nil, err
	}
	return c, nil
}

func (s *PatternSubscriber) psubscribe(c redis.Conn) error {
	sub := redis.PubSubConn{Conn: c}
	if err := sub.PSubscribe(redis.Args{}.AddFlat(s.patterns)...); err != nil {
		return err
	}
	for range s.patterns {
		if err, failed := sub.Receive().(error); failed {
			return err
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
