package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/builtin"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/transport"
)

// Config configures a [Cluster]. All fields are required.
type Config struct {
	// Seeds contains the addresses of nodes, in the form host:port.
	Seeds []string

	// Dial connects to the node at addr; see mux.Config and pubsub.Config.
	Dial redisconn.NodeDial

	// Publish is the command with which scripts publish: PUBLISH or SPUBLISH.
	Publish string

	// Conn configures all connections. Its dial functions and client name are not used.
	Conn redisconn.Config
}

func (c Config) withDefaults() Config {
	if len(c.Seeds) == 0 || c.Dial == nil || c.Publish == "" {
		panic("cluster: Config requires Seeds, Dial and Publish")
	}
	if c.Conn.Logger == nil {
		c.Conn.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Open returns a transport to the cluster that contains the nodes at seeds, in the form host:port.
// ctx limits the query with which it finds out how messages are published. If no node answers, the
// error wraps transport.ErrNotSent.
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

// publishCommand returns PUBLISH or SPUBLISH. With ShardingAuto, it sends PUBSUB SHARDNUMSUB to the
// seeds in order, as Redisson does, until a node that serves clients answers. If there is none, the
// error wraps transport.ErrNotSent.
func (c *Config) publishCommand(ctx context.Context, mode transport.Sharding) (string, error) {
	switch mode {
	case transport.ShardingOn:
		return "SPUBLISH", nil
	case transport.ShardingOff:
		return "PUBLISH", nil
	}
	var errs []error
	for _, addr := range c.Seeds {
		refusal, err := c.ask(ctx, addr)
		switch {
		case err == nil && refusal == nil:
			return "SPUBLISH", nil
		case err == nil && !unable(refusal):
			return "PUBLISH", nil
		case err == nil:
			err = errors.New(refusal.Error()) // this says nothing about the command
		}
		errs = append(errs, fmt.Errorf("%s: %w", addr, err))
	}
	return "", fmt.Errorf("%w: cannot reach any cluster node: %w", transport.ErrNotSent, errors.Join(errs...))
}

// ask queries whether the node at addr can count subscribers to shard channels. refusal is the
// node's error reply, if any. An error from the caller's dial function is returned as err, even if
// it is a *ServerError.
func (c *Config) ask(ctx context.Context, addr string) (refusal *transport.ServerError, err error) {
	dialing, cancel := context.WithTimeout(ctx, c.Conn.DialTimeout)
	defer cancel()
	conn, err := c.Dial(dialing, addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel = context.WithTimeout(ctx, c.Conn.Command)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, err = conn.Do("PUBSUB", "SHARDNUMSUB", "0")
	var sent redis.Error
	switch {
	case err == nil:
		return nil, nil
	case errors.As(err, &sent) && conn.Err() == nil:
		return &transport.ServerError{Text: string(sent)}, nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return nil, fmt.Errorf("no reply to PUBSUB: %w", err)
}

func unable(refusal *transport.ServerError) bool {
	switch refusal.Code() {
	case "BUSY", "LOADING", "MASTERDOWN", "CLUSTERDOWN":
		return true
	}
	return builtin.IsFull(refusal)
}
