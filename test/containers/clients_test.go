package containers

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	redigo "github.com/gomodule/redigo/redis"
	goredislib "github.com/redis/go-redis/v9"
	rueidislib "github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapter/goredis"
	"github.com/redlatch/redlatch/adapter/rueidis"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/transport"
)

// maker creates a transport for one client. All transports share a client of the library.
type maker func(tb testing.TB) transport.Transport

// library is a client library for which there is an adapter. Its functions create a client of the library, which is
// closed when the test ends. The server must still be running at that time.
type library struct {
	name string
	// onServer connects to the server at addr as user, whose password is its name, or as the default user if it is "".
	onServer func(tb testing.TB, addr, user string) maker
	// onCluster connects to a cluster. It is nil if the library does not support clusters.
	onCluster func(tb testing.TB, at cluster) maker
}

// cluster contains the settings of a cluster client.
type cluster struct {
	addrs    []string
	dial     func(ctx context.Context, network, addr string) (net.Conn, error) // if nil, the library's default is used
	sharding transport.Sharding
}

var libraries = []library{
	{name: "redigo", onServer: redigoTo},
	{name: "go-redis", onServer: goRedisTo, onCluster: goRedisIn},
	{name: "rueidis", onServer: rueidisTo, onCluster: rueidisIn},
}

// opened opens a transport within a time limit.
func opened(tb testing.TB, open func(ctx context.Context) (transport.Transport, error)) transport.Transport {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	tr, err := open(ctx)
	require.NoError(tb, err)
	return tr
}

func redigoTo(_ testing.TB, addr, user string) maker {
	return func(testing.TB) transport.Transport {
		return redisconn.NewRedigo(redisconn.Config{
			Dial: func(ctx context.Context) (redigo.Conn, error) {
				return redigo.DialContext(ctx, "tcp", addr,
					redigo.DialWriteTimeout(3*time.Second), redigo.DialUsername(user), redigo.DialPassword(user))
			},
			Command: 3 * time.Second, Lease: 30 * time.Second, DialTimeout: 5 * time.Second,
		})
	}
}

func overGoRedis(tb testing.TB, c goredislib.UniversalClient, opts ...redlatch.Option) maker {
	tb.Helper()
	tb.Cleanup(func() { assert.NoError(tb, c.Close(), "closed by a transport") })
	return func(tb testing.TB) transport.Transport {
		tb.Helper()
		return opened(tb, func(ctx context.Context) (transport.Transport, error) {
			client, err := goredis.New(ctx, c, opts...)
			if err != nil {
				return nil, err
			}
			return engine.EngineOf(client).Transport, nil
		})
	}
}

func goRedisTo(tb testing.TB, addr, user string) maker {
	tb.Helper()
	return overGoRedis(tb, goredislib.NewClient(&goredislib.Options{Addr: addr, Username: user, Password: user}))
}

func goRedisIn(tb testing.TB, at cluster) maker {
	tb.Helper()
	c := goredislib.NewClusterClient(&goredislib.ClusterOptions{Addrs: at.addrs, Dialer: at.dial})
	return overGoRedis(tb, c, redlatch.WithShardedPubSub(at.sharding))
}

func overRueidis(tb testing.TB, options rueidislib.ClientOption, opts ...redlatch.Option) maker {
	tb.Helper()
	c, err := rueidislib.NewClient(options)
	require.NoError(tb, err)
	tb.Cleanup(c.Close)
	return func(tb testing.TB) transport.Transport {
		tb.Helper()
		return opened(tb, func(ctx context.Context) (transport.Transport, error) {
			client, err := rueidis.New(ctx, c, opts...)
			if err != nil {
				return nil, err
			}
			return engine.EngineOf(client).Transport, nil
		})
	}
}

func rueidisTo(tb testing.TB, addr, user string) maker {
	tb.Helper()
	return overRueidis(tb, rueidislib.ClientOption{
		InitAddress: []string{addr}, ForceSingleClient: true, Username: user, Password: user,
	})
}

func rueidisIn(tb testing.TB, at cluster) maker {
	tb.Helper()
	options := rueidislib.ClientOption{InitAddress: at.addrs}
	if at.dial != nil {
		options.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return at.dial(ctx, "tcp", addr)
		}
	}
	return overRueidis(tb, options, redlatch.WithShardedPubSub(at.sharding))
}
