package rueidis_test

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	lib "github.com/redis/rueidis"

	"github.com/redlatch/redlatch/adapter/rueidis"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/internal/redistest/breakable"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// proxied is what a proxy can do whatever server is behind it. All transports of a
// case are over one client, which none of them closes.
func proxied(t *testing.T, proxy *redistest.Proxy, opt lib.ClientOption) transporttest.Harness {
	t.Helper()
	client := clientOf(t, opt)
	h := breakable.Harness(proxy)
	h.New = func(tb testing.TB) transport.Transport {
		tb.Helper()
		return over(tb, client)
	}
	return h
}

func forbid(server *redistest.Server) func(testing.TB, string) {
	return func(tb testing.TB, cmd string) {
		tb.Helper()
		server.Do(tb, "ACL", "SETUSER", "default", "-"+cmd)
	}
}

func TestConformsBehindABreakableNetwork(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		server := redistest.Start(t)
		proxy := redistest.NewProxy(t, server.Addr())
		h := proxied(t, proxy, plainly(proxy.Addr()))
		h.Do = server.Do
		h.Stop = func(testing.TB) { server.Kill() }
		h.Start = func(testing.TB) { server.Restart() }
		h.Forbid = forbid(server)
		h.Replica = breakable.Replica(server)
		return h
	})
}

func TestConformsOnAValkeyThatIsKilledAndFrozen(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		server := redistest.StartValkey(t)
		client := clientOf(t, plainly(server.Addr()))
		kill := func(kind string) func(testing.TB) {
			return func(tb testing.TB) {
				tb.Helper()
				server.KillClients(tb, kind)
			}
		}
		return transporttest.Harness{
			New: func(tb testing.TB) transport.Transport {
				tb.Helper()
				return over(tb, client)
			},
			Do:             server.Do,
			CutConnections: kill("normal"),
			CutSubscribers: kill("pubsub"),
			Freeze:         func(testing.TB) { server.Pause() },
			Thaw:           func(testing.TB) { server.Resume() },
			Stop:           func(testing.TB) { server.Shutdown() },
			Start:          func(testing.TB) { server.Restart() },
			Forbid:         forbid(server),
			UrgentFirst:    true,
		}
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
		h := proxied(t, proxy, opt)
		h.Do = server.Do
		h.CutSubscribers = func(testing.TB) { server.DropSubscribers() }
		h.Stop = func(testing.TB) {
			proxy.Refuse(true)
			proxy.Reset()
		}
		h.Start = func(tb testing.TB) {
			tb.Helper()
			server.Do(tb, "FLUSHALL")
			proxy.Refuse(false)
		}
		return h
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
		fence := redistest.NewFence(t, cluster.Nodes()...)
		client := clientOf(t, lib.ClientOption{
			InitAddress: cluster.Addrs(),
			DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return fence.Dial(ctx, "tcp", addr)
			},
		})
		return breakable.Cluster(cluster, fence, func(tb testing.TB) transport.Transport {
			tb.Helper()
			return over(tb, client, rueidis.WithShardedPubSub(transport.ShardingOn)) // nobody has to be asked
		})
	})
}

// TestConformsWithSentinel is on one set for all cases: what a case breaks it mends.
func TestConformsWithSentinel(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, 20*time.Second)
	client := clientOf(t, sentinels(set))
	master := set.Master(t)
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		return transporttest.Harness{
			New: func(tb testing.TB) transport.Transport {
				tb.Helper()
				return over(tb, client, rueidis.WithServerClient(direct))
			},
			Do:             master.Do,
			CutConnections: func(tb testing.TB) { tb.Helper(); master.KillClients(tb, "normal") },
			CutSubscribers: func(tb testing.TB) { tb.Helper(); master.KillClients(tb, "pubsub") },
			Freeze:         func(testing.TB) { master.Pause() },
			Thaw:           func(testing.TB) { master.Resume() },
			Forbid: func(tb testing.TB, cmd string) {
				tb.Helper()
				forbid(master)(tb, cmd)
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

// direct makes a client to the server at addr.
func direct(_ context.Context, addr string) (lib.Client, error) {
	return lib.NewClient(plainly(addr))
}
