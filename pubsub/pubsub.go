// Package pubsub subscribes to any number of Redis channels over one connection. A [Subscriber] has
// the Subscribe method of transport.Transport:
//
//	sub := pubsub.New(pubsub.Config{Dial: dial})
//	defer sub.Close()
//	s, err := sub.Subscribe(ctx, channel)
//	if err != nil {
//		return err
//	}
//	defer s.Close()
//	for range s.Events() { … } // query the server again
//
// Each message to an acknowledged channel becomes an event. After a lost connection all channels
// are subscribed again, and each subscription gets an event with Gap set, since messages may have
// been missed. Subscriptions share their channel's SUBSCRIBE but do not delay each other. If the
// server rejects a channel, only that channel's subscriptions fail. While the slot of a shard
// channel is not served, only that channel pauses, for a second.
package pubsub

import (
	"context"
	"log/slog"
	"time"

	"github.com/gomodule/redigo/redis"

	core "github.com/redlatch/redlatch/internal/pubsub"
	"github.com/redlatch/redlatch/transport"
)

// Config configures a [Subscriber]. Only Dial is required.
type Config struct {
	// Dial opens a connection for the Subscriber alone. It must respect ctx, and the
	// connection must support redis.ConnWithTimeout and should have a write timeout. Its read
	// timeout is not used.
	Dial func(ctx context.Context) (redis.Conn, error)

	// PingInterval is how long the connection may be silent before a PING. The default is 10 s.
	PingInterval time.Duration

	// DeadAfter is how long a command may wait for its reply, if nothing else is received, before
	// the connection is replaced. The default is half of PingInterval.
	DeadAfter time.Duration

	// DialTimeout bounds each call to Dial, through its context. The default is 5 s.
	DialTimeout time.Duration

	// BackoffMin and BackoffMax bound the pause between two connections. The pause doubles with
	// each failure and is shortened at random by up to half. The defaults are 20 ms and 1 s.
	BackoffMin, BackoffMax time.Duration

	// Sharded subscribes to shard channels with SSUBSCRIBE, one channel per command. The
	// server must be the cluster node that serves their slots.
	Sharded bool

	// OnReconnect, if not nil, runs after each reconnect, on the goroutine that dialed. It must
	// return soon.
	OnReconnect func()

	// OnLost, if not nil, runs after each lost connection and failed dial. It must not block.
	OnLost func(err error)

	// Logger logs lost connections, failed dials and rejected commands. By default, nothing is
	// logged.
	Logger *slog.Logger
}

// Subscriber subscribes to channels on one server over one connection. It is safe for concurrent use.
type Subscriber struct{ core *core.Subscriber }

// New returns a Subscriber, which dials on the first Subscribe and keeps the connection until Close.
// It panics if cfg.Dial is nil.
func New(cfg Config) *Subscriber { return &Subscriber{core.New(core.Config(cfg))} }

// Subscribe subscribes to channel and returns when the server has acknowledged it, or immediately
// if it is already subscribed. Callers share one SUBSCRIBE. Each call returns a separate subscription,
// which must be closed. Subscribe retries if the connection breaks.
//
// The error is ctx's error, [transport.ErrClosed], or
//   - [*transport.ServerError] if the server rejects the channel, or every command;
//   - [transport.ErrNotSent] if a dial fails, the server accepts no more clients, or three
//     consecutive connections end without a reply.
func (s *Subscriber) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	return s.core.Subscribe(ctx, channel)
}

// Reconnect replaces the current connection, if any, as if it were lost: each subscription gets a
// gap. Use it when the address may lead to another server. It does not wait.
func (s *Subscriber) Reconnect() { s.core.Reconnect() }

// Close ends all subscriptions and pending calls to Subscribe with [transport.ErrClosed], closes the connection, and
// waits for all goroutines and for any dial in progress. It may be called more than once. The returned error is always
// nil.
func (s *Subscriber) Close() error { return s.core.Close() }
