package rlock_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

func TestHoldContextReportsCause(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(h *rlock.Hold, client *redlatch.Client) error
		cause error
	}{
		"unlocked":       {func(h *rlock.Hold, _ *redlatch.Client) error { return h.Unlock() }, redlatch.ErrNotHeld},
		"left to expire": {func(h *rlock.Hold, _ *redlatch.Client) error { return h.LetExpire() }, redlatch.ErrNotHeld},
		"lost": {func(h *rlock.Hold, client *redlatch.Client) error {
			_, err := rlock.New(client, h.Name()).ForceUnlock(h.Context(context.Background()))
			time.Sleep(11 * time.Second)
			return err
		}, redlatch.ErrLost},
		"closed": {func(_ *rlock.Hold, client *redlatch.Client) error { return client.Close() }, redlatch.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, client := inBubble(t)
				hold := take(t, rlock.New(client, "job"))
				ctx := hold.Context(t.Context())
				child, cancel := context.WithTimeout(context.WithValue(ctx, key{}, 1), time.Hour)
				defer cancel()
				sibling := hold.Context(t.Context())
				require.NoError(t, c.end(hold, client))
				synctest.Wait()
				for _, ctx := range []context.Context{ctx, child, sibling, hold.Context(t.Context())} {
					select {
					case <-ctx.Done():
					default:
						require.Fail(t, "not done")
					}
					require.ErrorIs(t, ctx.Err(), context.Canceled)
					require.ErrorIs(t, context.Cause(ctx), c.cause)
				}
				require.ErrorIs(t, hold.Err(), c.cause)
				require.Zero(t, hold.Remaining())
			})
		})
	}
}

type key struct{}

func TestParentCancelKeepsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t)
		reason := errors.New("the user went home")
		parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "kept"))
		hold, err := rlock.New(client, "job").Lock(parent)
		require.NoError(t, err)
		ctx := hold.Context(parent)
		require.Equal(t, "kept", ctx.Value(key{}))
		cancel(reason)
		<-ctx.Done()
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		require.ErrorIs(t, context.Cause(ctx), reason)

		timed, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		ctx = hold.Context(timed)
		deadline, bounded := ctx.Deadline()
		require.True(t, bounded)
		require.Equal(t, time.Minute, time.Until(deadline))
		<-ctx.Done()
		require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
		require.NoError(t, hold.Err())
		require.NoError(t, hold.Unlock())
		require.ErrorIs(t, context.Cause(ctx), context.DeadlineExceeded, "the first cause is kept")
	})
}

func TestFixedLeaseContextUsesEarlierDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t)
		hold := take(t, rlock.New(client, "job"), rlock.WithLease(10*time.Second))
		for _, parent := range []time.Duration{time.Second, time.Minute} {
			outer, cancel := context.WithTimeout(t.Context(), parent)
			defer cancel()
			deadline, bounded := hold.Context(outer).Deadline()
			require.True(t, bounded)
			require.Equal(t, min(parent, 9*time.Second), time.Until(deadline))
		}
		child, cancel := context.WithTimeout(hold.Context(t.Context()), time.Minute)
		defer cancel()
		began := time.Now()
		<-child.Done()
		require.Equal(t, 9*time.Second, time.Since(began))
		require.ErrorIs(t, context.Cause(child), redlatch.ErrLost)
	})
}

// Not parallel: it counts goroutines.
func TestContextsNeedNoGoroutine(t *testing.T) {
	_, client := onShared(t)
	hold := take(t, rlock.New(client, t.Name()))
	before := runtime.NumGoroutine()
	outer, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan struct{}, 2000)
	for range 1000 {
		ctx := hold.Context(outer)
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		context.AfterFunc(child, func() { done <- struct{}{} })
		context.AfterFunc(hold.Context(child), func() { done <- struct{}{} })
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
	require.NoError(t, hold.Unlock())
	for range 2000 {
		<-done
	}
}

func TestConcurrentUnlocksSendOneScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &faketransport.Stalling{Transport: redigoTransport(redistest.Mini(t, embedded.WithInProcess()))}
		client := over(t, calls)
		hold := take(t, rlock.New(client, "job"))
		before := calls.Started()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { assert.NoError(t, hold.Unlock()) })
		}
		wg.Wait()
		require.Equal(t, before+1, calls.Started())
	})
}

func TestLetExpireKeepsKeyForLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		for _, opts := range [][]rlock.Option{nil, {rlock.WithLease(30 * time.Second)}} {
			hold := take(t, rlock.New(client, "job"), opts...)
			time.Sleep(time.Second)
			left := ttl(t, srv, "job")
			require.NoError(t, hold.LetExpire())
			require.ErrorIs(t, hold.Err(), redlatch.ErrNotHeld)
			require.ErrorIs(t, hold.LetExpire(), redlatch.ErrNotHeld)
			require.NoError(t, hold.Unlock(), "a deferred Unlock does nothing")
			time.Sleep(left - time.Millisecond)
			require.True(t, locked(t, srv, "job"))
			require.Equal(t, time.Millisecond, ttl(t, srv, "job"), "it was not renewed")
			time.Sleep(time.Millisecond)
			require.False(t, locked(t, srv, "job"))
		}
	})
}

func TestUnlockAsyncSavesOneRoundTrip(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const trip, pairs = time.Millisecond, 20
		w, client := wired(t, trip)
		loadScripts(t, client)
		l := rlock.New(client, "job")
		for _, c := range []struct {
			unlock func(*rlock.Hold) error
			took   time.Duration
		}{
			{(*rlock.Hold).Unlock, 2 * pairs * trip},
			{func(h *rlock.Hold) error { h.UnlockAsync(); return nil }, pairs * trip},
		} {
			synctest.Wait()
			began := time.Now()
			for range pairs {
				hold, err := l.Lock(t.Context())
				require.NoError(t, err)
				require.NoError(t, c.unlock(hold))
			}
			require.Equal(t, c.took, time.Since(began))
			time.Sleep(trip)
		}
		synctest.Wait()
		require.Zero(t, w.srv.Do(t, "EXISTS", l.Name()))
	})
}

func TestUnlockAsyncEndsHoldAndReportsOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 100*time.Millisecond)
		loadScripts(t, client)
		l := rlock.New(client, "job")
		hold, err := l.Lock(t.Context())
		require.NoError(t, err)
		ctx := hold.Context(t.Context())
		began := time.Now()
		outcome := hold.UnlockAsync()
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrNotHeld)
		require.NoError(t, <-outcome)
		require.Equal(t, 100*time.Millisecond, time.Since(began))
		require.NoError(t, <-hold.UnlockAsync(), "again")
		require.NoError(t, hold.Unlock())

		hold, err = l.Lock(t.Context())
		require.NoError(t, err)
		w.srv.Do(t, "DEL", l.Name())
		outcome = hold.UnlockAsync()
		var lost *redlatch.LockError
		require.ErrorAs(t, <-outcome, &lost)
		require.ErrorIs(t, lost, redlatch.ErrLost)
		require.Equal(t, "unlock", lost.Op)
		require.Same(t, lost, hold.Unlock())
	})
}

func TestCloseWaitsForUnlockAsync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 100*time.Millisecond)
		loadScripts(t, client)
		l := rlock.New(client, "job")
		hold, err := l.Lock(t.Context())
		require.NoError(t, err)
		outcome := hold.UnlockAsync()
		require.NoError(t, client.Close())
		require.NoError(t, <-outcome)
		require.Zero(t, w.srv.Do(t, "EXISTS", l.Name()))

		hold, err = rlock.New(client, "late").Lock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrClosed)
		require.Nil(t, hold)
	})
}
