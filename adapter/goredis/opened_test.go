package goredis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/locksuite"
	"github.com/redlatch/redlatch/internal/redistest"
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
	locksuite.Run(t, d)
}

func TestLocksOfAMasterOfSentinelsThatWasOpened(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, time.Minute)
	d := sentineled(set)
	d.Open = opened("redis-sentinel://" + set.Addrs()[2] + "/" + redistest.MasterName)
	locksuite.Run(t, d)
}
