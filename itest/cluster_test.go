package itest

import (
	"fmt"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/locksuite"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/internal/redistest/breakable"
	"github.com/redlatch/redlatch/itest/servers"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

func TestInACluster(t *testing.T) {
	t.Parallel()
	each(t, plan.Clusters, func(t *testing.T, kind servers.Kind) {
		t.Helper()
		c := kind.StartCluster(t)
		t.Logf("on %s", c)
		for _, over := range libraries {
			if over.onCluster == nil {
				continue
			}
			t.Run("locks over "+over.name, func(t *testing.T) {
				t.Parallel()
				locksuite.Run(t, inCluster(t, over, c))
			})
			t.Run("conformance over "+over.name, func(t *testing.T) {
				t.Parallel()
				transporttest.Run(t, func(t *testing.T) transporttest.Harness {
					t.Helper()
					t.Parallel()
					return harness(t, over, c)
				})
			})
		}
	})
}

// inCluster is the cluster as clients of the user's own find it: one address, and from
// there wherever the nodes send them.
func inCluster(t *testing.T, over library, c *servers.Cluster) locksuite.Deployment {
	t.Helper()
	publish := []string{"PUBLISH"}
	if c.Sharded {
		publish = []string{"SPUBLISH", "PUBLISH"}
	}
	open := over.onCluster(t, cluster{addrs: c.Addrs()[:1], sharding: transport.ShardingAuto})
	tr := open(t)
	require.Equal(t, publish[0], tr.PublishCommand(), "as Redisson decides")
	require.NoError(t, tr.Close())
	return locksuite.Deployment{New: open, Do: c.Do, Publish: publish}
}

// harness is the cluster behind a network that is the case's own. All share the rights to
// commands, so nothing can be forbidden.
func harness(t *testing.T, over library, c *servers.Cluster) transporttest.Harness {
	t.Helper()
	fence := redistest.NewFenceAt(t, c.Addrs()...)
	network := breakable.NewNetwork(fence)
	flush := func(tb testing.TB) {
		tb.Helper()
		for _, master := range c.Masters {
			master.Do(tb, "SCRIPT", "FLUSH")
		}
	}
	// Said, and not found out: nobody has to be asked.
	sharding := transport.ShardingOff
	if c.Sharded {
		sharding = transport.ShardingOn
	}
	h := network.Harness(flush)
	h.Patience = patience
	open := over.onCluster(t, cluster{addrs: c.Addrs(), dial: fence.Dial, sharding: sharding})
	h.New = func(tb testing.TB) transport.Transport {
		tb.Helper()
		return network.Add(open(tb))
	}
	h.Do = func(tb testing.TB, cmd string, args ...any) any {
		tb.Helper()
		if cmd == "SCRIPT" {
			flush(tb)
			return nil
		}
		return c.Do(tb, fmt.Sprint(args[0]), cmd, args...)
	}
	h.Subscribers = func(tb testing.TB, channel string) int64 { tb.Helper(); return subscribers(tb, c, channel) }
	return h
}

// subscribers returns how many listen to a channel at the master of its slot.
func subscribers(tb testing.TB, c *servers.Cluster, channel string) (sum int64) {
	tb.Helper()
	asks := []string{"NUMSUB"}
	if c.Sharded {
		asks = append(asks, "SHARDNUMSUB")
	}
	for _, ask := range asks {
		pair, err := redis.Values(c.Do(tb, channel, "PUBSUB", ask, channel), nil)
		require.NoError(tb, err)
		n, err := redis.Int64(pair[1], nil)
		require.NoError(tb, err)
		sum += n
	}
	return sum
}
