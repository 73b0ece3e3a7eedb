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

// feedOf returns a feed of a board without a server, which ends with the test.
func feedOf(t *testing.T, run func(ctx context.Context, last *Locks, publish func(*Locks) bool)) *Feed[Locks] {
	t.Helper()
	b := &Board{}
	b.ctx, b.cancel = context.WithCancel(t.Context())
	return &Feed[Locks]{board: b, run: run}
}

// A server stands still when the first viewer comes back.
func TestWhatWasSeenLastIsShownWhenNothingNewComes(t *testing.T) {
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
		require.Greater(t, time.Since(began), time.Second, "a newer one would have come first")
		require.LessOrEqual(t, time.Since(began), 2*quiet)
		f.board.cancel()
		synctest.Wait()

		time.Sleep(remembers + time.Second)
		value, _, err = f.newest(true)
		require.NoError(t, err)
		require.Nil(t, value, "that is too long ago")
		synctest.Wait()
	})
}

func TestAFeedThatIsEvictedEnds(t *testing.T) {
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
		require.Equal(t, c.old, (&Seen{At: c.at, Next: c.next, Err: c.err}).Old(now))
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
