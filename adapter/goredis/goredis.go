package goredis

import (
	"context"
	"errors"
	"fmt"
	"time"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
)

// failoverAddr is the address that go-redis gives to clients of Sentinels.
const failoverAddr = "FailoverClient"

// writeTimeout bounds one write to a connection.
const writeTimeout = 3 * time.Second

// New returns a Redlatch client of the deployment that client leads to: one server or what
// Sentinels watch for a *redis.Client, a Redis Cluster for a *redis.ClusterClient. Other
// clients are refused: a *redis.Ring has no one master for a key. The options are those of
// package redlatch; redlatch.WithDialTimeout is client's DialTimeout unless it is given, at
// least 1 s.
//
// The Redlatch client makes connections of its own with the settings of client, when they
// are first needed; see the package comment. client is never closed, and must not be
// closed before the Redlatch client is. In a cluster New asks one node how it publishes,
// unless redlatch.WithShardedPubSub decides: ctx bounds that, and an error then wraps
// redlatch.ErrNotSent when no node could be asked. It sends PUBSUB SHARDNUMSUB. Otherwise
// it does no I/O. It panics when ctx is nil, and when client was made by no constructor of
// go-redis.
func New(ctx context.Context, client redis.UniversalClient, opts ...redlatch.Option) (*redlatch.Client, error) {
	if ctx == nil {
		panic("goredis: nil Context")
	}
	switch c := client.(type) {
	case *redis.Client:
		if c != nil {
			return newSingle(c, opts)
		}
	case *redis.ClusterClient:
		if c != nil {
			return newCluster(ctx, c, opts)
		}
	case nil:
	default:
		return nil, fmt.Errorf("goredis: a %T cannot be used: give a *redis.Client or a *redis.ClusterClient", client)
	}
	return nil, errors.New("goredis: the client is nil")
}

// newSingle makes a client of one master.
func newSingle(c *redis.Client, opts []redlatch.Option) (*redlatch.Client, error) {
	m := &master{options: *c.Options()}
	opts = append([]redlatch.Option{dialTimeout(m.options.DialTimeout), redlatch.WithReplicaDialer(m.dialReplica)}, opts...)
	if m.options.Addr != failoverAddr {
		return redlatch.New(m.dial, opts...)
	}
	return redlatch.NewSentinel(m.named, m.dialNamed, opts...)
}

// dialTimeout bounds what it takes to make a connection, of which d is the first part.
func dialTimeout(d time.Duration) redlatch.Option {
	return redlatch.WithDialTimeout(max(d, time.Second))
}

// errSwitched is for a connection that was made while the Sentinels named another master.
var errSwitched = errors.New("goredis: the Sentinels name another master by now")

// master makes connections to the one master that a *redis.Client leads to, and to its
// replicas.
type master struct {
	options redis.Options // a copy
}

func (m *master) dial(ctx context.Context) (redigo.Conn, error) { return dial(ctx, m.options) }

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
	return redlatch.NewConn(conn, writeTimeout), nil
}

// dialReplica connects to a replica. Dialers of clients of Sentinels lead to the
// master, whatever the address; how those of its users reach a replica is not known.
func (m *master) dialReplica(ctx context.Context, addr string) (redigo.Conn, error) {
	opt := m.options
	opt.Network, opt.Addr = "tcp", addr
	if m.options.Addr == failoverAddr {
		opt.Dialer = redis.NewDialer(&redis.Options{DialTimeout: opt.DialTimeout, TLSConfig: opt.TLSConfig})
	}
	return dial(ctx, opt)
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
