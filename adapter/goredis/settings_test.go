package goredis

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/redistest/breakable"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

func TestConnectionsUseClientOptions(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithPassword("secret"))
	prepared := make(chan string, 10)
	tr := over(t, redis.NewClient(&redis.Options{
		Addr: server.Addr(), Protocol: 3, DB: 5, ClientName: "billing", IdentitySuffix: "billing-lib",
		CredentialsProvider: func() (string, string) { return "", "secret" },
		OnConnect: func(ctx context.Context, cn *redis.Conn) error {
			prepared <- cn.Echo(ctx, "from OnConnect").Val()
			return nil
		},
	}))
	defer func() { require.NoError(t, tr.Close()) }()
	info, err := ask(tr, "CLIENT", "INFO")
	require.NoError(t, err)
	text := string(info.([]byte))
	require.Contains(t, text, "name=billing ")
	require.Contains(t, text, "db=5 ")
	require.Equal(t, "from OnConnect", <-prepared)
	_, err = tr.Subscribe(t.Context(), "c")
	require.NoError(t, err)
	require.Equal(t, 2, server.Clients(t), "one connection for commands and one for subscriptions")
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithUnixSocket())
	tr := over(t, redis.NewClient(&redis.Options{Addr: server.Socket()}))
	defer func() { require.NoError(t, tr.Close()) }()
	_, err := ask(tr, "PING")
	require.NoError(t, err)
}

func TestDialErrorIsReported(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithPassword("secret"))
	no := errors.New("not today")
	for name, c := range map[string]struct {
		opt  redis.Options
		want string
	}{
		"no server there": {redis.Options{Addr: "127.0.0.1:1"}, "connection refused"},
		"wrong password":  {redis.Options{Addr: server.Addr(), Password: "wrong"}, "WRONGPASS"},
		"no such db":      {redis.Options{Addr: server.Addr(), Password: "secret", DB: 9999}, "out of range"},
		"OnConnect refuses": {redis.Options{
			Addr: server.Addr(), Password: "secret",
			OnConnect: func(context.Context, *redis.Conn) error { return no },
		}, no.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := over(t, redis.NewClient(&c.opt))
			defer func() { require.NoError(t, tr.Close()) }()
			_, err := ask(tr, "PING")
			require.ErrorIs(t, err, transport.ErrNotSent)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "secret")
			require.Less(t, strings.Count(err.Error(), "goredis"), 2, "%v", err)
		})
	}
}

// timeless is a connection without deadlines, as through an SSH tunnel.
type timeless struct {
	net.Conn
	closed chan struct{}
}

var errTimeless = errors.New("deadline not supported")

func (timeless) SetDeadline(time.Time) error      { return errTimeless }
func (timeless) SetReadDeadline(time.Time) error  { return errTimeless }
func (timeless) SetWriteDeadline(time.Time) error { return errTimeless }

func (c timeless) Close() error {
	close(c.closed)
	return c.Conn.Close()
}

func TestConnectionWithoutDeadlinesIsClosed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	closed := make(chan struct{})
	_, err := connect(t.Context(), redis.Options{
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", server.Addr())
			return timeless{conn, closed}, err
		},
		ReadTimeout: -2, WriteTimeout: -2, // do not set deadlines
	})
	require.ErrorIs(t, err, errTimeless)
	require.NotErrorIs(t, err, errReady)
	select {
	case <-closed:
	default:
		require.Fail(t, "the connection is open")
	}
}

func TestRejectedLoginHidesPassword(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithArgs("--rename-command", "AUTH", "", "--rename-command", "HELLO", ""))
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "u", Password: "sesame"})
	defer func() { _ = client.Close() }()
	_, err := connect(t.Context(), *client.Options())
	require.ErrorContains(t, err, "ERR unknown command")
	require.NotContains(t, err.Error(), "sesame")
}

func TestNewRejectsInvalidOptions(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer func() { require.NoError(t, client.Close()) }()
	for _, o := range []redlatch.Option{redlatch.WithCommandTimeout(-time.Second), redlatch.WithShardedPubSub(9)} {
		_, err := New(t.Context(), client, o)
		require.ErrorContains(t, err, "redlatch: ")
	}
	c, err := New(t.Context(), client, nil, redlatch.WithLogger(nil))
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

// It runs U34 and U4 with client options that would retry commands and wait forever.
func TestClientOptionsDoNotAffectLocks(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	locksuite.OnServer(server, func(tb testing.TB) transport.Transport {
		tb.Helper()
		return over(tb, redis.NewClient(reckless(proxy.Addr())))
	}).LeavesInTime(t, func() { proxy.Blackhole(redistest.ToClient) }, func() {
		proxy.Reset()
		proxy.Heal()
	})
}

// The client itself would wait forever.
func TestSilentServerEndsCallsDespiteClientTimeout(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t).Addr())
	opt := reckless(proxy.Addr())
	opt.DialTimeout = time.Second
	breakable.StopAnswering(t, proxy, over(t, redis.NewClient(opt), redlatch.WithCommandTimeout(500*time.Millisecond)))
}

func clustered(c *redistest.Cluster, publish []string, opts ...redlatch.Option) locksuite.Deployment {
	return locksuite.Deployment{
		New: func(tb testing.TB) transport.Transport {
			tb.Helper()
			return over(tb, redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()}), opts...)
		},
		Do:      c.DoAt,
		Publish: publish,
	}
}

// All cases share one cluster per kind of server, since clusters are slow to start.
func TestLocksInCluster(t *testing.T) {
	t.Parallel()
	redistest.EachCluster(t, func(t *testing.T, c *redistest.Cluster) {
		t.Helper()
		t.Run("at rest", func(t *testing.T) { locksuite.Run(t, clustered(c, []string{"SPUBLISH", "PUBLISH"})) })
		t.Run("waits for replicas", func(t *testing.T) {
			clustered(c, nil).WaitsForReplicas(t, locksuite.ReplicasOf(c))
		})
		t.Run("slots move", func(t *testing.T) { locksWhileSlotsMove(t, c) })
	})
}

func TestLocksInClusterWithoutShardedPubSub(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 2, 0, redistest.WithoutShardedPubSub())
	locksuite.Run(t, clustered(c, []string{"PUBLISH"}))
}

func TestConformsInCluster(t *testing.T) {
	t.Parallel()
	redistest.EachCluster(t, conformsIn)
}

// conformsIn uses one cluster for all cases and a separate network for each.
func conformsIn(t *testing.T, c *redistest.Cluster) {
	t.Helper()
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		fence := redistest.NewProxies(t, c.Addrs()...)
		return breakable.Cluster(c, fence, func(tb testing.TB) transport.Transport {
			tb.Helper()
			return over(tb, redis.NewClusterClient(&redis.ClusterOptions{
				Addrs: c.Addrs(), Dialer: fence.Dial, MaxRedirects: 10, MaxRetries: 10, ReadTimeout: -1, PoolSize: 1,
			}), redlatch.WithShardedPubSub(transport.ShardingOn)) // avoids a query for the mode
		})
	})
}

func locksWhileSlotsMove(t *testing.T, c *redistest.Cluster) {
	t.Helper()
	for _, kind := range locksuite.Kinds {
		name := redistest.Key(t)
		group := clustered(c, nil).StartContenders(t, kind, 4, name)
		group.AwaitProgress(10)
		for range 2 {
			locksuite.MoveAway(t, c, name)
			group.AwaitProgress(10)
		}
		assert.Zero(t, group.Exclusive().Lost, kind.Name)
	}
}
