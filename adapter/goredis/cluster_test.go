package goredis

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/locksuite"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// clusterKinds runs body on a cluster of each kind of server.
func clusterKinds(t *testing.T, body func(t *testing.T, c *redistest.Cluster)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) { t.Parallel(); body(t, redistest.StartCluster(t, 3, 1)) })
	t.Run("valkey", func(t *testing.T) {
		t.Parallel()
		body(t, redistest.StartCluster(t, 3, 1, redistest.WithBinary(redistest.ValkeyBinary(t))))
	})
}

// clustered is a deployment of a cluster.
func clustered(c *redistest.Cluster, publish []string, opts ...Option) locksuite.Deployment {
	return locksuite.Deployment{
		New: func(tb testing.TB) transport.Transport {
			tb.Helper()
			return over(tb, goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: c.Addrs()}), opts...)
		},
		Do:      c.DoAt,
		Publish: publish,
	}
}

// TestLocksInACluster is one story for each kind of server: clusters are dear.
func TestLocksInACluster(t *testing.T) {
	t.Parallel()
	clusterKinds(t, func(t *testing.T, c *redistest.Cluster) {
		t.Helper()
		t.Run("at rest", func(t *testing.T) { locksuite.Run(t, clustered(c, []string{"SPUBLISH", "PUBLISH"})) })
		t.Run("replicas are waited for", func(t *testing.T) {
			clustered(c, nil).WaitsForReplicas(t, locksuite.Replicas{
				Masters: c.Nodes()[:3], Servers: c.Nodes()[3:], Each: 1,
				Move: func(tb testing.TB, name string) { tb.Helper(); elsewhere(tb, c, name) },
			})
		})
		t.Run("slots move", func(t *testing.T) { slotsMove(t, c) })
	})
}

func TestLocksInAClusterWithoutShardedPubSub(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 2, 0, redistest.WithoutShardedPubSub())
	locksuite.Run(t, clustered(c, []string{"PUBLISH"}))
}

// fence is a network in front of the nodes of a cluster.
type fence struct {
	*redistest.Fence
	made []transport.Transport // through it
	dark atomic.Bool           // nobody is answered
}

// each makes a fault of what is done to every proxy.
func (f *fence) each(do func(p *redistest.Proxy)) func(testing.TB) {
	return func(testing.TB) { f.Each(do) }
}

func (f *fence) harness() transporttest.Harness {
	reset := f.each((*redistest.Proxy).Reset)
	return transporttest.Harness{
		CutConnections: reset,
		CutSubscribers: reset,
		Freeze: func(tb testing.TB) {
			tb.Helper()
			f.dark.Store(true)
			f.each(func(p *redistest.Proxy) { p.Blackhole() })(tb)
		},
		Thaw: func(tb testing.TB) {
			tb.Helper()
			f.each(func(p *redistest.Proxy) { p.Heal() })(tb)
			f.dark.Store(false)
			f.connectAll()
		},
		HoldReplies: func(tb testing.TB) func() {
			tb.Helper()
			f.dark.Store(true)
			f.each(func(p *redistest.Proxy) { p.Blackhole(redistest.ToClient) })(tb)
			return func() {
				f.each(func(p *redistest.Proxy) { p.Heal(redistest.ToClient) })(tb)
				f.dark.Store(false)
				f.connectAll()
			}
		},
		HoldRequest: func(_ testing.TB, text string) (<-chan struct{}, func()) { return f.Hold(text) },
		Stop: func(tb testing.TB) {
			tb.Helper()
			f.dark.Store(true)
			f.each(func(p *redistest.Proxy) {
				p.Refuse(true)
				p.Reset()
			})(tb)
		},
		UrgentFirst: true,
	}
}

// connectAll makes the transports connect to all masters, unless nobody is answered: the
// suite knows of one connection for commands, which is there or is not.
func (f *fence) connectAll() {
	for _, tr := range f.made {
		for _, key := range []string{"bar", "one", "foo"} { // slots 5061, 9084 and 12182
			for !f.dark.Load() {
				if _, err := ask(tr, "GET", key); err == nil || errors.Is(err, transport.ErrClosed) {
					break
				}
			}
		}
	}
}

func TestConformsInACluster(t *testing.T) {
	t.Parallel()
	clusterKinds(t, conformsIn)
}

func conformsIn(t *testing.T, c *redistest.Cluster) {
	t.Helper()
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		f := &fence{Fence: redistest.NewFence(t, c.Nodes()...)}
		h := f.harness()
		h.CutConnections = func(tb testing.TB) {
			tb.Helper()
			f.each((*redistest.Proxy).Reset)(tb)
			f.connectAll()
		}
		h.New = func(tb testing.TB) transport.Transport {
			tb.Helper()
			tr := over(tb, goredis.NewClusterClient(&goredis.ClusterOptions{
				Addrs: c.Addrs(), Dialer: f.Dial, MaxRedirects: 10, MaxRetries: 10, ReadTimeout: -1, PoolSize: 1,
			}), WithShardedPubSub(transport.ShardingOn)) // nobody has to be asked
			f.made = append(f.made, tr)
			f.connectAll()
			return tr
		}
		h.Do = func(tb testing.TB, cmd string, args ...any) any {
			tb.Helper()
			if cmd != "SCRIPT" {
				return c.Do(tb, cmd, args...)
			}
			for _, s := range c.Nodes()[:3] {
				s.Do(tb, cmd, args...)
			}
			return nil
		}
		h.Subscribers = func(tb testing.TB, channel string) (sum int64) {
			tb.Helper()
			for _, ask := range []string{"NUMSUB", "SHARDNUMSUB"} {
				pair, err := redis.Values(c.DoAt(tb, channel, "PUBSUB", ask, channel), nil)
				require.NoError(tb, err)
				n, err := redis.Int64(pair[1], nil)
				require.NoError(tb, err)
				sum += n
			}
			return sum
		}
		h.Start = func(tb testing.TB) {
			tb.Helper()
			h.Do(tb, "SCRIPT", "FLUSH")
			f.each(func(p *redistest.Proxy) { p.Refuse(false) })(tb)
			f.dark.Store(false)
			f.connectAll()
		}
		return h
	})
}

// startCrowds makes a crowd for each kind of lock, on names of one slot, which is
// name's.
func startCrowds(t *testing.T, c *redistest.Cluster) (name string, crowds []*locksuite.Crowd) {
	t.Helper()
	name = redistest.Key(t)
	for _, kind := range locksuite.Kinds {
		crowds = append(crowds, clustered(c, nil).StartCrowd(t, kind, 4, "{"+name+"}"+kind.Name))
	}
	progress(crowds)
	return name, crowds
}

func progress(crowds []*locksuite.Crowd) {
	for _, crowd := range crowds {
		crowd.AwaitProgress(10)
	}
}

// elsewhere moves the slot of name to another master.
func elsewhere(tb testing.TB, c *redistest.Cluster, name string) {
	tb.Helper()
	to := c.Nodes()[0]
	if to == c.Owner(tb, name) {
		to = c.Nodes()[1]
	}
	c.MoveSlot(tb, codec.Slot(name), to, nil)
}

// slotsMove moves the slot while workers hold and want the locks in it, there and back.
func slotsMove(t *testing.T, c *redistest.Cluster) {
	t.Helper()
	name, crowds := startCrowds(t, c)
	for i := range 6 {
		to := c.Nodes()[i%3]
		c.MoveSlot(t, codec.Slot(name), to, func() { time.Sleep(50 * time.Millisecond) })
		progress(crowds)
	}
	for _, crowd := range crowds {
		assert.Zero(t, crowd.Exclusive().Lost)
	}
}

func TestAClientThatIsInNoClusterIsRefused(t *testing.T) {
	t.Parallel()
	others := []goredis.UniversalClient{
		goredis.NewRing(&goredis.RingOptions{}),
		goredis.NewFailoverClusterClient(&goredis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}}),
	}
	for _, c := range []goredis.UniversalClient{nil, (*goredis.Client)(nil), (*goredis.ClusterClient)(nil)} {
		tr, err := New(t.Context(), c)
		require.ErrorContains(t, err, "goredis: ", "%T", c)
		require.Nil(t, tr)
	}
	for _, c := range others {
		tr, err := New(t.Context(), c)
		require.ErrorContains(t, err, "goredis: ", "%T", c)
		require.Nil(t, tr)
		require.NoError(t, c.Close())
	}
	unreachable := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer func() { require.NoError(t, unreachable.Close()) }()
	_, err := New(t.Context(), unreachable)
	require.ErrorIs(t, err, transport.ErrNotSent)
	tr, err := New(t.Context(), unreachable, WithShardedPubSub(transport.ShardingOff))
	require.NoError(t, err, "nobody has to be asked")
	require.Equal(t, "PUBLISH", tr.PublishCommand())
	require.NoError(t, tr.Close())
}
