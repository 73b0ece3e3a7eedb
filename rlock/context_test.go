package rlock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

func TestContextEndsWithTheHoldAndTellsWhy(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(t *testing.T, h *rlock.Hold, client *redlatch.Client)
		cause error
	}{
		"unlocked": {
			func(t *testing.T, h *rlock.Hold, _ *redlatch.Client) { t.Helper(); require.NoError(t, h.Unlock()) },
			redlatch.ErrNotHeld,
		},
		"left to expire": {
			func(t *testing.T, h *rlock.Hold, _ *redlatch.Client) { t.Helper(); require.NoError(t, h.LetExpire()) },
			redlatch.ErrNotHeld,
		},
		"lost": {
			func(t *testing.T, h *rlock.Hold, client *redlatch.Client) {
				t.Helper()
				_, err := rlock.New(client, h.Name()).ForceUnlock(t.Context())
				require.NoError(t, err)
				time.Sleep(11 * time.Second)
			},
			redlatch.ErrLost,
		},
		"closed": {
			func(t *testing.T, _ *rlock.Hold, client *redlatch.Client) {
				t.Helper()
				require.NoError(t, client.Close())
			},
			redlatch.ErrClosed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, client := inBubble(t)
				hold := take(t, rlock.New(client, "job"))
				ctx := hold.Context(t.Context())
				child, cancel := context.WithTimeout(context.WithValue(ctx, key{}, 1), time.Hour)
				defer cancel()
				sibling := hold.Context(t.Context())
				c.end(t, hold, client)
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

func TestContextEndsWithItsParentAndTheHoldGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t)
		hold := take(t, rlock.New(client, "job"))
		reason := errors.New("the user went home")
		parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "kept"))
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
		require.ErrorIs(t, context.Cause(ctx), context.DeadlineExceeded, "the first cause stays")
	})
}

func TestContextOfAFixedLeaseHasTheEarlierDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t)
		hold := take(t, rlock.New(client, "job"), rlock.WithLease(10*time.Second))
		for _, parent := range []time.Duration{time.Second, time.Minute} {
			outer, cancel := context.WithTimeout(t.Context(), parent)
			deadline, bounded := hold.Context(outer).Deadline()
			require.True(t, bounded)
			require.Equal(t, min(parent, 9*time.Second), time.Until(deadline))
			cancel()
		}
		require.NoError(t, hold.Unlock())
	})
}

func TestChildThatOutlivesTheLeaseEndsWithTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t)
		hold := take(t, rlock.New(client, "job"), rlock.WithLease(10*time.Second))
		child, cancel := context.WithTimeout(hold.Context(t.Context()), time.Minute)
		defer cancel()
		began := time.Now()
		<-child.Done()
		require.Equal(t, 9*time.Second, time.Since(began))
		require.ErrorIs(t, context.Cause(child), redlatch.ErrLost)
	})
}

// Not parallel: it counts goroutines.
func TestContextsAndTheirChildrenCostNoGoroutine(t *testing.T) {
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
