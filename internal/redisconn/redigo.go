package redisconn

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/redisconn/config"
	"github.com/redlatch/redlatch/internal/replication"
	"github.com/redlatch/redlatch/internal/subcount"
	"github.com/redlatch/redlatch/pubsub"
	"github.com/redlatch/redlatch/transport"
)

// Config says how the built-in transports connect.
type Config = config.Config

// Redigo is the built-in transport: one command connection and one subscription
// connection to one master, one more while replicas are waited for, and one to each of
// its replicas while listeners are counted.
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
	_ transport.Leader      = (*Redigo)(nil)
)

// NewRedigo returns a transport that dials on first use.
func NewRedigo(cfg Config) *Redigo {
	name := &naming{name: cfg.ClientName, logger: cfg.Logger}
	dial := name.named(cfg.Dial)
	m := muxOf(&cfg, dial)
	m.Logger, m.OnReconnect = cfg.Logger, cfg.OnReconnect("commands")
	sub := pubsub.New(pubsub.Config{
		Dial: dial, DialTimeout: cfg.DialTimeout, Logger: cfg.Logger, OnReconnect: cfg.OnReconnect("subscriptions"),
	})
	m.OnMoved = sub.Reconnect
	r := &Redigo{Mux: mux.New(m), sub: sub}
	r.copies = replication.New(replication.Config{Dial: dial, Conn: cfg, Replaced: r.Reconnected})
	r.counter = subcount.New(subcount.Config{
		Master: r.Mux, Replica: replicaOf(&cfg, name), Publish: r.PublishCommand(), Command: cfg.Command,
	})
	return r
}

func muxOf(cfg *Config, dial mux.Dial) mux.Config {
	return mux.Config{Dial: dial, ReplyLimit: cfg.ReplyLimit(), DialTimeout: cfg.DialTimeout}
}

// replicaOf returns what makes the connections to replicas, nil when none can be
// made.
func replicaOf(cfg *Config, name *naming) func(addr string) subcount.Replica {
	if cfg.DialReplica == nil {
		return nil
	}
	return func(addr string) subcount.Replica {
		m := muxOf(cfg, name.named(func(ctx context.Context) (redis.Conn, error) {
			return cfg.DialReplica(ctx, addr)
		}))
		m.Logger = cfg.LoggerWith("replica", addr)
		return mux.New(m)
	}
}

// naming is what connections are called on the server.
type naming struct {
	name          string // "": nothing
	logger        *slog.Logger
	refusalLogged sync.Once // of a server that refuses
}

// named makes dial name its connections. A server that refuses is tolerated, and
// refusalLogged of once: the name is for people who read CLIENT LIST.
func (n *naming) named(dial func(context.Context) (redis.Conn, error)) func(context.Context) (redis.Conn, error) {
	if n.name == "" {
		return dial
	}
	return func(ctx context.Context) (redis.Conn, error) {
		conn, err := dial(ctx)
		if err != nil || conn == nil {
			return nil, err // what has no connection is refused as without a name
		}
		// The connection knows nothing of ctx: end the command with it.
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		_, err = conn.Do("CLIENT", "SETNAME", n.name)
		switch {
		case !stop():
			return nil, context.Cause(ctx)
		case err != nil && conn.Err() != nil:
			_ = conn.Close() // broken anyway
			return nil, err
		case err != nil && (&transport.ServerError{Text: err.Error()}).IsFull():
			_ = conn.Close() // the server has no room for it, and hangs up
			return nil, err
		case err != nil:
			n.refused(err)
		}
		return conn, nil
	}
}

// refused tells of a server that refuses, once.
func (n *naming) refused(err error) {
	if n.logger == nil {
		return
	}
	why := []any{"error", err}
	if strings.HasPrefix(err.Error(), "NOPERM ") {
		why = append(why, "right", "+client|setname")
	}
	n.refusalLogged.Do(func() { n.logger.Warn("redlatch: the server does not name this client's connections", why...) })
}

// Leads is part of transport.Leader. Calls are led on connections that Open and
// redlatch.NewConn have made, on which the end of a connection can be seen without reading.
func (r *Redigo) Leads(outermost transport.Transport) bool {
	return outermost == transport.Transport(r)
}

// Subscribe is part of transport.Transport.
func (r *Redigo) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	return r.sub.Subscribe(ctx, channel)
}

// Listen is Subscribe for callers that need every message; see
// [pubsub.Subscriber.Listen].
func (r *Redigo) Listen(channel string, sink pubsub.Sink) (stop func()) {
	return r.sub.Listen(channel, sink)
}

// Listeners is part of transport.Counter. It sends PUBSUB NUMSUB to the master and
// to its replicas; see [subcount.Counter.Listeners].
func (r *Redigo) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	return r.counter.Listeners(ctx, channels...)
}

// Replicate is part of transport.Replicator. It sends the call and WAIT on a connection
// of its own, which is made for the first of them and closed after a minute without any.
func (r *Redigo) Replicate(call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
	r.copies.Replicate(call, replicas, timeout, done)
}

// PublishCommand is part of transport.Transport. One master without a cluster
// always publishes with PUBLISH, as Redisson does.
func (r *Redigo) PublishCommand() string { return "PUBLISH" }

// Close is part of transport.Transport.
func (r *Redigo) Close() error {
	subErr := r.sub.Close()
	r.counter.Close()
	r.copies.Close()
	if err := r.Mux.Close(); err != nil {
		return err
	}
	return subErr
}
