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

// Message is a message on a lock's channel. One without a name says that some may be
// missed, when it has an error, or that they are heard again.
type Message struct {
	// At is when it was heard.
	At time.Time
	// Name is the lock's, Owner the waiter that is called, "" for all.
	Name, Owner string
	// Gap is why the connection was lost.
	Gap error
}

// Ears hear the messages on the channels of locks.
type Ears struct {
	// Heard delivers what was heard. It is not closed.
	Heard <-chan Message

	heard    chan Message
	dial     func(ctx context.Context) (redis.Conn, error)
	patterns []string
	matches  func(name string) bool
	conn     redis.Conn // that Listen has made
}

// Listen connects and listens to the channels of the locks whose names match pattern,
// as matches says. Messages that are published after it has returned are heard by Run,
// which must follow. An error is dial's or the server's.
func Listen(ctx context.Context, dial func(context.Context) (redis.Conn, error), pattern string, matches func(string) bool) (*Ears, error) {
	heard := make(chan Message, backlog)
	e := &Ears{Heard: heard, heard: heard, dial: dial, patterns: Patterns(pattern), matches: matches}
	var err error
	e.conn, err = e.subscribe(ctx)
	return e, err
}

// subscribe connects and waits until the server has said yes to all patterns. A user
// whose channels are bounded may listen to just the pattern that bounds them: where the
// patterns are refused, all locks' channels are tried.
func (e *Ears) subscribe(ctx context.Context) (redis.Conn, error) {
	c, err := e.dial(ctx)
	if err != nil {
		return nil, err
	}
	err = e.psubscribe(c)
	var refused redis.Error
	if all := Patterns("*"); errors.As(err, &refused) && !slices.Equal(e.patterns, all) {
		e.patterns = all
		err = e.psubscribe(c)
	}
	if err != nil {
		_ = c.Close() // refused, or broken
		return nil, err
	}
	return c, nil
}

func (e *Ears) psubscribe(c redis.Conn) error {
	sub := redis.PubSubConn{Conn: c}
	if err := sub.PSubscribe(redis.Args{}.AddFlat(e.patterns)...); err != nil {
		return err
	}
	for range e.patterns {
		if err, failed := sub.Receive().(error); failed {
			return err
		}
	}
	return nil
}

// Run hears until ctx ends. It makes a new connection in place of one that is lost.
func (e *Ears) Run(ctx context.Context) {
	for c := e.conn; c != nil; c = e.again(ctx) {
		if err := e.hear(ctx, c); ctx.Err() == nil {
			e.tell(ctx, Message{At: time.Now(), Gap: err})
		}
	}
}

// again returns a new connection, nil when ctx has ended.
func (e *Ears) again(ctx context.Context) redis.Conn {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryPause):
		}
		// One that fails is tried again: what is wrong, the looks tell.
		if c, err := e.subscribe(ctx); err == nil {
			e.tell(ctx, Message{At: time.Now()})
			return c
		}
	}
}

// hear reads messages until the connection is lost or ctx ends.
func (e *Ears) hear(ctx context.Context, c redis.Conn) error {
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
			if !e.matches(name) {
				continue
			}
			select {
			case e.heard <- Message{At: time.Now(), Name: name, Owner: owner}:
			default:
			}
		}
	}
}

// tell tells of a gap, for which there is always time.
func (e *Ears) tell(ctx context.Context, m Message) {
	select {
	case e.heard <- m:
	case <-ctx.Done():
	}
}
