package exporter

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

func TestLockBelongsToFirstMatchingGroup(t *testing.T) {
	t.Parallel()
	g, err := parseGroups([]string{"orders=orders:*", "urgent=*:urgent", "orders=old-orders:*"})
	require.NoError(t, err)
	require.Equal(t, []string{"orders", "urgent", "other"}, g.names)
	for name, want := range map[string]string{
		"orders:1": "orders", "orders:urgent": "orders", "old-orders:1": "orders", "bills:urgent": "urgent", "bills": "other", "": "other",
	} {
		require.Equal(t, want, g.names[g.of(name)], name)
	}
	g, err = parseGroups(nil)
	require.NoError(t, err)
	require.Equal(t, []string{"all"}, g.names)
	require.Zero(t, g.of("any"))
}

func TestFailedScanIsForgotten(t *testing.T) {
	t.Parallel()
	s, began := newSeen(), time.Now()
	lock := &inspect.Lock{Name: "job"}
	look := func(after time.Duration, owner string) (age time.Duration, isNew bool) {
		since, isNew, ok := s.hold(lock, owner, began.Add(after))
		require.True(t, ok)
		return began.Add(after).Sub(since), isNew
	}
	_, isNew := look(0, "a:1")
	require.False(t, isNew, "it began at an unknown time")
	s.turn(true)
	s.turn(false) // the connection broke before it was seen
	age, isNew := look(time.Minute, "a:1")
	require.Equal(t, time.Minute, age)
	require.False(t, isNew)
	age, isNew = look(time.Minute, "a:2")
	require.Zero(t, age)
	require.True(t, isNew)
	s.turn(true)
	s.turn(true) // it is free
	age, isNew = look(time.Hour, "a:1")
	require.Zero(t, age)
	require.True(t, isNew)
}

func TestFailedScanOfOtherMastersIsTimed(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2, 0)
	srv, err := connect.New(connect.Settings{Address: "redis-cluster://" + strings.Join(cluster.Addrs(), ",")})
	require.NoError(t, err)
	groups, err := parseGroups(nil)
	require.NoError(t, err)
	c := &collector{server: srv, by: groups}
	cluster.Nodes()[1].Kill()
	_, _, err = c.look(t.Context())
	require.ErrorContains(t, err, cluster.Nodes()[1].Addr())
	require.Positive(t, c.scanned)
	cluster.Nodes()[0].Kill()
	_, _, err = c.look(t.Context())
	require.Error(t, err)
	require.Zero(t, c.scanned)
}

func TestExcessHoldsHaveNoAge(t *testing.T) {
	t.Parallel()
	s, lock := newSeen(), &inspect.Lock{Name: "job"}
	for i := range maxHolds {
		s.next[uint64(i)] = time.Time{}
	}
	s.looked = true
	_, isNew, ok := s.hold(lock, "a:1", time.Now())
	require.False(t, ok)
	require.False(t, isNew, "it would be new at each look")
}

func TestOverlongPlacesAreUnchecked(t *testing.T) {
	t.Parallel()
	l := &look{collector: &collector{seen: newSeen()}, figures: figures{groups: []group{{held: map[inspect.Kind]int64{}}}}}
	l.by.names = []string{everything}
	long := strings.Repeat("x", longestPlace)
	require.NoError(t, l.lock(&inspect.Lock{Name: "a", Queue: 4, Places: []string{program.SomeOwner, long, program.RedissonOwner}}))
	require.NoError(t, l.lock(&inspect.Lock{Name: long, Queue: 1, Places: []string{program.SomeOwner}}))
	require.Equal(t, []waiter{{"a", program.SomeOwner, 0}, {"a", program.RedissonOwner, 0}}, l.waiters)
	require.EqualValues(t, 3, l.unchecked)
	require.EqualValues(t, 5, l.groups[0].queued)
}

func TestQueueThatGrowsDuringLookIsNotUnchecked(t *testing.T) {
	t.Parallel()
	l := &look{collector: &collector{seen: newSeen()}, figures: figures{groups: []group{{held: map[inspect.Kind]int64{}}}}}
	l.by.names = []string{everything}
	require.NoError(t, l.lock(&inspect.Lock{Name: "a", Queue: 1, Places: []string{program.SomeOwner, program.RedissonOwner}}))
	require.Zero(t, l.unchecked)
}

const manyLocks = 20_000

func TestExporterLoadIsBounded(t *testing.T) {
	testlevel.All(t, "load: 20,000 locks")
	t.Parallel()
	s := redistest.Start(t)
	c := s.Dial(t)
	for i := range manyLocks {
		name := fmt.Sprintf("orders:%07d", i)
		require.NoError(t, c.Send("HSET", name, codec.NewOwner(uuid.NameSpaceDNS, int64(i)).String(), 1))
		require.NoError(t, c.Send("PEXPIRE", name, time.Hour.Milliseconds()))
		if i%4 == 0 {
			require.NoError(t, c.Send("RPUSH", codec.QueueKey(name), program.LongOwner(0), program.LongOwner(1)))
		}
		if i%1000 == 0 {
			_, err := c.Do("")
			require.NoError(t, err)
		}
	}
	// LRANGE of the whole queue would be slow.
	_, err := c.Do("EVAL", "for i = 1, 100000 do redis.call('RPUSH', KEYS[1], i) end", 1, codec.QueueKey("orders:0000001"))
	require.NoError(t, err)
	_, base := start(t, s.URL(), "--every", "10m", "--match", "orders=orders:*")
	series := looks(t, base, 1)
	require.InDelta(t, manyLocks*3/4-1, series[`redlatch_server_locks_held{group="orders",kind="plain"}`], 0)
	require.InDelta(t, manyLocks/4+1, series[`redlatch_server_locks_held{group="orders",kind="fair"}`], 0)
	require.InDelta(t, manyLocks/2+100_000, series[`redlatch_server_queue_length{group="orders"}`], 0)
	require.InDelta(t, 100_000, series[`redlatch_server_queue_longest{group="orders"}`], 0)
	require.InDelta(t, 100_000-200, series[`redlatch_exporter_waiters_unchecked`], 0)

	// The scrapes share one look.
	stats := s.CommandStats(t)
	require.Greater(t, stats["scan"], int64(manyLocks/256), "each scan is short")
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

func TestFailedDeadlockSearchKeepsOtherMetrics(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "a", program.RedissonOwner, 1)
	srv, err := connect.New(connect.Settings{Address: s.URL()})
	require.NoError(t, err)
	l := &look{collector: &collector{server: srv, nameAfter: time.Minute}, figures: figures{groups: []group{{name: "all", holder: program.RedissonOwner}}}}
	require.NoError(t, l.nameHolders(t.Context()))
	require.Empty(t, l.groups[0].holder, "it is too young")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, lock := range circle() {
		l.suspects.Add(lock)
	}
	l.findCircles(ended)
	var text text
	l.write(&text, true)
	require.NotContains(t, text.String(), "deadlocked")
	require.Contains(t, text.String(), "redlatch_server_queue_length")
}

// circle is two locks whose holders are queued for the other one.
func circle() (locks []*inspect.Lock) {
	owners := []string{program.RedissonOwner, program.LongOwner(1)}
	for i, name := range []string{"a", "b"} {
		locks = append(locks, &inspect.Lock{
			Name: name, Kind: inspect.Fair, Queue: 1, Places: owners[1-i : 2-i], Holders: []inspect.Holder{{Owner: owners[i]}},
		})
	}
	return locks
}
