package cluster

import (
	"context"
	"log/slog"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Config says how a [Cluster] reaches its nodes. Nodes, Dial, DialPubSub and Publish
// are required.
type Config struct {
	// Nodes returns the addresses, host:port, of nodes that may be asked who serves
	// which slot: those that were there in the beginning will do. It must return at
	// once.
	Nodes func() []string

	// Dial makes a connection to the node at addr for commands, see mux.Dial. Key is
	// a key in a slot that the node serves, "" when none is known.
	Dial func(ctx context.Context, addr, key string) (redis.Conn, error)

	// DialPubSub makes a connection to the node at addr that listens, see
	// pubsub.Config.
	DialPubSub func(ctx context.Context, addr, key string) (redis.Conn, error)

	// Publish is the publish command of scripts: PUBLISH or SPUBLISH.
	Publish string

	// Command bounds the wait for one reply. Default 3 s.
	Command time.Duration

	// ReplyLimit is how long a connection may owe a reply, see mux.Config. Default
	// twice Command.
	ReplyLimit time.Duration

	// DialTimeout bounds one dial. Default 5 s.
	DialTimeout time.Duration

	// Reconnected, if not nil, is told "commands" or "subscriptions" when such a
	// connection to a master was made in place of a lost one.
	Reconnected func(connection string)

	// Logger is told of connections, of slots that move and of what is refused.
	// Default: silence.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Nodes == nil || c.Dial == nil || c.DialPubSub == nil || c.Publish == "" {
		panic("cluster: Config lacks Nodes, Dial, DialPubSub or Publish")
	}
	orElse(&c.Command, 3*time.Second)
	orElse(&c.ReplyLimit, 2*c.Command)
	orElse(&c.DialTimeout, 5*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func orElse(d *time.Duration, def time.Duration) {
	if *d <= 0 {
		*d = def
	}
}
