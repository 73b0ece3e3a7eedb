package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/transport"
)

// Config says how a [Cluster] reaches its nodes. All fields are required.
type Config struct {
	// Seeds are the addresses, host:port, of nodes that may be asked for the
	// topology: those that were there in the beginning will do.
	Seeds []string

	// Dial makes a connection to the node at addr, see mux.Dial and pubsub.Config.
	Dial redisconn.NodeDial

	// Publish is the publish command of scripts: PUBLISH or SPUBLISH.
	Publish string

	// Conn is what all connections have in common. Its dial functions and its name are
	// not used; its Logger reports slots that move and what is refused, too.
	Conn redisconn.Config
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

// Open returns a transport to the cluster of the nodes at seeds, host:port, which dials on
// first use and names its connections. With transport.ShardingAuto it asks a node how
// messages are published: ctx bounds that, and the error wraps transport.ErrNotSent when
// no node could be asked.
func Open(
	ctx context.Context, seeds []string, dial redisconn.NodeDial, sharding transport.Sharding, conn redisconn.Config,
) (*Cluster, error) {
	cfg := Config{Seeds: seeds, Dial: dial, Conn: conn}
	var err error
	if cfg.Publish, err = cfg.publishCommand(ctx, sharding); err != nil {
		return nil, err
	}
	naming := conn.Naming()
	cfg.Dial = func(ctx context.Context, addr string) (redis.Conn, error) {
		return naming(func(ctx context.Context) (redis.Conn, error) { return dial(ctx, addr) })(ctx)
	}
	return New(cfg), nil
}

// publishCommand decides between PUBLISH and SPUBLISH, for which it may have to ask a
// node: the first that can be reached, as Redisson does, and answers that it serves clients
// now. When there is none, the error wraps transport.ErrNotSent. It sends PUBSUB SHARDNUMSUB.
func (c *Config) publishCommand(ctx context.Context, mode transport.Sharding) (string, error) {
	if mode != transport.ShardingAuto {
		return mode.PublishCommand(nil)
	}
	errs := []error{}
	for _, addr := range c.Seeds {
		conn, err := c.connect(ctx, addr)
		if err == nil {
			err = c.ask(ctx, conn)
			var refusal *transport.ServerError
			switch answered := errors.As(err, &refusal); {
			case err == nil, answered && !unable(refusal):
				return mode.PublishCommand(func() error { return err })
			case answered:
				err = errors.New(err.Error()) // it decides nothing
			}
		}
		errs = append(errs, fmt.Errorf("%s: %w", addr, err))
	}
	return "", fmt.Errorf("%w: no node of the cluster can be reached: %w", transport.ErrNotSent, errors.Join(errs...))
}

func (c *Config) connect(ctx context.Context, addr string) (redis.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Conn.DialTimeout)
	defer cancel()
	return c.Dial(ctx, addr)
}

// ask asks a node whether it can count listeners of shards, and closes the connection. What
// is no transport.ServerError says why there was no answer.
func (c *Config) ask(ctx context.Context, conn redis.Conn) error {
	defer func() { _ = conn.Close() }() // it has answered
	ctx, cancel := context.WithTimeout(ctx, c.Conn.Command)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, err := conn.Do("PUBSUB", "SHARDNUMSUB", "0")
	var refusal redis.Error
	switch {
	case errors.As(err, &refusal):
		return &transport.ServerError{Text: string(refusal)}
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("no answer to PUBSUB: %w", context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("no answer to PUBSUB: %w", err)
	}
	return nil
}

// unable reports whether a node says that it can serve no client just now.
func unable(refusal *transport.ServerError) bool {
	switch refusal.Code() {
	case "BUSY", "LOADING", "MASTERDOWN", "CLUSTERDOWN":
		return true
	}
	return refusal.IsFull()
}
