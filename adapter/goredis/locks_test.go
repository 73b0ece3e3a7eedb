package goredis

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/locksuite"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/transport"
)

func TestLocksOnOneServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	locksuite.Run(t, locksuite.Deployment{
		New: func(tb testing.TB) transport.Transport {
			tb.Helper()
			return over(tb, redis.NewClient(reckless(server.Addr())))
		},
		Do: func(tb testing.TB, _, cmd string, args ...any) any {
			tb.Helper()
			return server.Do(tb, cmd, args...)
		},
		Publish: []string{"PUBLISH"},
	})
}

// sentineled is a deployment of what Sentinels watch.
func sentineled(set *redistest.Sentinels) locksuite.Deployment {
	return locksuite.Deployment{
		New: func(tb testing.TB) transport.Transport {
			tb.Helper()
			return over(tb, redis.NewFailoverClient(failoverOptions(set, "", nil)))
		},
		Do: func(tb testing.TB, _, cmd string, args ...any) any {
			tb.Helper()
			return set.Do(tb, cmd, args...)
		},
		Publish: []string{"PUBLISH"},
	}
}

func TestLocksOnAMasterOfSentinels(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, time.Minute)
	d := sentineled(set)
	d.WaitsForReplicas(t, locksuite.Replicas{Masters: set.Servers()[:1], Servers: set.Servers()[1:], Each: 2, Watched: true})
	locksuite.Run(t, d)
}

// A fail-over may lose locks, since replicas are written to late: that nobody ever
// shares one cannot be held. That everybody goes on can.
func TestLocksGoOnAfterTheMasterIsKilled(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, time.Second)
	var crowds []*locksuite.Crowd
	for _, kind := range locksuite.Kinds {
		crowds = append(crowds, sentineled(set).StartCrowd(t, kind, 4, redistest.Key(t), redistest.Key(t)))
	}
	progress(crowds)
	master := set.Master(t)
	master.Kill()
	set.AwaitMaster(t, master)
	progress(crowds)
	for i, crowd := range crowds {
		v := crowd.Stop()
		t.Logf("%s: %+v", locksuite.Kinds[i].Name, v)
		require.Less(t, v.Longest, 15*time.Second)
	}
}
