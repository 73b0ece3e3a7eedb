package goredis

import (
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/redistest/breakable"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// clustered is a deployment of a cluster.
func clustered(c *redistest.Cluster, publish []string, opts ...redlatch.Option) locksuite.Deployment {
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
	redistest.EachCluster(t, func(t *testing.T, c *redistest.Cluster) {
		t.Helper()
		t.Run("at rest", func(t *testing.T) { locksuite.Run(t, clustered(c, []string{"SPUBLISH", "PUBLISH"})) })
		t.Run("replicas are waited for", func(t *testing.T) {
			clustered(c, nil).WaitsForReplicas(t, locksuite.ReplicasOf(c))
		})
		t.Run("slots move", func(t *testing.T) { slotsMove(t, c) })
	})
}

func TestLocksInAClusterWithoutShardedPubSub(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 2, 0, redistest.WithoutShardedPubSub())
	locksuite.Run(t, clustered(c, []string{"PUBLISH"}))
}

func TestConformsInACluster(t *testing.T) {
	t.Parallel()
	redistest.EachCluster(t, conformsIn)
}

// conformsIn has one cluster for all cases, and a network of its own for each.
func conformsIn(t *testing.T, c *redistest.Cluster) {
	t.Helper()
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		fence := redistest.NewProxies(t, c.Nodes()...)
		return breakable.Cluster(c, fence, func(tb testing.TB) transport.Transport {
			tb.Helper()
			return over(tb, goredis.NewClusterClient(&goredis.ClusterOptions{
				Addrs: c.Addrs(), Dialer: fence.Dial, MaxRedirects: 10, MaxRetries: 10, ReadTimeout: -1, PoolSize: 1,
			}), redlatch.WithShardedPubSub(transport.ShardingOn)) // no server has to be asked
		})
	})
}

// startContenders makes contenders for each kind of lock, on names of one slot, which is
// name's.
func startContenders(t *testing.T, c *redistest.Cluster) (name string, contenders []*locksuite.Contenders) {
	t.Helper()
	name = redistest.Key(t)
	for _, kind := range locksuite.Kinds {
		contenders = append(contenders, clustered(c, nil).StartContenders(t, kind, 4, "{"+name+"}"+kind.Name))
	}
	progress(contenders)
	return name, contenders
}

func progress(contenders []*locksuite.Contenders) {
	for _, group := range contenders {
		group.AwaitProgress(10)
	}
}

// slotsMove moves the slot while workers hold and want the locks in it, there and back.
func slotsMove(t *testing.T, c *redistest.Cluster) {
	t.Helper()
	name, contenders := startContenders(t, c)
	for i := range 6 {
		to := c.Nodes()[i%3]
		c.MoveSlot(t, transport.HashSlot(name), to, func() { time.Sleep(50 * time.Millisecond) })
		progress(contenders)
	}
	for _, group := range contenders {
		assert.Zero(t, group.Exclusive().Lost)
	}
}

func TestAClientThatIsInNoClusterIsRefused(t *testing.T) {
	t.Parallel()
	others := []goredis.UniversalClient{
		goredis.NewRing(&goredis.RingOptions{}),
		goredis.NewFailoverClusterClient(&goredis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}}),
	}
	for _, c := range []goredis.UniversalClient{nil, (*goredis.Client)(nil), (*goredis.ClusterClient)(nil)} {
		tr, err := newTransport(t.Context(), c)
		require.ErrorContains(t, err, "goredis: ", "%T", c)
		require.Nil(t, tr)
	}
	for _, c := range others {
		tr, err := newTransport(t.Context(), c)
		require.ErrorContains(t, err, "goredis: ", "%T", c)
		require.Nil(t, tr)
		require.NoError(t, c.Close())
	}
	unreachable := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer func() { require.NoError(t, unreachable.Close()) }()
	_, err := New(t.Context(), unreachable)
	require.ErrorIs(t, err, transport.ErrNotSent)
	tr, err := newTransport(t.Context(), unreachable, redlatch.WithShardedPubSub(transport.ShardingOff))
	require.NoError(t, err, "no server has to be asked")
	require.Equal(t, "PUBLISH", tr.PublishCommand())
	require.NoError(t, tr.Close())
}
