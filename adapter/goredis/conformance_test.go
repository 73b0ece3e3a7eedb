package goredis

import (
	"context"
	"io"
	"log"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/locksuite/failovers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/redistest/breakable"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// over returns a transport that uses client, which is closed with the test.
func over(tb testing.TB, client redis.UniversalClient, opts ...redlatch.Option) transport.Transport {
	tb.Helper()
	tb.Cleanup(func() { assert.NoError(tb, client.Close(), "the transport must not close it") })
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	tr, err := newTransport(ctx, client, opts...)
	require.NoError(tb, err)
	return tr
}

// newTransport calls New for the transport of the Redlatch client.
func newTransport(ctx context.Context, client redis.UniversalClient, opts ...redlatch.Option) (transport.Transport, error) {
	c, err := New(ctx, client, opts...)
	if err != nil {
		return nil, err
	}
	return engine.EngineOf(c).Transport, nil
}

// reckless returns the most harmful options: retries, ignored deadlines and a pool of one
// connection. None of them may have an effect.
func reckless(addr string) *redis.Options {
	return &redis.Options{Addr: addr, MaxRetries: 10, ReadTimeout: -1, PoolSize: 1, MaxActiveConns: 1, PipelinePoolSize: -1}
}

func TestConformsOnOneServer(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		server := redistest.Start(t)
		proxy := redistest.NewProxy(t, server.Addr())
		h := breakable.Behind(proxy, server)
		h.New = func(tb testing.TB) transport.Transport {
			tb.Helper()
			return over(tb, redis.NewClient(reckless(proxy.Addr())))
		}
		return h
	})
}

// failoverOptions returns options for a Sentinel client that reaches the master through proxy.
func failoverOptions(set *redistest.Sentinels, master string, proxy *redistest.Proxy) *redis.FailoverOptions {
	opt := &redis.FailoverOptions{
		MasterName: redistest.MasterName, SentinelAddrs: set.Addrs(),
		MaxRetries: 10, ReadTimeout: 5 * time.Second, PoolSize: 1,
	}
	if proxy != nil {
		opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == master {
				addr = proxy.Addr()
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	}
	return opt
}

func TestConformsOnSentinelMaster(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, time.Minute)
	master := set.Master(t)
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		proxy := redistest.NewProxy(t, master.Addr())
		h := breakable.Harness(proxy)
		h.New = func(tb testing.TB) transport.Transport {
			tb.Helper()
			return over(tb, redis.NewFailoverClient(failoverOptions(set, master.Addr(), proxy)))
		}
		h.Do = master.Do
		h.Stop, h.Start = breakable.Outage(proxy, master.Do, "SCRIPT", "FLUSH")
		return h
	})
}

func TestSingleCallerReadsOnGoRedisConnections(t *testing.T) {
	t.Parallel()
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		locksuite.Leads(t, over(t, redis.NewClient(reckless(redistest.Start(t).Addr()))))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		locksuite.Leads(t, named(t, redistest.StartCluster(t, 3, 0), ""))
	})
	t.Run("Sentinels", func(t *testing.T) {
		t.Parallel()
		locksuite.Leads(t, over(t, redis.NewFailoverClient(failoverOptions(redistest.StartSentinels(t, time.Minute), "", nil))))
	})
}

func TestLocksOnOneServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	locksuite.Run(t, locksuite.OnServer(server, func(tb testing.TB) transport.Transport {
		tb.Helper()
		return over(tb, redis.NewClient(reckless(server.Addr())))
	}))
}

// sentineled returns a deployment with Sentinels.
func sentineled(set *redistest.Sentinels) locksuite.Deployment {
	return locksuite.OnServer(set, func(tb testing.TB) transport.Transport {
		tb.Helper()
		return over(tb, redis.NewFailoverClient(failoverOptions(set, "", nil)))
	})
}

func TestLocksOnSentinelMaster(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, time.Minute)
	d := sentineled(set)
	d.WaitsForReplicas(t, locksuite.Replicas{Masters: set.Servers()[:1], Servers: set.Servers()[1:], Each: 2, Watched: true})
	locksuite.Run(t, d)
}

// TestFailoverTable replaces masters under locks; see package failovers.
func TestFailoverTable(t *testing.T) {
	failovers.Run(t, failovers.Adapter{
		Name: "go-redis",
		Cluster: func(tb testing.TB, c *redistest.Cluster) transport.Transport {
			tb.Helper()
			return named(tb, c, "")
		},
		Sentinels: func(tb testing.TB, set *redistest.Sentinels) transport.Transport {
			tb.Helper()
			return over(tb, redis.NewFailoverClient(failoverOptions(set, "", nil)))
		},
	})
}

// named returns a transport to a cluster with named connections.
func named(tb testing.TB, c *redistest.Cluster, name string) transport.Transport {
	tb.Helper()
	return over(tb, redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), ClientName: name}))
}

func TestThousandWaitersShareTwoConnectionsPerNode(t *testing.T) {
	t.Parallel()
	locksuite.ManyWaiters(t, named)
}

func TestU44ManyHoldsNeedNoExtraGoroutines(t *testing.T) {
	locksuite.ManyHolds(t, func(tb testing.TB, c *redistest.Cluster) transport.Transport {
		tb.Helper()
		return named(tb, c, "")
	})
}

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{log.New(io.Discard, "", 0)}) // it logs every connection that a test breaks
	redistest.Main(m)
}

type quiet struct{ *log.Logger }

func (q quiet) Printf(_ context.Context, format string, v ...any) { q.Logger.Printf(format, v...) }

// go-redis panics if the dialer returns neither a connection nor an error.
func TestDialWithoutConnectionFails(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer func() { assert.NoError(t, far.Close()) }()
	d := &detacher{reach: func(context.Context, string, string) (net.Conn, error) { return near, nil }}
	d.hangUp()
	conn, err := d.dial(t.Context(), "tcp", "127.0.0.1:6379")
	require.ErrorIs(t, err, errTooLate)
	require.Nil(t, conn)
	_, err = far.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the connection is closed")
}
