package cluster

import (
	"context"
	"log/slog"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/redisconn/config"
)

// Config says how a [Cluster] reaches its nodes. All fields are required.
type Config struct {
	// Seeds are the addresses, host:port, of nodes that may be asked for the
	// topology: those that were there in the beginning will do.
	Seeds []string

	// Dial makes a connection to the node at addr, see mux.Dial and pubsub.Config.
	Dial func(ctx context.Context, addr string) (redis.Conn, error)

	// Publish is the publish command of scripts: PUBLISH or SPUBLISH.
	Publish string

	// Conn is what all connections have in common. Its dial functions and its name are
	// not used; its Logger reports slots that move and what is refused, too.
	Conn config.Config
}

func (c Config) withDefaults() Config {
	if len(c.Seeds) == 0 || c.Dial == nil || c.Publish == "" {
		panic("cluster: Config lacks Seeds, Dial or Publish")
	}
	if c.Conn.Logger == nil {
		c.Conn.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
