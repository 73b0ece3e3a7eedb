package containers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/redistest/breakable"
	"github.com/redlatch/redlatch/test/containers/servers"
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
	fence := redistest.NewProxiesAt(t, c.Addrs()...)
	// The mode is given, so that it need not be detected.
	sharding := transport.ShardingOff
	if c.Sharded {
		sharding = transport.ShardingOn
	}
	nodes := breakable.Nodes{Do: c.Do, Sharded: c.Sharded}
	for _, master := range c.Masters {
		nodes.OnMaster = append(nodes.OnMaster, master.Do)
	}
	h := nodes.Harness(fence, over.onCluster(t, cluster{addrs: c.Addrs(), dial: fence.Dial, sharding: sharding}))
	h.Patience = patience
	return h
}
