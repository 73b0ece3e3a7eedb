package rueidis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	lib "github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapter/rueidis"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/locksuite/failovers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/redistest/breakable"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// overOne adds New to h. All transports of a case share one client, which none of them closes.
func overOne(t *testing.T, opt lib.ClientOption, h transporttest.Harness) transporttest.Harness {
	t.Helper()
	h.New = sharing(clientOf(t, opt))
	return h
}

func TestConformsOnUnstableNetwork(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		server := redistest.Start(t)
		proxy := redistest.NewProxy(t, server.Addr())
		return overOne(t, plainly(proxy.Addr()), breakable.Behind(proxy, server))
	})
}

func TestConformsOnKilledAndFrozenValkey(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		server := redistest.StartValkey(t)
		return overOne(t, plainly(server.Addr()), breakable.Alone(server))
	})
}

// The server supports only RESP2, and the client's options differ most from the defaults.
func TestConformsWithRESP2(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		server := redistest.Mini(t)
		proxy := redistest.NewProxy(t, server.Addr())
		opt := plainly(proxy.Addr())
		opt.AlwaysRESP2, opt.DisableCache, opt.DisableRetry, opt.AlwaysPipelining = true, true, true, true
		h := breakable.Harness(proxy)
		h.Do = server.Do
		h.CutSubscribers = func(testing.TB) { server.DropSubscribers() }
		h.Stop, h.Start = breakable.Outage(proxy, server.Do, "FLUSHALL")
		return overOne(t, opt, h)
	})
}

func TestConformsInCluster(t *testing.T) {
	t.Parallel()
	redistest.EachCluster(t, conformsIn)
}

// conformsIn uses one cluster for all cases and a separate network for each.
func conformsIn(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		fence := redistest.NewProxies(t, cluster.Addrs()...)
		client := clientOf(t, lib.ClientOption{
			InitAddress: cluster.Addrs(),
			DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return fence.Dial(ctx, "tcp", addr)
			},
		})
		return breakable.Cluster(cluster, fence, func(tb testing.TB) transport.Transport {
			tb.Helper()
			return over(tb, client, redlatch.WithShardedPubSub(transport.ShardingOn)) // avoids a query for the mode
		})
	})
}

// All cases share one set of servers. Each case repairs it.
func TestConformsWithSentinel(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, 20*time.Second)
	master := set.Master(t)
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		return transporttest.Harness{
			New: func(tb testing.TB) transport.Transport {
				tb.Helper()
				return overSentinels(tb, sentinels(set))
			},
			Do:             master.Do,
			CutConnections: func(tb testing.TB) { tb.Helper(); master.KillClients(tb, "normal") },
			CutSubscribers: func(tb testing.TB) { tb.Helper(); master.KillClients(tb, "pubsub") },
			Freeze:         func(testing.TB) { master.Pause() },
			Thaw:           func(testing.TB) { master.Resume() },
			Forbid: func(tb testing.TB, cmd string) {
				tb.Helper()
				breakable.Forbid(master)(tb, cmd)
				tb.Cleanup(func() { master.Do(tb, "ACL", "SETUSER", "default", "+"+cmd) })
			},
		}
	})
}

// sentinels returns options for a client that connects to the master of set's Sentinels.
func sentinels(set *redistest.Sentinels) lib.ClientOption {
	return lib.ClientOption{
		InitAddress: set.Addrs(), Sentinel: lib.SentinelOption{MasterSet: redistest.MasterName},
	}
}

// A rueidis client's own connections do not expose their socket; see New.
func TestSingleCallerReadsOnDialerConnections(t *testing.T) {
	t.Parallel()
	locksuite.Leads(t, overSentinels(t, sentinels(redistest.StartSentinels(t, time.Minute))))
}

// sharing returns a function that returns transports over client.
func sharing(client lib.Client) func(testing.TB) transport.Transport {
	return func(tb testing.TB) transport.Transport {
		tb.Helper()
		return over(tb, client)
	}
}

func TestLocksOnOneServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	locksuite.Run(t, locksuite.OnServer(server, sharing(clientOf(t, plainly(server.Addr())))))
}

func TestLocksWithSentinel(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, time.Minute, redistest.WithBinary(redistest.ValkeyBinary(t)))
	d := locksuite.OnServer(set, func(tb testing.TB) transport.Transport {
		tb.Helper()
		return overSentinels(tb, sentinels(set))
	})
	d.WaitsForReplicas(t, locksuite.Replicas{Masters: set.Servers()[:1], Servers: set.Servers()[1:], Each: 2, Watched: true})
	locksuite.Run(t, d)
}

// named returns a transport to a cluster over a client with named connections.
func named(tb testing.TB, c *redistest.Cluster, name string) transport.Transport {
	tb.Helper()
	return over(tb, clientOf(tb, lib.ClientOption{InitAddress: c.Addrs(), ClientName: name}))
}

func unnamed(tb testing.TB, c *redistest.Cluster) transport.Transport {
	tb.Helper()
	return named(tb, c, "")
}

func TestThousandWaitersShareTwoConnectionsPerNode(t *testing.T) {
	t.Parallel()
	locksuite.ManyWaiters(t, named)
}

func TestU44ManyHoldsNeedNoExtraGoroutines(t *testing.T) {
	locksuite.ManyHolds(t, unnamed)
}

// TestFailoverTable replaces masters under locks; see package failovers.
func TestFailoverTable(t *testing.T) {
	failovers.Run(t, failovers.Adapter{
		Name:    "rueidis",
		Cluster: unnamed,
		Sentinels: func(tb testing.TB, set *redistest.Sentinels) transport.Transport {
			tb.Helper()
			return overSentinels(tb, sentinels(set))
		},
	})
}

// TestMain ignores goroutines of closed rueidis clients that sleep, for up to a second before a refresh of the topology
// and for five seconds before connections are closed.
func TestMain(m *testing.M) {
	redistest.Main(m,
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*sentinelClient).refreshRetry"),
	)
}

// plainly returns options for a client that connects to one server.
func plainly(addr string) lib.ClientOption {
	return lib.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true}
}

// clientOf returns a client that is closed with the test.
func clientOf(tb testing.TB, opt lib.ClientOption) lib.Client {
	tb.Helper()
	client, err := lib.NewClient(opt)
	require.NoError(tb, err)
	tb.Cleanup(client.Close)
	return client
}

// over returns a transport over client. The caller must close it.
func over(tb testing.TB, client lib.Client, opts ...redlatch.Option) transport.Transport {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	defer cancel()
	tr, err := newTransport(ctx, client, opts...)
	require.NoError(tb, err)
	return tr
}

// newTransport calls New for the transport of the Redlatch client.
func newTransport(ctx context.Context, client lib.Client, opts ...redlatch.Option) (transport.Transport, error) {
	c, err := rueidis.New(ctx, client, opts...)
	if err != nil {
		return nil, err
	}
	return engine.EngineOf(c).Transport, nil
}

// overSentinels returns a transport to the Sentinels' master. The caller must close it.
func overSentinels(tb testing.TB, opt lib.ClientOption) transport.Transport {
	tb.Helper()
	c, err := rueidis.NewSentinel(opt)
	require.NoError(tb, err)
	return engine.EngineOf(c).Transport
}

// opened is like over, but closes the transport with the test.
func opened(tb testing.TB, client lib.Client, opts ...redlatch.Option) transport.Transport {
	tb.Helper()
	tr := over(tb, client, opts...)
	tb.Cleanup(func() { assert.NoError(tb, tr.Close()) })
	return tr
}

// outcome is the reply or error of a call.
type outcome struct {
	reply any
	err   error
}

func start(tr transport.Transport, call *transport.Call) <-chan outcome {
	came := make(chan outcome, 1)
	tr.Start(call, func(reply any, err error) { came <- outcome{reply, err} })
	return came
}

// do runs a command with one key.
func do(tr transport.Transport, command, key string, args ...any) (any, error) {
	o := <-start(tr, &transport.Call{Command: command, NumKeys: 1, Args: append([]any{key}, args...)})
	return o.reply, o.err
}

// class returns the contract's error that err wraps, or "".
func class(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, transport.ErrUncertain):
		return "uncertain"
	case errors.Is(err, transport.ErrNotSent):
		return "not sent"
	}
	return err.Error()
}

// subscribe returns a subscription that is closed with the test.
func subscribe(tb testing.TB, tr transport.Transport, channel string) transport.Subscription {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 20*time.Second)
	defer cancel()
	sub, err := tr.Subscribe(ctx, channel)
	require.NoError(tb, err)
	tb.Cleanup(sub.Close)
	return sub
}

// event waits for the next event.
func event(tb testing.TB, sub transport.Subscription) transport.Event {
	tb.Helper()
	select {
	case e, ok := <-sub.Events():
		require.True(tb, ok, "the subscription has failed: %v", sub.Err())
		return e
	case <-time.After(30 * time.Second):
		require.Fail(tb, "no event")
		return transport.Event{}
	}
}
