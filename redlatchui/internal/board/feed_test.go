package board

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A server that stands still gives no new value: viewers look at the old one again.
func TestViewersAreWokenWhenAValueGrowsOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &feed[Locks]{run: func(ctx context.Context, publish func(*Locks) bool) {
			publish(&Locks{})
			<-ctx.Done()
		}}
		ctx, cancel := context.WithCancel(t.Context())
		require.True(t, f.open())
		go f.serve(ctx)
		view := &View[Locks]{feed: f, end: f.close}
		value, changed := view.Get(ctx)
		for range 3 {
			began := time.Now()
			<-changed
			require.LessOrEqual(t, time.Since(began), 2*quiet)
			var again *Locks
			again, changed = view.Get(ctx)
			require.Same(t, value, again)
		}
		cancel()
		synctest.Wait()
	})
}

// A feed that is evicted ends, and its viewers learn of it.
// A server that stands still when the first viewer comes back.
func TestWhatWasSeenLastIsShownWhenNothingNewComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := &Locks{}
		var still atomic.Bool
		f := &feed[Locks]{run: func(ctx context.Context, publish func(*Locks) bool) {
			for !still.Load() && publish(seen) {
				time.Sleep(time.Second)
			}
			if still.Load() {
				<-ctx.Done()
			}
		}}
		ctx, cancel := context.WithCancel(t.Context())
		view := &View[Locks]{feed: f, end: f.close}
		require.True(t, f.open())
		go f.serve(ctx)
		value, _ := view.Get(ctx)
		require.Same(t, seen, value)
		view.Close()
		time.Sleep(2 * lingers)
		still.Store(true)
		require.True(t, f.open(), "it has ended")
		go f.serve(ctx)
		began := time.Now()
		value, changed := view.Get(ctx)
		require.Same(t, seen, value)
		require.NotNil(t, changed, "there may be newer ones")
		require.Greater(t, time.Since(began), time.Second, "a newer one would have come first")
		require.LessOrEqual(t, time.Since(began), 2*quiet)
		cancel()
		synctest.Wait()

		f.running = false
		f.close()
		time.Sleep(remembers + time.Second)
		require.True(t, f.open())
		value, _ = f.newest(true)
		require.Nil(t, value, "that is too long ago")
	})
}

func TestAFeedThatIsEvictedEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &feed[Locks]{run: func(ctx context.Context, publish func(*Locks) bool) {
			for publish(&Locks{}) && ctx.Err() == nil {
				time.Sleep(time.Second)
			}
		}}
		require.True(t, f.open())
		done := make(chan struct{})
		go func() { f.serve(t.Context()); close(done) }()
		view := &View[Locks]{feed: f, end: f.close}
		_, changed := view.Get(t.Context())
		f.evict()
		<-changed
		_, changed = view.Get(t.Context())
		require.Nil(t, changed)
		<-done
	})
}

func TestWhatFailedOrIsOverdueIsOld(t *testing.T) {
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
		require.Equal(t, c.old, (&Locks{At: c.at, Next: c.next, Err: c.err}).Old(now))
		require.Equal(t, c.old, (&Lock{At: c.at, Next: c.next, Err: c.err}).Old(now))
		require.Equal(t, c.old, (&Exam{At: c.at, Next: c.next, Err: c.err}).Old(now))
	}
}

// After a look that has waited for a server in vain the next one is soon.
func TestAFailedLookIsMadeAgainSoon(t *testing.T) {
	t.Parallel()
	failed := errors.New("no answer")
	require.Equal(t, 40*time.Second, pauseAfter(10*time.Second, nil))
	require.Equal(t, lookEvery, pauseAfter(10*time.Second, failed))
	require.Equal(t, 4*time.Millisecond, pauseAfter(time.Millisecond, failed))
}
