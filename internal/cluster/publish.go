package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/redisconn/config"
	"github.com/redlatch/redlatch/transport"
)

// Asker asks a node how messages are published in its cluster.
type Asker struct {
	// Nodes are the addresses, host:port, of those that may be asked.
	Nodes []string
	// Dial makes a connection to the node at addr.
	Dial func(ctx context.Context, addr string) (redis.Conn, error)
	// Conn bounds the dials and the wait for the answer.
	Conn *config.Config
}

// PublishCommand decides between PUBLISH and SPUBLISH, for which it may have to ask a
// node: the first that can be reached, as Redisson does. When none can be, the error
// wraps transport.ErrNotSent. It sends PUBSUB SHARDNUMSUB.
func (a *Asker) PublishCommand(ctx context.Context, mode transport.Sharding) (string, error) {
	var conn redis.Conn
	if mode == transport.ShardingAuto {
		var err error
		if conn, err = a.first(ctx); err != nil {
			return "", fmt.Errorf("%w: no node of the cluster can be reached: %w", transport.ErrNotSent, err)
		}
		defer func() { _ = conn.Close() }() // it has answered
	}
	ctx, cancel := context.WithTimeout(ctx, a.Conn.Command)
	defer cancel()
	return mode.PublishCommand(func() error {
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		_, err := conn.Do("PUBSUB", "SHARDNUMSUB", "0")
		var refusal redis.Error
		switch {
		case errors.As(err, &refusal):
			return &transport.ServerError{Text: string(refusal)}
		case err != nil && ctx.Err() != nil:
			return fmt.Errorf("%w: %w", transport.ErrUncertain, context.Cause(ctx))
		case err != nil:
			return fmt.Errorf("%w: %w", transport.ErrUncertain, err)
		}
		return nil
	})
}

// first connects to the first node that can be reached.
func (a *Asker) first(ctx context.Context) (redis.Conn, error) {
	errs := []error{}
	for _, addr := range a.Nodes {
		ctx, cancel := context.WithTimeout(ctx, a.Conn.DialTimeout)
		conn, err := a.Dial(ctx, addr)
		cancel()
		if err == nil {
			return conn, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", addr, err))
	}
	return nil, errors.Join(errs...)
}

// Masters returns the addresses of the masters of a cluster, each once, in the order of
// their slots, by what the node at from has answered to CLUSTER SLOTS.
func Masters(reply any, from string) ([]string, error) {
	spans, err := spansOf(reply, from)
	if err != nil {
		return nil, err
	}
	var masters []string
	seen := map[string]bool{}
	for _, s := range spans {
		if !seen[s.master] {
			seen[s.master] = true
			masters = append(masters, s.master)
		}
	}
	return masters, nil
}
