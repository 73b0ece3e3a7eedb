// Package redisconn provides the transport to a single master, [Redigo], and the configuration shared by all built-in
// transports.
package redisconn

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/builtin"
	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/pubsub"
	"github.com/redlatch/redlatch/internal/replication"
	"github.com/redlatch/redlatch/internal/subcount"
	"github.com/redlatch/redlatch/transport"
)

// Redigo is the built-in transport to one master. It has separate connections for commands, for subscriptions, for
// calls that wait for replicas, and for counting the subscribers on each replica.
type Redigo struct {
	*mux.Mux
	sub     *pubsub.Subscriber
	counter *subcount.Counter
	copies  *replication.Batcher
}

var (
	_ transport.Transport   = (*Redigo)(nil)
	_ transport.Fencer      = (*Redigo)(nil)
	_ transport.Reconnecter = (*Redigo)(nil)
	_ transport.Counter     = (*Redigo)(nil)
	_ transport.Replicator  = (*Redigo)(nil)
	_ builtin.Leader        = (*Redigo)(nil)
)

// NewRedigo returns a transport that connects when it is first used.
func NewRedigo(cfg Config) *Redigo {
	naming := cfg.Naming()
	dial := naming(cfg.Dial)
	m := mux.Config{Dial: dial, ReplyLimit: cfg.ReplyLimit(), DialTimeout: cfg.DialTimeout}
	replica := func(addr string) subcount.Replica {
		m := m
		m.Dial = naming(func(ctx context.Context) (redis.Conn, error) { return cfg.DialReplica(ctx, addr) })
		m.Logger = cfg.LoggerWith("replica", addr)
		return mux.New(m)
	}
	if cfg.DialReplica == nil {
		replica = nil
	}
	r := &Redigo{sub: pubsub.New(pubsub.Config{
		Dial: dial, DialTimeout: cfg.DialTimeout, Logger: cfg.Logger, OnReconnect: cfg.OnReconnect("subscriptions"),
	})}
	commands := m
	commands.Logger, commands.OnReconnect, commands.OnMoved = cfg.Logger, cfg.OnReconnect("commands"), r.sub.Reconnect
	r.Mux = mux.New(commands)
	r.copies = replication.New(replication.Config{
		Dial: dial, DialTimeout: cfg.DialTimeout, Command: cfg.Command, Replaced: r.Reconnected,
	})
	r.counter = subcount.New(subcount.Config{
		Master: r.Mux, Replica: replica, Publish: r.PublishCommand(), Command: cfg.Command,
	})
	return r
}

// Leads implements builtin.Leader.
func (r *Redigo) Leads(outermost transport.Transport) bool {
	return outermost == transport.Transport(r)
}

// Subscribe implements transport.Transport.
func (r *Redigo) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	return r.sub.Subscribe(ctx, channel)
}

// Listen is like Subscribe, but delivers every message; see [pubsub.Subscriber.Listen].
func (r *Redigo) Listen(channel string, sink pubsub.Sink) (stop func()) {
	return r.sub.Listen(channel, sink)
}

// Listeners implements transport.Counter.
func (r *Redigo) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	return r.counter.Listeners(ctx, channels...)
}

// Replicate implements transport.Replicator. It uses a separate connection.
func (r *Redigo) Replicate(call *transport.Call, replicas int, timeout time.Duration, done func(any, int64, error)) {
	r.copies.Replicate(call, replicas, timeout, done, false)
}

// PublishCommand implements transport.Transport. Like Redisson, it uses PUBLISH outside of clusters.
func (r *Redigo) PublishCommand() string { return "PUBLISH" }

// Close implements transport.Transport.
func (r *Redigo) Close() error {
	_ = r.sub.Close() // always nil
	r.counter.Close()
	r.copies.Close()
	return r.Mux.Close()
}
