package pubsub

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Config configures a [Subscriber]. Only Dial is required.
type Config struct {
	// Dial opens a connection for the Subscriber alone. It must respect ctx, and the
	// connection must support redis.ConnWithTimeout and should have a write timeout. Its read
	// timeout is not used.
	Dial func(ctx context.Context) (redis.Conn, error)

	// PingInterval is how long the connection may be silent before a PING. Default 10 s.
	PingInterval time.Duration

	// DeadAfter is how long a command may be unanswered, with nothing else received, before
	// the connection is replaced. Default half of PingInterval.
	DeadAfter time.Duration

	// DialTimeout bounds each call of Dial, through its context. Default 5 s.
	DialTimeout time.Duration

	// BackoffMin and BackoffMax bound the pause between two connections. It doubles with each
	// failure, less a random part of up to half. Defaults 20 ms and 1 s.
	BackoffMin, BackoffMax time.Duration

	// Sharded subscribes to shard channels with SSUBSCRIBE, one channel per command. The
	// server must be the cluster node that serves their slots.
	Sharded bool

	// OnReconnect, if not nil, runs after each connection that replaced a lost one, on the
	// goroutine that dialed it. It must return soon.
	OnReconnect func()

	// OnLost, if not nil, runs after each connection that was lost or could not be made. It
	// must not block.
	OnLost func(err error)

	// Logger logs lost connections, failed dials and rejected commands. Default: no logging.
	Logger *slog.Logger
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
