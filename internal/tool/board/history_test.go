package board

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// take makes an owner the only holder of a lock.
func take(t *testing.T, s *redistest.MiniServer, name, owner string, lease time.Duration) {
	t.Helper()
	s.Do(t, "DEL", name)
	s.Do(t, "HSET", name, owner, 1)
	s.Do(t, "PEXPIRE", name, lease.Milliseconds())
}

// view requests the locks for some time, as a viewer does.
func view(t *testing.T, b *Board, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
		first(t, b.Locks)
	}
	synctest.Wait()
}

// sum adds the points of a series: the highest gauges and the number of changes.
func sum(s *Series) (p Point) {
	if s == nil {
		return p
	}
	for _, q := range s.Points {
		p.Known = p.Known || q.Known
		p.Held, p.Waiters = max(p.Held, q.Held), max(p.Waiters, q.Waiters)
		p.Acquired, p.Expired = p.Acquired+q.Acquired, p.Expired+q.Expired
	}
	return p
}

func TestSeriesShowHoldsWaitersAndChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, b := start(t)
		take(t, s, "job:1", program.SomeOwner, 30*time.Second)
		view(t, b, time.Second)
		require.Equal(t, Point{Known: true, Held: 1}, sum(b.Series(OfAll, "")), "its beginning was not seen")
		require.Nil(t, b.Series(OfLock, "job:1"), "nothing happened to it")

		take(t, s, "job:2", program.SomeOwner, 30*time.Second)
		program.Enqueue(t, s, "job:2", program.RedissonOwner, time.Hour)
		view(t, b, 2*time.Second)
		take(t, s, "job:2", program.RedissonOwner, 30*time.Second)
		view(t, b, 2*time.Second)
		s.Do(t, "DEL", "job:2", "redisson_lock_queue:{job:2}") // released
		view(t, b, 2*time.Second)
		require.Equal(t, Point{Known: true, Held: 1, Waiters: 1, Acquired: 2}, sum(b.Series(OfLock, "job:2")))
		all := Point{Known: true, Held: 2, Waiters: 1, Acquired: 2}
		require.Equal(t, all, sum(b.Series(OfGroup, "job:")))

		view(t, b, 26*time.Second)
		all.Expired = 1 // job:1
		require.Equal(t, all, sum(b.Series(OfGroup, "job:")))
		require.Equal(t, all, sum(b.Series(OfAll, "")))
		require.EqualValues(t, 1, sum(b.Series(OfLock, "job:1")).Expired)
		view(t, b, Past+Slot)
		require.Equal(t, Point{Known: true}, sum(b.Series(OfAll, "")))
		require.Nil(t, b.Series(OfGroup, "job:"), "it is dropped")
		require.Nil(t, b.Series(OfLock, "job:2"), "it is dropped")
	})
}

func TestWatchedLockHasSeriesOfItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, b := start(t)
		watch := func() {
			for range 3 {
				firstOf(t, b)
				time.Sleep(time.Second)
			}
			synctest.Wait()
		}
		watch()
		require.Equal(t, Point{Known: true}, sum(b.Series(OfLock, "a")))
		take(t, s, "a", program.SomeOwner, 30*time.Second)
		watch()
		want := Point{Known: true, Held: 1, Acquired: 1}
		require.Equal(t, want, sum(b.Series(OfLock, "a")))
		view(t, b, 3*time.Second)
		require.Equal(t, want, sum(b.Series(OfLock, "a")), "a change is counted once")
		require.EqualValues(t, 1, sum(b.Series(OfAll, "")).Acquired)
	})
}

func TestSeriesHaveGapsWithoutViewers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, b := start(t)
		take(t, s, "a", program.SomeOwner, time.Hour)
		view(t, b, 10*time.Second)
		time.Sleep(time.Minute)
		take(t, s, "a", program.RedissonOwner, time.Hour)
		view(t, b, 10*time.Second)
		series := b.Series(OfAll, "")
		known := ""
		for _, p := range series.Points[Points-18:] {
			known += map[bool]string{true: "x", false: "-"}[p.Known]
		}
		require.Regexp(t, "^-*xx+-{6,}xx+$", known)
		require.Zero(t, sum(series).Acquired, "nobody knows when it was")
	})
}

func TestSlowScansLeaveNoGaps(t *testing.T) {
	t.Parallel()
	var h history
	sees := func(second float64, last time.Time, g gauges) *Series {
		h.all.sees(h.slot(at(second)), h.slot(last), g)
		return h.series(&h.all, false, at(second))
	}
	sees(0, time.Time{}, gauges{3, 1})
	sees(22, at(0), gauges{5, 0})
	series := sees(60, time.Time{}, gauges{4, 0})
	var held []int32
	for _, p := range series.Points[Points-13:] {
		held = append(held, p.Held)
	}
	require.Equal(t, []int32{3, 3, 3, 3, 5, 0, 0, 0, 0, 0, 0, 0, 4}, held)
	require.Equal(t, at(0), series.Since())
	require.Equal(t, at(65), series.End)
	require.Equal(t, Point{Known: true, Held: 4}, sum(sees(1000, at(60), gauges{4, 0})), "the rest is too old")
}

func TestOnlyUnrenewedHoldsExpire(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		looks []*look
		want  changes
	}{
		"crash":               {[]*look{seenAt(0, 30, "A"), seenAt(20, 10, "A"), seenAt(28, 2, "A"), seenAt(31, 0)}, changes{0, 1}},
		"crash, another took": {[]*look{seenAt(0, 30, "A"), seenAt(28, 2, "A"), seenAt(31, 30, "B")}, changes{1, 1}},
		"release":             {[]*look{seenAt(0, 30, "A"), seenAt(8, 22, "A"), seenAt(10, 0)}, changes{}},
		"release, slow looks": {[]*look{seenAt(0, 30, "A"), seenAt(20, 20, "A"), seenAt(41, 0)}, changes{}},
		"release, late":       {[]*look{seenAt(0, 30, "A"), seenAt(20, 10, "A"), seenAt(22, 0)}, changes{}},
		"not seen between":    {[]*look{seenAt(0, 30, "A"), seenAt(40, 30, "B")}, changes{1, 0}},
	} {
		var a ages
		var sum changes
		for i, l := range c.looks {
			if i > 0 {
				l.last = c.looks[i-1].at
			}
			_, got := a.sees("x", l)
			sum.acquired, sum.expired = sum.acquired+got.acquired, sum.expired+got.expired
		}
		require.Equal(t, c.want, sum, what)
	}
}

func TestNumberOfSeriesIsBounded(t *testing.T) {
	t.Parallel()
	var h history
	scan := func(second float64, kind string) {
		l := &Locks{Seen: Seen{At: at(second)}}
		for i := range 2 * seriesOfLocks {
			l.add(entryOf(&inspect.Lock{Name: fmt.Sprintf("%s%d:x", kind, i), Waiting: 1}), ByTrouble)
		}
		h.scanned(l, time.Time{})
	}
	scan(0, "a")
	scan(1, "b")
	h.watched("watched", at(2), time.Time{}, gauges{})
	require.Len(t, h.groups, seriesOfGroups)
	require.Len(t, h.locks, seriesOfLocks+1)
	scan(1+Past.Seconds(), "b")
	scan(2+Past.Seconds(), "b")
	require.NotNil(t, h.groups[hash("b0:")], "the others are forgotten")
	require.Nil(t, h.groups[hash("a0:")])
}

func TestNamesSortNaturally(t *testing.T) {
	t.Parallel()
	want := []string{"", "inv", "inv:01", "inv:1", "inv:2", "inv:10", "inv:11:a9", "inv:11:a10", "inv:99999999999999999999999", "inv:a", "jobs"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, CompareNames)
	require.Equal(t, want, got)
	require.Zero(t, CompareNames("a10", "a10"))
}

func TestShortHoldsLeaveRoomForQueues(t *testing.T) {
	t.Parallel()
	var h history
	for i := range uint64(2 * seriesOfLocks) {
		h.changed(i, i, at(0), changes{acquired: 1})
	}
	l := &Locks{Seen: Seen{At: at(1)}}
	l.add(entryOf(&inspect.Lock{Name: "queue:a", Waiting: 7}), ByTrouble)
	h.scanned(l, time.Time{})
	require.NotNil(t, h.locks[hash("queue:a")])
	require.NotNil(t, h.groups[hash("queue:")])
}

func TestUnreadLocksAreNotRecordedAsFree(t *testing.T) {
	t.Parallel()
	var h history
	l := &Locks{Seen: Seen{At: at(0)}}
	l.add(entryOf(&inspect.Lock{Name: "a:x", Waiting: 7}), ByTrouble)
	h.scanned(l, time.Time{})
	away := &Locks{Seen: Seen{At: at(10)}, Unread: inspect.Unread{Away: errors.New("a master does not reply")}}
	h.scanned(away, at(0))
	many := &Locks{Seen: Seen{At: at(20)}}
	for i := range mostGroups + 1 {
		many.add(entryOf(&inspect.Lock{Name: fmt.Sprint("other", i, ":x")}), ByTrouble)
	}
	h.scanned(many, at(10))
	last := slices.Index(h.all.points[:], Point{Known: true, Waiters: 7})
	require.Equal(t, Point{}, h.all.points[(last+2)%Points], "the second scan")
	require.Equal(t, Point{}, h.groups[hash("a:")].points[(last+4)%Points], "the group may not have been counted")
	require.Equal(t, Point{Known: true}, h.locks[hash("a:x")].points[(last+4)%Points], "all locks are kept")
}

func TestWatchedLocksReplaceInactiveOnes(t *testing.T) {
	t.Parallel()
	var h history
	for i := range seriesOfLocks + keptLocks + 1 {
		h.watched(fmt.Sprint(i), at(0), time.Time{}, gauges{})
	}
	require.Len(t, h.locks, seriesOfLocks+keptLocks)
	h.watched("new", at(Past.Seconds()+5), time.Time{}, gauges{})
	require.Len(t, h.locks, 1)
}

func TestGroupsCountLocksThatAreNotKept(t *testing.T) {
	t.Parallel()
	var l Locks
	for i := range 2*kept + 1 {
		l.add(entryOf(&inspect.Lock{Name: fmt.Sprint("a:", i), Waiting: 2}), ByTrouble)
	}
	l.cut(ByTrouble)
	locks, held, waiters, known := l.Group("a:")
	require.Equal(t, []any{2*kept + 1, 0, 4*kept + 2, true}, []any{locks, held, waiters, known})
	require.Len(t, l.Entries, kept)
}
