package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// requireLossAt checks that the hold ends exactly at the given time.
func requireLossAt(ctx context.Context, t *testing.T, hold *rlock.Hold, at time.Time) {
	t.Helper()
	time.Sleep(time.Until(at) - time.Millisecond)
	require.NoError(t, hold.Err())
	require.NoError(t, ctx.Err())
	require.NoError(t, context.Cause(ctx))
	require.Equal(t, time.Millisecond, hold.Remaining())
	awaitClosed(t, ctx.Done(), time.Until(at)+time.Second, "the loss")
	require.Zero(t, time.Since(at), "the moment of the loss")
	require.ErrorIs(t, hold.Err(), redlatch.ErrLost)
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	require.ErrorIs(t, context.Cause(ctx), redlatch.ErrLost)
	require.Zero(t, hold.Remaining())
}

// The lease counts from the sending of the last acknowledged call.
func TestU1U2HoldEndsALeaseLessTheMarginAfterTheLastAcknowledgedCall(t *testing.T) {
	const latency = 50 * time.Millisecond
	for name, cut := range map[string]func(*wire){
		"no answers":   func(w *wire) { w.hole.Store(true) },
		"errors":       func(w *wire) { w.srv.FailWith("LOADING Redis is loading the dataset in memory") },
		"disconnected": func(w *wire) { w.refuse.Store(true); w.srv.DropConnections() },
	} {
		for _, lease := range []time.Duration{3 * time.Second, 8 * time.Second, 30 * time.Second} {
			for _, tenths := range []int{5, 12, 19, 26} { // of a lease
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w, client := wired(t, latency)
						hold := take(t, rlock.New(client, "job"), rlock.WithWatchdog(lease))
						ctx := hold.Context(t.Context())
						time.Sleep(lease * time.Duration(tenths) / 10)
						synctest.Wait()
						require.NoError(t, hold.Err())
						cut(w)
						acknowledged := w.lastSent()
						margin := min(lease/10, time.Second)
						requireLossAt(ctx, t, hold, acknowledged.Add(lease-margin))
					})
				})
			}
		}
	}
}

func TestU1LeaseCountsFromTheSendingOfTheAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 800*time.Millisecond)
		began := time.Now()
		hold := take(t, rlock.New(client, "job"), rlock.WithLease(30*time.Second))
		took := time.Since(began)
		require.GreaterOrEqual(t, took, 800*time.Millisecond)
		require.Equal(t, 29*time.Second-took, hold.Remaining())
		require.GreaterOrEqual(t, ttl(t, w.srv, "job"), hold.Remaining()+time.Second)
		requireLossAt(hold.Context(t.Context()), t, hold, began.Add(29*time.Second))
	})
}

func TestU2HoldEndsBeforeTheServerCanGiveTheLockAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 10*time.Millisecond)
		hold := take(t, rlock.New(client, "job"), rlock.WithWatchdog(2*time.Second))
		rival := await(t.Context(), rlock.New(fakeClient(t, w.srv), "job"))
		time.Sleep(5 * time.Second)
		w.hole.Store(true)
		awaitClosed(t, hold.Context(t.Context()).Done(), 2*time.Second, "the loss")
		lost := time.Now()
		rival.stillWaits(t)
		require.Positive(t, ttl(t, w.srv, "job"))
		next := rival.acquired(t, soon)
		require.GreaterOrEqual(t, time.Since(lost), 200*time.Millisecond)
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
		require.NoError(t, next.Unlock())
	})
}

func TestU7OutageShorterThanTheLeaseCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, time.Millisecond)
		hold := take(t, rlock.New(client, "job"))
		for range 20 {
			time.Sleep(time.Minute)
			w.hole.Store(true)
			time.Sleep(10 * time.Second)
			w.hole.Store(false)
			time.Sleep(time.Minute)
			require.NoError(t, hold.Err())
			require.Greater(t, ttl(t, w.srv, "job"), 18*time.Second, "renewals have resumed")
		}
		require.NoError(t, hold.Unlock())
	})
}

func TestU43LockThatTheServerForgotIsLostWithinARenewalPeriod(t *testing.T) {
	for name, forget := range vanishings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, client := inBubble(t)
				hold, neighbor := take(t, rlock.New(client, "job")), rlock.New(client, "neighbor")
				kept := take(t, neighbor)
				time.Sleep(17 * time.Second)
				require.NoError(t, hold.Err())
				forget(t, srv, client)
				awaitLoss(t, hold, 10*time.Second)
				if name != "flushed" { // the renewal script of both keeps it
					time.Sleep(time.Minute)
					require.NoError(t, kept.Unlock())
				}
			})
		})
	}
}

func command(name string, args ...any) func(*testing.T, *redistest.MiniServer, *redlatch.Client) {
	return func(t *testing.T, srv *redistest.MiniServer, _ *redlatch.Client) {
		t.Helper()
		srv.Do(t, name, args...)
	}
}

func TestU10LostHoldTouchesNothingOfItsSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		hold := take(t, rlock.New(client, "job"))
		holdByHand(t, srv, "job", time.Hour)
		ctx := hold.Context(t.Context())
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrNotHeld, "given up, as far as the holder knew")
		time.Sleep(time.Minute)
		require.Equal(t, map[string]string{foreignOwner: "1"}, owners(t, srv, "job"))
		require.Equal(t, time.Hour-time.Minute, ttl(t, srv, "job"))
	})
}

// vanishings are ways in which a held lock goes away.
var vanishings = map[string]func(t *testing.T, srv *redistest.MiniServer, client *redlatch.Client){
	"deleted":     command("DEL", "job"),
	"flushed":     command("FLUSHALL"),
	"overwritten": command("SET", "job", "a cache's"),
	"renamed":     command("RENAME", "job", "job-away"),
	"taken":       command("EVAL", "redis.call('DEL', KEYS[1]); redis.call('HSET', KEYS[1], ARGV[1], 1)", 1, "job", foreignOwner),
	"forced": func(t *testing.T, _ *redistest.MiniServer, client *redlatch.Client) {
		t.Helper()
		forced, err := rlock.New(client, "job").ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, forced)
	},
}
