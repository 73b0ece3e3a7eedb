package board

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// start returns an embedded server, and a board for its locks.
func start(t *testing.T) (*redistest.MiniServer, *Board) {
	t.Helper()
	s := redistest.Mini(t, embedded.WithInProcess())
	client, err := redlatch.New(s.Server.Dial)
	require.NoError(t, err)
	source, err := FromClient(client)
	require.NoError(t, err)
	b := New(source, "", LeastEvery)
	t.Cleanup(func() {
		require.NoError(t, b.Close())
		require.NoError(t, client.Close())
	})
	return s, b
}

func first[T any](t *testing.T, f *Feed[T]) *T {
	t.Helper()
	value, _, err := f.Get(t.Context())
	require.NoError(t, err)
	return value
}

func firstOf(t *testing.T, b *Board) *Lock {
	t.Helper()
	f, err := b.Lock("a", "")
	require.NoError(t, err)
	return first(t, f)
}

func awaitStop(t *testing.T, b *Board) {
	t.Helper()
	time.Sleep(2 * (lingers + lookEvery)) // the lock's feed uses the feed of all locks
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.False(t, b.Locks.running)
	require.False(t, b.watched["a"].running)
}

func TestFirstValueAfterPauseKeepsHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, b := start(t)
		s.Do(t, "HSET", "a", program.SomeOwner, 1)
		s.Do(t, "PEXPIRE", "a", 600_000)
		program.Enqueue(t, s, "a", program.RedissonOwner, time.Hour)
		began := time.Now()
		all := first(t, b.Locks)
		require.Equal(t, DeadFront, all.Entries[0].Trouble, "two scans")
		require.GreaterOrEqual(t, time.Since(began), absentFor)
		require.Empty(t, b.watched)
		began = time.Now()
		l := firstOf(t, b)
		require.Zero(t, time.Since(began), "scans have counted")
		require.Equal(t, all.Entries[0].Age, l.Age)
		require.Equal(t, Dead, l.Queue[0].State)

		awaitStop(t, b)
		began = time.Now()
		again := first(t, b.Locks)
		require.Zero(t, time.Since(began), "one scan suffices")
		require.Equal(t, DeadFront, again.Entries[0].Trouble)
		require.Equal(t, all.Entries[0].Age, again.Entries[0].Age)
		require.True(t, again.At.After(all.At))
		later := firstOf(t, b)
		require.Equal(t, l.Age, later.Age)
		require.Equal(t, Dead, later.Queue[0].State)
		require.Equal(t, l.Lease, later.Lease)
		require.Len(t, l.Events, 1)
		require.Equal(t, l.Events, later.Events, "held is reported once")
	})
}

func TestFirstLookFindsDeadWaiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, b := start(t)
		b.every = time.Hour
		s.Do(t, "HSET", "a", program.SomeOwner, 1)
		program.Enqueue(t, s, "a", program.RedissonOwner, time.Hour)
		require.Equal(t, Dead, firstOf(t, b).Queue[0].State)
		require.Equal(t, DeadFront, first(t, b.Locks).Entries[0].Trouble, "the scan that looked for circles")
	})
}

func TestFirstScanFindsAllDeadWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, b := start(t)
		for i := range 3 * nodeFronts {
			program.Enqueue(t, s, fmt.Sprint("lock\xff", i), program.RedissonOwner, time.Hour)
		}
		all := first(t, b.Locks)
		require.Len(t, all.Entries, 3*nodeFronts)
		require.Empty(t, all.Uncounted)
		for i := range all.Entries {
			require.Equal(t, DeadFront, all.Entries[i].Trouble, all.Entries[i].Name)
		}
	})
}

// feedOf returns a feed of a board without a server, which ends with the test.
func feedOf(t *testing.T, run func(ctx context.Context, last *Locks, publish func(*Locks) bool)) *Feed[Locks] {
	t.Helper()
	b := &Board{}
	b.ctx, b.cancel = context.WithCancel(t.Context())
	return &Feed[Locks]{board: b, run: run}
}

func TestLastValueShownWithoutUpdates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := &Locks{}
		var still atomic.Bool
		var known atomic.Pointer[Locks]
		f := feedOf(t, func(ctx context.Context, last *Locks, publish func(*Locks) bool) {
			known.Store(last)
			for !still.Load() && publish(seen) {
				time.Sleep(time.Second)
			}
			if still.Load() {
				<-ctx.Done()
			}
		})
		value, changed, err := f.Get(t.Context())
		require.NoError(t, err)
		require.Same(t, seen, value)
		<-changed
		f.board.running.Wait()
		still.Store(true)
		began := time.Now()
		value, changed, err = f.Get(t.Context())
		require.NoError(t, err)
		require.Same(t, seen, value)
		require.Same(t, seen, known.Load())
		require.NotNil(t, changed, "there may be newer ones")
		require.Equal(t, quiet, time.Since(began), "a newer one would come first")
		f.board.cancel()
		synctest.Wait()

		time.Sleep(remembers + time.Second)
		value, _, err = f.newest(true)
		require.NoError(t, err)
		require.Nil(t, value, "that is too long ago")
		synctest.Wait()
	})
}

func TestEvictedFeedEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := feedOf(t, func(ctx context.Context, _ *Locks, publish func(*Locks) bool) {
			for publish(&Locks{}) && ctx.Err() == nil {
				time.Sleep(time.Second)
			}
		})
		_, changed, err := f.Get(t.Context())
		require.NoError(t, err)
		f.board.mu.Lock()
		f.evict()
		f.board.mu.Unlock()
		<-changed
		_, changed, err = f.Get(t.Context())
		require.NoError(t, err)
		require.Nil(t, changed)
		f.board.running.Wait()
	})
}

func TestFailedOrOverdueDataIsStale(t *testing.T) {
	t.Parallel()
	now := at(0)
	failed := errors.New("no answer")
	for _, c := range []struct {
		at, next time.Time
		err      error
		old      bool
	}{
		{at: at(-1), next: at(1)},
		{at: at(-9), next: at(-1), old: true},
		{at: at(-1), next: at(1), err: failed, old: true},
		{err: failed},
		{},
	} {
		require.Equal(t, c.old, (&Seen{At: c.at, Next: c.next, Err: c.err}).Old(now))
	}
}

func TestFailedScanIsRetriedSoon(t *testing.T) {
	t.Parallel()
	failed := errors.New("no answer")
	require.Equal(t, 40*time.Second, pauseAfter(10*time.Second, nil))
	require.Equal(t, lookEvery, pauseAfter(10*time.Second, failed))
	require.Equal(t, 4*time.Millisecond, pauseAfter(time.Millisecond, failed))
}

func TestMain(m *testing.M) { redistest.Main(m) }

func TestPreferredOrderDecidesWhichLocksAreKept(t *testing.T) {
	t.Parallel()
	_, b := start(t)
	backwards := func(a, b Entry) int { return strings.Compare(b.Name, a.Name) }
	for _, order := range []func(a, b Entry) int{nil, backwards} {
		b.Prefer(order)
		found := &Locks{}
		for i := range 3 * kept {
			e := Entry{Lock: &inspect.Lock{Name: fmt.Sprintf("%05d", i)}}
			if i == kept {
				e.Trouble = NoLease
			}
			found.add(e, b.order())
		}
		found.cut(b.order())
		require.Len(t, found.Entries, kept)
		require.Equal(t, 3*kept, found.Total)
		if order == nil {
			require.Equal(t, []string{fmt.Sprintf("%05d", kept), "00000"}, []string{found.Entries[0].Name, found.Entries[1].Name})
		} else {
			require.Equal(t, []string{"59999", "40000"}, []string{found.Entries[0].Name, found.Entries[kept-1].Name})
		}
	}
}

func TestTotalsIncludeLocksThatAreNotKept(t *testing.T) {
	t.Parallel()
	all := &Locks{}
	for i := range 2 * kept {
		all.add(Entry{Lock: &inspect.Lock{Name: fmt.Sprint(i), Queue: 2}, Trouble: NoLease}, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	}
	require.Len(t, all.Entries, kept)
	require.Equal(t, 2*kept, all.Total)
	require.Equal(t, 4*kept, all.Waiting)
	require.Equal(t, kept, all.Troubled, "the others can still change")
}
