package redistest

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/hashslot"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// eachKind runs body for each kind of server that clusters are made of.
func eachKind(t *testing.T, body func(t *testing.T, opts ...Option)) {
	t.Helper()
	t.Run("server", func(t *testing.T) { t.Parallel(); body(t) })
	t.Run("valkey", func(t *testing.T) { t.Parallel(); body(t, WithBinary(ValkeyBinary(t))) })
}

func TestAClusterServesAllSlotsAndSurvivesWhatIsDoneToIt(t *testing.T) {
	testlevel.All(t, "a cluster")
	t.Parallel()
	eachKind(t, func(t *testing.T, opts ...Option) {
		t.Helper()
		began := time.Now()
		c := StartCluster(t, 3, 1, opts...)
		t.Logf("started in %v", time.Since(began).Round(time.Millisecond))
		key := Key(t)
		first := c.Owner(t, key)
		require.Contains(t, c.Nodes()[:3], first)
		require.Len(t, c.Replicas(t, first), 1)
		require.Equal(t, "OK", c.Do(t, "SET", key, "v"))

		// A slot moves with its keys.
		other := c.Owner(t, otherSlot(t, c, key))
		c.MoveSlot(t, hashslot.Of(key), other, func() {
			require.Equal(t, []byte("v"), c.Do(t, "GET", key), "still where it was")
			_, err := first.try("GET", "{"+key+"}:none")
			word, addr := redirection(err)
			require.Equal(t, "ASK", word)
			require.Equal(t, other.Addr(), addr)
			require.Nil(t, c.Do(t, "GET", "{"+key+"}:none"))
		})
		require.Equal(t, other, c.Owner(t, key))
		require.Equal(t, []byte("v"), c.Do(t, "GET", key))

		// A replica takes over: asked to, and because it must.
		replica := c.Replicas(t, other)[0]
		c.Failover(t, replica)
		require.Equal(t, replica, c.AwaitOwner(t, key, other))
		require.Equal(t, []byte("v"), c.Do(t, "GET", key))
		c.await(t, "the former master is in step", func() bool { return len(replica.Replicas(t)) == 1 })
		replica.Kill()
		began = time.Now()
		require.Equal(t, other, c.AwaitOwner(t, key, replica))
		t.Logf("took over after %v", time.Since(began).Round(time.Millisecond))
		require.Equal(t, []byte("v"), c.Do(t, "GET", key))
		replica.Restart()
		require.Equal(t, []byte("v"), c.DoAt(t, key, "GET", key), "a restarted node knows the cluster")
	})
}

// otherSlot returns a key that another master serves.
func otherSlot(t *testing.T, c *Cluster, key string) string {
	t.Helper()
	for {
		if other := Key(t); c.Owner(t, other) != c.Owner(t, key) {
			return other
		}
	}
}

func TestAClusterWithoutShardedPubSubKnowsNoneOfIt(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, opts ...Option) {
		t.Helper()
		c := StartCluster(t, 1, 0, append(opts, WithoutShardedPubSub())...)
		s := c.Nodes()[0]
		_, err := s.try("SPUBLISH", "c", "m")
		require.ErrorContains(t, err, "ERR unknown command")
		_, err = s.try("PUBSUB", "SHARDNUMSUB", "0")
		require.Error(t, err)
		require.Equal(t, int64(0), c.Do(t, "PUBLISH", "c", "m"))
	})
}

func TestSentinelsSwitchMastersAndPublishIt(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, opts ...Option) {
		t.Helper()
		began := time.Now()
		set := StartSentinels(t, time.Second, append(opts, WithPassword("secret"))...)
		t.Logf("started in %v", time.Since(began).Round(time.Millisecond))
		first := set.Master(t)
		require.Equal(t, set.Servers()[0], first)
		require.Equal(t, "OK", set.Do(t, "SET", "k", "v"))
		n, err := redis.Int(first.Do(t, "WAIT", 2, 5000), nil)
		require.NoError(t, err)
		require.Equal(t, 2, n)

		wait := set.WatchSwitch(t)
		first.Kill()
		began = time.Now()
		reported := wait()
		t.Logf("reported after %v", reported.At.Sub(began).Round(time.Millisecond))
		require.Equal(t, first.Addr(), reported.From)
		second := set.AwaitMaster(t, first)
		require.Equal(t, reported.To, second.Addr())
		require.Equal(t, []byte("v"), set.Do(t, "GET", "k"))
	})
}
