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

const failoverAddr = "FailoverClient"

const writeTimeout = 3 * time.Second

// New returns a Redlatch client for the servers that client uses. It accepts a *redis.Client for one server or for
// Sentinels, or a *redis.ClusterClient; for nil and other types, such as *redis.Ring, it returns redlatch.ErrInvalid. client must stay open until the
// Redlatch client is closed; closing the Redlatch client does not close client. The default for
// redlatch.WithDialTimeout is client's DialTimeout or one second, whichever is longer.
//
// In a cluster, New sends PUBSUB SHARDNUMSUB, unless redlatch.WithShardedPubSub is set. ctx applies only to that
// command, and the error wraps redlatch.ErrNotSent if no node replied. Otherwise New does no I/O. It panics if ctx is
// nil or client was not created by a go-redis constructor.
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
		return nil, fmt.Errorf("%w: goredis: unsupported client type %T: want *redis.Client or *redis.ClusterClient", redlatch.ErrInvalid, client)
	}
	return nil, fmt.Errorf("%w: goredis: nil client", redlatch.ErrInvalid)
}

func newSingle(c *redis.Client, opts []redlatch.Option) (*redlatch.Client, error) {
	m := &master{options: *c.Options()}
	opts = append([]redlatch.Option{dialTimeout(m.options.DialTimeout), redlatch.WithReplicaDialer(m.dialReplica)}, opts...)
	if m.options.Addr != failoverAddr {
		return redlatch.New(m.dial, opts...)
	}
	return redlatch.NewSentinel(m.named, m.dialNamed, opts...)
}

func dialTimeout(d time.Duration) redlatch.Option {
	return redlatch.WithDialTimeout(max(d, time.Second))
}

var errSwitched = errors.New("goredis: the Sentinels now report another master")

type master struct {
	options redis.Options // a copy
}

func (m *master) dial(ctx context.Context) (redigo.Conn, error) { return dial(ctx, m.options) }

// A Sentinel client's dialer ignores addr, so dialNamed checks the address.
func (m *master) dialNamed(ctx context.Context, addr string) (redigo.Conn, error) {
	conn, err := connect(ctx, m.options)
	if err != nil {
		return nil, err
	}
	if conn.RemoteAddr().String() != addr {
		_ = conn.Close()
		return nil, errSwitched
	}
	return redlatch.NewConn(conn, writeTimeout), nil
}

// A Sentinel client's own dialer always connects to the master.
func (m *master) dialReplica(ctx context.Context, addr string) (redigo.Conn, error) {
	opt := m.options
	opt.Network, opt.Addr = "tcp", addr
	if m.options.Addr == failoverAddr {
		opt.Dialer = redis.NewDialer(&redis.Options{DialTimeout: opt.DialTimeout, TLSConfig: opt.TLSConfig})
	}
	return dial(ctx, opt)
}

// named connects to the master that the Sentinels report, and returns its address.
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

var errNoCluster = fmt.Errorf("%w: goredis: a ClusterClient with custom ClusterSlots, as from NewFailoverClusterClient, is not a Redis Cluster: use NewFailoverClient",
	redlatch.ErrInvalid)

var errNoClient = errors.New("goredis: the ClusterClient's NewClient function returned nil")

func newCluster(ctx context.Context, c *redis.ClusterClient, opts []redlatch.Option) (*redlatch.Client, error) {
	opt := c.Options()
	if opt.ClusterSlots != nil {
		return nil, errNoCluster
	}
	// NewClient returns a client with the settings for the node; it does no I/O.
	dialNode := func(ctx context.Context, addr string) (redigo.Conn, error) {
		node := opt.NewClient(nodeSettings(opt, addr))
		if node == nil {
			return nil, errNoClient
		}
		settings := *node.Options()
		_ = node.Close()
		return dial(ctx, settings)
	}
	return redlatch.NewCluster(ctx, opt.Addrs, dialNode, append([]redlatch.Option{dialTimeout(opt.DialTimeout)}, opts...)...)
}

func nodeSettings(o *redis.ClusterOptions, addr string) *redis.Options {
	return handshake(redis.Options{
		Addr: addr, ClientName: o.ClientName, Dialer: o.Dialer, OnConnect: o.OnConnect,
		Username: o.Username, Password: o.Password,
		CredentialsProvider:          o.CredentialsProvider,
		CredentialsProviderContext:   o.CredentialsProviderContext,
		StreamingCredentialsProvider: o.StreamingCredentialsProvider,
		DialTimeout:                  o.DialTimeout,
		TLSConfig:                    o.TLSConfig,
		DisableIdentity:              o.DisableIdentity || o.DisableIndentity, //nolint:staticcheck // users may set the misspelled field
		IdentitySuffix:               o.IdentitySuffix,
	})
}
