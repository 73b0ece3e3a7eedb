package pubsub

import (
	"context"
	"log/slog"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Config says how a [Subscriber] reaches its server. Only Dial is required.
type Config struct {
	// Dial opens a connection that the Subscriber alone will use and close. It
	// must not come from a pool, must honour ctx, must support
	// redis.ConnWithTimeout, as those made by redis.DialContext do, and should
	// have a write timeout. A read timeout has no effect.
	Dial func(ctx context.Context) (redis.Conn, error)

	// PingInterval is how long the connection may be silent before it is
	// pinged. Default 10 s.
	PingInterval time.Duration

	// DeadAfter is how long a PING, or any other command, may stay unanswered
	// while nothing else is received either, before the connection is given up
	// and made anew. Default half of PingInterval.
	DeadAfter time.Duration

	// DialTimeout bounds each call of Dial, through its context. Default 5 s.
	DialTimeout time.Duration

	// BackoffMin and BackoffMax bound the pause between two connections. It
	// doubles from failure to failure, and of each pause a random part between
	// none and half is left out. Defaults 20 ms and 1 s.
	BackoffMin, BackoffMax time.Duration

	// Sharded listens to channels of a shard, with SSUBSCRIBE, on a node of the
	// cluster that has their slots. Each command names one channel, since those of
	// several slots cannot share one.
	Sharded bool

	// OnReconnect, when not nil, runs after each connection that was made in place
	// of one that was lost, on the goroutine that made it. It must return soon.
	OnReconnect func()

	// OnLost, when not nil, runs after each connection that was lost or could not be
	// made, with the reason, on the goroutine that makes them. It must return at once.
	OnLost func(err error)

	// Logger gets lost connections, dials that fail and commands
	// that the server refuses.
	// Default: silence.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Dial == nil {
		panic("pubsub: Config.Dial is nil")
	}
	orElse(&c.PingInterval, 10*time.Second)
	orElse(&c.DeadAfter, c.PingInterval/2)
	orElse(&c.DialTimeout, 5*time.Second)
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

// most is how many channels one command may name.
func (c *Config) most() int {
	if c.Sharded {
		return 1
	}
	return batchSize
}

func orElse(d *time.Duration, def time.Duration) {
	if *d <= 0 {
		*d = def
	}
}
