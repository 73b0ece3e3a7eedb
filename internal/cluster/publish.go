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
// node: the first that can be reached, as Redisson does, and answers that it serves clients
// now. When there is none, the error wraps transport.ErrNotSent. It sends PUBSUB SHARDNUMSUB.
func (a *Asker) PublishCommand(ctx context.Context, mode transport.Sharding) (string, error) {
	if mode != transport.ShardingAuto {
		return mode.PublishCommand(nil)
	}
	errs := []error{}
	for _, addr := range a.Nodes {
		conn, err := a.connect(ctx, addr)
		if err == nil {
			err = a.ask(ctx, conn)
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

func (a *Asker) connect(ctx context.Context, addr string) (redis.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, a.Conn.DialTimeout)
	defer cancel()
	return a.Dial(ctx, addr)
}

// ask asks a node whether it can count listeners of shards, and closes the connection. What
// is no transport.ServerError says why there was no answer.
func (a *Asker) ask(ctx context.Context, conn redis.Conn) error {
	defer func() { _ = conn.Close() }() // it has answered
	ctx, cancel := context.WithTimeout(ctx, a.Conn.Command)
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
