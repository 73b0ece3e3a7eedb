package exporter

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

const manyLocks = 20_000

// It is not parallel: other tests would make the machine busier.
func TestTheExporterIsNoBurdenHoweverManyLocksAndScrapesThereAre(t *testing.T) {
	testlevel.All(t, "load: 20,000 locks")
	s := redistest.Start(t)
	c := s.Dial(t)
	for i := range manyLocks {
		name := fmt.Sprintf("orders:%07d", i)
		require.NoError(t, c.Send("HSET", name, redlatch.NewOwner(uuid.NameSpaceDNS, int64(i)).String(), 1))
		require.NoError(t, c.Send("PEXPIRE", name, time.Hour.Milliseconds()))
		if i%4 == 0 {
			require.NoError(t, c.Send("RPUSH", codec.QueueKey(name), program.LongOwner(0), program.LongOwner(1)))
		}
		if i%1000 == 0 {
			_, err := c.Do("")
			require.NoError(t, err)
		}
	}
	// What a LRANGE of all of it would take long for.
	_, err := c.Do("EVAL", "for i = 1, 100000 do redis.call('RPUSH', KEYS[1], i) end", 1, codec.QueueKey("orders:0000001"))
	require.NoError(t, err)
	slow := program.WatchSlow(t, s, 10*time.Millisecond)
	began := time.Now()
	_, base := start(t, s.URL(), "--every", "10m", "--match", "orders=orders:*")
	series := looks(t, base, 1)
	t.Logf("a look at %d locks took %v, %v by itself", manyLocks, time.Since(began), series["redlatch_exporter_look_duration_seconds"])
	require.Empty(t, slow())
	require.InDelta(t, manyLocks*3/4-1, series[`redlatch_server_locks_held{group="orders",kind="plain"}`], 0)
	require.InDelta(t, manyLocks/4+1, series[`redlatch_server_locks_held{group="orders",kind="fair"}`], 0)
	require.InDelta(t, manyLocks/2+100_000, series[`redlatch_server_queue_length{group="orders"}`], 0)
	require.InDelta(t, 100_000, series[`redlatch_server_queue_longest{group="orders"}`], 0)
	require.InDelta(t, 100_000-200, series[`redlatch_exporter_waiters_unchecked`], 0)

	// The scrapes share the look.
	stats := s.CommandStats(t)
	for range 50 {
		require.Len(t, scrape(t, base), len(series), "the number of series depends on the groups alone")
	}
	require.Equal(t, stats["scan"], s.CommandStats(t)["scan"])
	for _, never := range []string{"keys", "hgetall", "type", "evalsha"} {
		require.Zero(t, stats[never], never)
	}
	require.Less(t, len(series), 40)
	for name := range series {
		require.NotContains(t, name, "orders:")
		require.NotContains(t, name, uuid.NameSpaceDNS.String())
	}
}
