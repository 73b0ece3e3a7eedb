package rueidis_test

import (
	"context"
	"testing"

	lib "github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapter/rueidis"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	redistest.EachCluster(t, storyOf)
}

// storyOf runs the cases that share a cluster. Each case leaves it repaired.
func storyOf(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	client := clientOf(t, lib.ClientOption{InitAddress: cluster.Addrs()[:1]})
	d := locksuite.Deployment{New: sharing(client), Do: cluster.DoAt, Publish: []string{"SPUBLISH", "PUBLISH"}}
	t.Run("selects the publish command as Redisson does", func(t *testing.T) { publishCommandIsDecided(t, client) })
	t.Run("locks behave as on one server", func(t *testing.T) { locksuite.Run(t, d) })
	t.Run("waits for replicas", func(t *testing.T) { d.WaitsForReplicas(t, locksuite.ReplicasOf(cluster)) })
	t.Run("subscriptions move with their slots", func(t *testing.T) { subscriptionsMove(t, cluster, client) })
	t.Run("locks work while slots move", func(t *testing.T) { locksWhileSlotsMove(t, cluster, d) })
}

func publishCommandIsDecided(t *testing.T, client lib.Client) {
	t.Helper()
	for sharding, want := range map[transport.Sharding]string{
		transport.ShardingAuto: "SPUBLISH", transport.ShardingOn: "SPUBLISH", transport.ShardingOff: "PUBLISH",
	} {
		tr := opened(t, client, redlatch.WithShardedPubSub(sharding))
		assert.Equal(t, want, tr.PublishCommand(), "%v", sharding)
		_, cluster := tr.(transport.Slotter)
		assert.True(t, cluster)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := rueidis.New(ctx, client)
	assert.ErrorIs(t, err, context.Canceled)
}

func subscriptionsMove(t *testing.T, cluster *redistest.Cluster, client lib.Client) {
	t.Helper()
	const channel = "channel:{slots}"
	sub := subscribe(t, opened(t, client), channel)
	for range 3 {
		locksuite.MoveAway(t, cluster, channel)
		require.True(t, event(t, sub).Gap)
		for _, command := range []string{"SPUBLISH", "PUBLISH"} {
			cluster.Do(t, command, channel, command)
			for e := event(t, sub); e.Payload != command; e = event(t, sub) {
				if e.Gap { // the message may have been missed
					cluster.Do(t, command, channel, command)
				}
			}
		}
	}
}

func locksWhileSlotsMove(t *testing.T, cluster *redistest.Cluster, d locksuite.Deployment) {
	t.Helper()
	for _, kind := range locksuite.Kinds {
		name := redistest.Key(t)
		group := d.StartContenders(t, kind, 4, name)
		group.AwaitProgress(10)
		for range 2 {
			locksuite.MoveAway(t, cluster, name)
			group.AwaitProgress(10)
		}
		assert.Zero(t, group.Exclusive().Lost, kind.Name)
	}
}
