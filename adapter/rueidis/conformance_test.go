package rueidis_test

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	lib "github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/redistest/breakable"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// overOne adds New to h: all transports of a case are over one client, which none of them
// closes.
func overOne(t *testing.T, opt lib.ClientOption, h transporttest.Harness) transporttest.Harness {
	t.Helper()
	h.New = sharing(clientOf(t, opt))
	return h
}

func TestConformsBehindABreakableNetwork(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		server := redistest.Start(t)
		proxy := redistest.NewProxy(t, server.Addr())
		return overOne(t, plainly(proxy.Addr()), breakable.Behind(proxy, server))
	})
}

func TestConformsOnAValkeyThatIsKilledAndFrozen(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		server := redistest.StartValkey(t)
		return overOne(t, plainly(server.Addr()), breakable.Alone(server))
	})
}

// TestConformsInTheOldProtocol is on a server that knows no other, and with the
// options of a client that are furthest from the defaults.
func TestConformsInTheOldProtocol(t *testing.T) {
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

func TestConformsInACluster(t *testing.T) {
	t.Parallel()
	redistest.EachCluster(t, conformsIn)
}

// conformsIn has one cluster for all cases, and a network of its own for each.
func conformsIn(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		fence := redistest.NewProxies(t, cluster.Nodes()...)
		client := clientOf(t, lib.ClientOption{
			InitAddress: cluster.Addrs(),
			DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return fence.Dial(ctx, "tcp", addr)
			},
		})
		return breakable.Cluster(cluster, fence, func(tb testing.TB) transport.Transport {
			tb.Helper()
			return over(tb, client, redlatch.WithShardedPubSub(transport.ShardingOn)) // no server has to be asked
		})
	})
}

// TestConformsWithSentinel is on one set for all cases: what a case breaks it mends.
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

// sentinels are the options of a client to what set's Sentinels call the master.
func sentinels(set *redistest.Sentinels) lib.ClientOption {
	return lib.ClientOption{
		InitAddress: set.Addrs(), Sentinel: lib.SentinelOption{MasterSet: redistest.MasterName},
	}
}
