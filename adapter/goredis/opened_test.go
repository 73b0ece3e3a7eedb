package goredis

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// opened returns clients that open an address, without go-redis: the suite is here
// because clusters and Sentinels want a machine of their own, as those of the adapter.
func opened(address string) func(tb testing.TB, opts ...redlatch.Option) *redlatch.Client {
	return func(tb testing.TB, opts ...redlatch.Option) *redlatch.Client {
		tb.Helper()
		c, err := redlatch.Open(tb.Context(), address, opts...)
		require.NoError(tb, err)
		return c
	}
}

func TestLocksInAClusterThatWasOpened(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 1)
	d := clustered(c, []string{"SPUBLISH", "PUBLISH"})
	d.Open = opened("redis-cluster://" + c.Addrs()[0] + "," + c.Addrs()[1])
	d.WaitsForReplicas(t, locksuite.ReplicasOf(c))
	locksuite.Run(t, d)
}

func TestLocksOfAMasterOfSentinelsThatWasOpened(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, time.Minute)
	d := sentineled(set)
	d.Open = opened("redis-sentinel://" + set.Addrs()[2] + "/" + redistest.MasterName)
	locksuite.Run(t, d)
}

// The old master works on: a client that only asked when something is wrong would stay.
func TestASwitchIsActedOnByClientsThatOpenedTheAddress(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, 5*time.Second)
	client := opened("redis-sentinel://"+set.Addrs()[1]+"/"+redistest.MasterName)(t, redlatch.WithClientName("opened"))
	defer func() { require.NoError(t, client.Close()) }()
	former := set.Master(t)
	hold, err := rlock.New(client, redistest.Key(t)).Lock(t.Context())
	require.NoError(t, err)
	require.True(t, connected(t, former))
	wait := set.WatchSwitch(t)
	set.Failover(t)
	reported := wait()
	require.Eventually(t, func() bool { return !connected(t, former) }, 10*time.Second, 5*time.Millisecond)
	late := time.Since(reported.At)
	t.Logf("the connections to the former master were gone %v after the first +switch-master", late.Round(time.Millisecond))
	require.Less(t, late, actedWithin)
	now := set.AwaitMaster(t, former)
	_ = hold.Unlock() // whether it survived is a matter of luck
	require.NoError(t, rlock.New(client, redistest.Key(t)).Do(t.Context(), func(context.Context) error { return nil }))
	require.True(t, connected(t, now))
}

// connected reports whether the client that opened the address is connected to a server.
func connected(t *testing.T, srv *redistest.Server) bool {
	t.Helper()
	list, isText := srv.Do(t, "CLIENT", "LIST").([]byte)
	require.True(t, isText)
	return strings.Contains(string(list), "name=opened ")
}
