package goredis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/internal/failover"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/transport"
)

// failoverAddr is the address that go-redis gives to clients of Sentinels.
const failoverAddr = "FailoverClient"

// New returns a transport to the deployment that client leads to, for
// redlatch.NewWithTransport: one server or what Sentinels watch for a *redis.Client,
// a Redis Cluster for a *redis.ClusterClient. Other clients are refused: a *redis.Ring
// has no one master for a key.
//
// The transport makes connections of its own with the client's settings, when they
// are first needed; see the package comment. The client is never closed, and must not
// be closed before the transport is. In a cluster New asks one node how it publishes,
// unless [WithShardedPubSub] tells: ctx bounds that, and an error then wraps
// transport.ErrNotSent when no node could be asked. It sends PUBSUB SHARDNUMSUB. It
// panics when ctx is nil, and when client was made by no constructor of go-redis.
func New(ctx context.Context, client redis.UniversalClient, opts ...Option) (transport.Transport, error) {
	if ctx == nil {
		panic("goredis: nil Context")
	}
	set, err := configure(opts)
	if err != nil {
		return nil, err
	}
	switch c := client.(type) {
	case *redis.Client:
		if c != nil {
			return newSingle(c, &set), nil
		}
	case *redis.ClusterClient:
		if c != nil {
			return newCluster(ctx, c, &set)
		}
	case nil:
	default:
		return nil, fmt.Errorf("goredis: a %T cannot be used: give a *redis.Client or a *redis.ClusterClient", client)
	}
	return nil, errors.New("goredis: the client is nil")
}

// newSingle makes the transport to one master.
func newSingle(c *redis.Client, set *settings) transport.Transport {
	m := &master{options: *c.Options(), write: set.replyLimit / 2}
	cfg := redisconn.Config{
		Dial:        m.dial,
		DialReplica: m.dialReplica,
		Command:     set.replyLimit / 2,
		Lease:       4 * set.replyLimit,
		DialTimeout: dialTimeout(c.Options().DialTimeout),
		Logger:      set.logger,
	}
	if c.Options().Addr != failoverAddr {
		return redisconn.NewRedigo(cfg)
	}
	return failover.New(failover.Config{Master: m.named, Dial: m.dialNamed, Conn: cfg})
}

// dialTimeout bounds what it takes to make a connection, of which d is the first part.
func dialTimeout(d time.Duration) time.Duration { return max(d, time.Second) }

// errSwitched is for a connection that was made while the Sentinels named another master.
var errSwitched = errors.New("goredis: the Sentinels name another master by now")

// master makes connections to the one master that a *redis.Client leads to, and to its
// replicas.
type master struct {
	options redis.Options // a copy
	write   time.Duration // bound on one write
}

func (m *master) dial(ctx context.Context) (redigo.Conn, error) {
	conn, err := connect(ctx, m.options)
	if err != nil {
		return nil, err
	}
	return redigo.NewConn(conn, 0, m.write), nil
}

// dialNamed connects to the master at addr. The client's dialer leads to the master that
// the Sentinels name, whatever the address.
func (m *master) dialNamed(ctx context.Context, addr string) (redigo.Conn, error) {
	conn, err := connect(ctx, m.options)
	if err != nil {
		return nil, err
	}
	if conn.RemoteAddr().String() != addr {
		_ = conn.Close() // of no use
		return nil, errSwitched
	}
	return redigo.NewConn(conn, 0, m.write), nil
}

// dialReplica connects to a replica. Dialers of clients of Sentinels lead to the
// master, whatever the address; how those of its users reach a replica is not known.
func (m *master) dialReplica(ctx context.Context, addr string) (redigo.Conn, error) {
	opt := m.options
	opt.Network, opt.Addr = "tcp", addr
	if m.options.Addr == failoverAddr {
		opt.Dialer = redis.NewDialer(&redis.Options{DialTimeout: opt.DialTimeout, TLSConfig: opt.TLSConfig})
	}
	conn, err := connect(ctx, opt)
	if err != nil {
		return nil, err
	}
	return redigo.NewConn(conn, 0, m.write), nil
}

// named connects to the master that the Sentinels name now, and returns its address.
func (m *master) named(ctx context.Context) (string, error) {
	conn, err := m.options.Dialer(ctx, m.options.Network, m.options.Addr)
	if err != nil {
		return "", err
	}
	if conn == nil {
		return "", errNoConn
	}
	addr := conn.RemoteAddr().String()
	return addr, conn.Close()
}

// Option sets something about a transport.
type Option func(*settings)

type settings struct {
	logger     *slog.Logger
	sharding   transport.Sharding
	replyLimit time.Duration
}

// leastReplyLimit is less than which no server can be relied on to answer, and
// mostReplyLimit more than anybody can have meant.
const (
	leastReplyLimit = 500 * time.Millisecond
	mostReplyLimit  = time.Hour
)

func configure(opts []Option) (settings, error) {
	set := settings{logger: slog.New(slog.DiscardHandler), replyLimit: 6 * time.Second}
	for _, o := range opts {
		if o != nil {
			o(&set)
		}
	}
	switch {
	case set.replyLimit < leastReplyLimit:
		return set, fmt.Errorf("goredis: a reply limit of %v is less than %v", set.replyLimit, leastReplyLimit)
	case set.replyLimit > mostReplyLimit:
		return set, fmt.Errorf("goredis: a reply limit of %v is more than %v", set.replyLimit, mostReplyLimit)
	case set.sharding > transport.ShardingOff:
		return set, fmt.Errorf("goredis: there is no %v", set.sharding)
	}
	return set, nil
}

// WithLogger sets where connections made and lost are logged. Default: nowhere. The zero
// Logger, which logs nowhere, changes nothing.
func WithLogger(l *slog.Logger) Option {
	return func(s *settings) {
		if l != nil && l.Handler() != nil {
			s.logger = l
		}
	}
}

// WithShardedPubSub sets how messages are published in a cluster. It must be the same
// in the whole fleet: Redisson calls it shardedSubscriptionMode. Default:
// transport.ShardingAuto. Elsewhere than in a cluster it has no effect.
func WithShardedPubSub(s transport.Sharding) Option { return func(set *settings) { set.sharding = s } }

// WithReplyLimit sets how long a connection may owe a reply, while none comes to any
// other call on it, until it is given up and made anew. It takes the place of the
// client's ReadTimeout, and should be twice redlatch.WithCommandTimeout, but no more
// than a quarter of the shortest lease. Default 6 s; from 500 ms to an hour.
func WithReplyLimit(d time.Duration) Option { return func(s *settings) { s.replyLimit = d } }
