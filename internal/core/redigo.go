package core

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/pubsub"
	"github.com/redlatch/redlatch/transport"
)

// RedigoConfig says how the built-in transport connects.
type RedigoConfig struct {
	// Dial makes a connection that is ready to use.
	Dial func(ctx context.Context) (redis.Conn, error)
	// Command bounds the wait for one reply.
	Command time.Duration
	// Lease is that of holds without one of their own.
	Lease time.Duration
	// DialTimeout bounds one dial.
	DialTimeout time.Duration
	// ClientName names the connections on the server, "" does not.
	ClientName string
	// Logger hears of connections made and lost.
	Logger *slog.Logger
	// Hooks are told of connections made in place of lost ones.
	Hooks Hooks
}

// Redigo is the built-in transport: one command connection and one subscription
// connection to one master.
type Redigo struct {
	*mux.Mux
	sub *pubsub.Subscriber
}

var (
	_ transport.Transport   = (*Redigo)(nil)
	_ transport.Fencer      = (*Redigo)(nil)
	_ transport.Reconnecter = (*Redigo)(nil)
	_ transport.Counter     = (*Redigo)(nil)
)

// NewRedigo returns a transport that dials on first use.
func NewRedigo(cfg RedigoConfig) *Redigo {
	dial := named(cfg.Dial, cfg.ClientName)
	return &Redigo{
		Mux: mux.New(mux.Config{
			Dial:        dial,
			ReplyLimit:  replyLimit(cfg.Command, cfg.Lease),
			DialTimeout: cfg.DialTimeout,
			Logger:      cfg.Logger,
			OnReconnect: cfg.Hooks.reconnected("commands"),
		}),
		sub: pubsub.New(pubsub.Config{
			Dial: dial, DialTimeout: cfg.DialTimeout, Logger: cfg.Logger, OnReconnect: cfg.Hooks.reconnected("subscriptions"),
		}),
	}
}

// replyLimit is how long a connection may owe a reply before it is given up:
// long enough for a slow script, short enough to try a renewal again on another
// connection within the lease.
func replyLimit(command, lease time.Duration) time.Duration {
	return max(min(2*command, lease/4), 500*time.Millisecond)
}

// named makes dial name its connections. A server that refuses is tolerated: the
// name is for people who read CLIENT LIST.
func named(dial func(context.Context) (redis.Conn, error), name string) func(context.Context) (redis.Conn, error) {
	if name == "" {
		return dial
	}
	return func(ctx context.Context) (redis.Conn, error) {
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		// The connection knows nothing of ctx: end the command with it.
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		_, err = conn.Do("CLIENT", "SETNAME", name)
		switch {
		case !stop():
			return nil, context.Cause(ctx)
		case err != nil && conn.Err() != nil:
			_ = conn.Close() // broken anyway
			return nil, err
		}
		return conn, nil
	}
}

// Subscribe is part of transport.Transport.
func (r *Redigo) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	return r.sub.Subscribe(ctx, channel)
}

// Listeners is part of transport.Counter. It sends PUBSUB NUMSUB.
func (r *Redigo) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	if len(channels) == 0 {
		return nil, nil
	}
	call := &transport.Call{Command: "PUBSUB", Args: []any{"NUMSUB"}}
	for _, channel := range channels {
		call.Args = append(call.Args, channel)
	}
	reply, err := r.Ask(ctx, call)
	if err != nil {
		return nil, err
	}
	return listeners(reply, len(channels))
}

// listeners decodes channels and numbers in turn, n of each.
func listeners(reply any, n int) ([]int64, error) {
	pairs, ok := reply.([]any)
	if !ok || len(pairs) != 2*n {
		return nil, fmt.Errorf("%w to PUBSUB NUMSUB", codec.ErrBadReply)
	}
	counts := make([]int64, n)
	for i := range counts {
		if counts[i], ok = pairs[2*i+1].(int64); !ok || counts[i] < 0 {
			return nil, fmt.Errorf("%w to PUBSUB NUMSUB", codec.ErrBadReply)
		}
	}
	return counts, nil
}

// PublishCommand is part of transport.Transport. One master without a cluster
// always publishes with PUBLISH, as Redisson does.
func (r *Redigo) PublishCommand() string { return "PUBLISH" }

// Close is part of transport.Transport.
func (r *Redigo) Close() error {
	subErr := r.sub.Close()
	if err := r.Mux.Close(); err != nil {
		return err
	}
	return subErr
}
