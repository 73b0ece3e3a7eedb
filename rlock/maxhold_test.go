package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/rlock"
)

func TestU37MaxHoldEndsAHoldThatIsRenewedWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		l := rlock.New(client, "lock")
		hold := take(t, l, rlock.WithMaxHold(5*time.Minute))
		ctx := hold.Context(t.Context())
		deadline, ok := ctx.Deadline()
		require.True(t, ok)
		require.WithinDuration(t, time.Now().Add(5*time.Minute), deadline, time.Second)
		w := await(t.Context(), rlock.New(fakeClient(t, srv), "lock"))

		time.Sleep(5*time.Minute - time.Millisecond)
		synctest.Wait()
		require.NoError(t, hold.Err())
		time.Sleep(time.Millisecond)
		require.ErrorIs(t, hold.Err(), redlatch.ErrMaxHold)
		synctest.Wait()
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrMaxHold)
		ended := time.Now()
		next := w.acquired(t, time.Minute)
		require.LessOrEqual(t, time.Since(ended), 30*time.Second+time.Millisecond, "a waiter proceeds one lease later")
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrMaxHold)
		require.NoError(t, next.Err())
		require.EqualValues(t, 1, countOf(t, l, next))
		require.NoError(t, next.Unlock())
	})
}

func TestU37UnlockAfterMaxHoldFreesTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		hold := take(t, rlock.New(client, "lock"), rlock.WithMaxHold(time.Minute))
		time.Sleep(time.Minute)
		require.ErrorIs(t, hold.Err(), redlatch.ErrMaxHold)
		require.True(t, locked(t, srv, "lock"))
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrMaxHold)
		require.False(t, locked(t, srv, "lock"))
	})
}

func TestContradictingLeaseOptionsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t)
		l := rlock.New(client, "lock")
		for _, opts := range [][]rlock.Option{
			{rlock.WithLease(time.Minute), rlock.WithWatchdog(time.Minute)},
			{rlock.WithLease(time.Minute), rlock.WithMaxHold(time.Minute)},
			{rlock.WithMaxHold(0)},
			{rlock.WithMaxHold(-time.Second)},
			{rlock.WithMaxHold(time.Microsecond)},
			{rlock.WithMaxHold(limits.Max + 1)},
		} {
			_, err := l.TryLock(t.Context(), opts...)
			require.ErrorIs(t, err, redlatch.ErrInvalid)
		}
		_, err := l.TryLock(t.Context(), rlock.WithOwner(redlatch.Owner{}))
		require.ErrorIs(t, err, redlatch.ErrInvalid)
	})
}

// In Redisson the inner lock(10 s) takes the watchdog from the outer lock(): the
// key runs out one lease after the inner unlock, while the thread is inside.
func TestRedissonDefectExplicitLeaseEndsTheRenewalOfTheOuterHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t)
		l := rlock.New(client, "lock")
		outer := take(t, l)
		inner := again(t, l, outer, rlock.WithLease(10*time.Second))
		require.NoError(t, inner.Unlock())
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.NoError(t, outer.Err())
		require.EqualValues(t, 1, countOf(t, l, outer))
		require.NoError(t, outer.Unlock())
	})
}

// In Redisson lock(10 s) and then lock() on one object gives the second a lease
// of 10 s with a first renewal after 10 s: a race.
func TestRedissonDefectWatchdogInheritsAnExplicitLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		l := rlock.New(client, "lock")
		outer := take(t, l, rlock.WithLease(10*time.Second))
		inner := again(t, l, outer)
		require.Greater(t, ttl(t, srv, "lock"), 29*time.Second)
		time.Sleep(9 * time.Second)
		synctest.Wait()
		require.ErrorIs(t, outer.Err(), redlatch.ErrLost, "its own lease is over")
		require.NoError(t, inner.Err())
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.NoError(t, inner.Err())
		require.NoError(t, inner.Unlock())
		require.False(t, locked(t, srv, "lock"))
	})
}

// In Redisson a partial unlock through another object sets the lease to 30 s,
// whatever the hold that remains was promised.
func TestU40PartialUnlockLeavesTheMostThatRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		l := rlock.New(client, "lock")
		outer := take(t, l, rlock.WithLease(60*time.Second))
		time.Sleep(10 * time.Second)
		inner := again(t, l, outer, rlock.WithLease(5*time.Second))
		require.InDelta(t, 50, ttl(t, srv, "lock").Seconds(), 0.1, "re-entry never shortens")
		time.Sleep(time.Second)
		require.NoError(t, inner.Unlock())
		require.InDelta(t, 49, ttl(t, srv, "lock").Seconds(), 0.1, "never below the outer remainder, never above its lease")
		require.NoError(t, outer.Err())
		require.NoError(t, outer.Unlock())
	})
}

func TestU40LongFixedLeaseInsideARenewedOneIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		l := rlock.New(client, "lock")
		outer := take(t, l)
		inner := again(t, l, outer, rlock.WithLease(5*time.Minute))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.InDelta(t, 180, ttl(t, srv, "lock").Seconds(), 1, "renewals do not shorten it")
		require.NoError(t, outer.Unlock()) // not the last in
		require.InDelta(t, 180, ttl(t, srv, "lock").Seconds(), 1)
		require.NoError(t, inner.Err())
		time.Sleep(170 * time.Second)
		require.NoError(t, inner.Err())
		require.NoError(t, inner.Unlock())
		require.False(t, locked(t, srv, "lock"))
	})
}

func TestShortRenewedLeaseNeverCutsALongerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		l := rlock.New(client, "lock")
		outer := take(t, l)
		inner := again(t, l, outer, rlock.WithWatchdog(3*time.Second))
		for range 200 {
			time.Sleep(300 * time.Millisecond)
			require.Greater(t, ttl(t, srv, "lock"), 19*time.Second)
		}
		require.NoError(t, inner.Unlock())
		require.NoError(t, outer.Unlock())
	})
}

func TestReentryOfAGivenOwnerNeverShortens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		l := rlock.New(client, "lock")
		outer := take(t, l, rlock.WithOwner(newOwner()), rlock.WithLease(time.Minute))
		time.Sleep(10 * time.Second)
		inner := again(t, l, outer, rlock.WithLease(5*time.Second))
		require.Equal(t, 50*time.Second, ttl(t, srv, "lock"))
		require.NoError(t, inner.Unlock())
		require.NoError(t, outer.Unlock())
	})
}

func TestLetExpireOfAHoldThatIsEnteredAgainIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		l := rlock.New(client, "lock")
		outer := take(t, l)
		inner := again(t, l, outer)
		require.Error(t, inner.LetExpire())
		require.Error(t, outer.LetExpire())
		_, err := inner.HandOver()
		require.Error(t, err)
		require.NoError(t, inner.Err())
		require.NoError(t, inner.Unlock())
		require.NoError(t, outer.LetExpire())
		require.NoError(t, outer.Unlock())
		require.True(t, locked(t, srv, "lock"))
		time.Sleep(31 * time.Second)
		require.False(t, locked(t, srv, "lock"))
	})
}
