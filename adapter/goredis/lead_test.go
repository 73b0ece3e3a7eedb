package goredis

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestCallerThatIsAloneReadsOnConnectionsOfGoRedis(t *testing.T) {
	t.Parallel()
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		locksuite.Leads(t, over(t, redis.NewClient(reckless(redistest.Start(t).Addr()))))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		locksuite.Leads(t, named(t, redistest.StartCluster(t, 3, 0), ""))
	})
	t.Run("Sentinels", func(t *testing.T) {
		t.Parallel()
		locksuite.Leads(t, over(t, redis.NewFailoverClient(failoverOptions(redistest.StartSentinels(t, time.Minute), "", nil))))
	})
}
