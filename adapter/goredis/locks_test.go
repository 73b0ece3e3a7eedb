package goredis

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/locksuite/failovers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

func TestLocksOnOneServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	locksuite.Run(t, locksuite.OnServer(server, func(tb testing.TB) transport.Transport {
		tb.Helper()
		return over(tb, redis.NewClient(reckless(server.Addr())))
	}))
}

// sentineled is a deployment of what Sentinels watch.
func sentineled(set *redistest.Sentinels) locksuite.Deployment {
	return locksuite.OnServer(set, func(tb testing.TB) transport.Transport {
		tb.Helper()
		return over(tb, redis.NewFailoverClient(failoverOptions(set, "", nil)))
	})
}

func TestLocksOnAMasterOfSentinels(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, time.Minute)
	d := sentineled(set)
	d.WaitsForReplicas(t, locksuite.Replicas{Masters: set.Servers()[:1], Servers: set.Servers()[1:], Each: 2, Watched: true})
	locksuite.Run(t, d)
}

// TestFailoverTable replaces masters under locks; see package failovers.
func TestFailoverTable(t *testing.T) {
	failovers.Run(t, failovers.Adapter{
		Name: "go-redis",
		Cluster: func(tb testing.TB, c *redistest.Cluster) transport.Transport {
			tb.Helper()
			return named(tb, c, "")
		},
		Sentinels: func(tb testing.TB, set *redistest.Sentinels) transport.Transport {
			tb.Helper()
			return over(tb, redis.NewFailoverClient(failoverOptions(set, "", nil)))
		},
	})
}
