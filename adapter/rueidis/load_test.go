package rueidis_test

import (
	"testing"

	lib "github.com/redis/rueidis"

	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/locksuite/failovers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// named makes a transport to a cluster over a client whose connections have a name.
func named(tb testing.TB, c *redistest.Cluster, name string) transport.Transport {
	tb.Helper()
	return over(tb, clientOf(tb, lib.ClientOption{InitAddress: c.Addrs(), ClientName: name}))
}

func unnamed(tb testing.TB, c *redistest.Cluster) transport.Transport {
	tb.Helper()
	return named(tb, c, "")
}

func TestAThousandWaitersShareTwoSubscriptionConnectionsToEachNode(t *testing.T) {
	t.Parallel()
	locksuite.ManyWaiters(t, named)
}

func TestU44ManyHoldsAreRenewedInTimeByAsManyGoroutinesAsOne(t *testing.T) {
	locksuite.ManyHolds(t, unnamed)
}

// TestFailoverTable replaces masters under locks; see package failovers.
func TestFailoverTable(t *testing.T) {
	failovers.Run(t, failovers.Adapter{
		Name:    "rueidis",
		Cluster: unnamed,
		Sentinels: func(tb testing.TB, set *redistest.Sentinels) transport.Transport {
			tb.Helper()
			return overSentinels(tb, sentinels(set))
		},
	})
}
