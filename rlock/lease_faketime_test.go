package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// The tests of this file run on fake time: a second takes microseconds, and
// "exactly" means to the nanosecond.

func TestU39OneHourOfWorkKeepsTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		hold := take(t, rlock.New(client, "job"))
		ctx := hold.Context(t.Context())
		_, bounded := ctx.Deadline()
		require.False(t, bounded, "a renewed lease has no deadline")
		time.Sleep(time.Second) // off the beat of the renewals
		for range 60 {
			time.Sleep(time.Minute)
			require.NoError(t, hold.Err())
			require.NoError(t, ctx.Err())
			left := ttl(t, srv, "job")
			require.Greater(t, left, 19*time.Second, "renewed every third of 30 s")
			require.LessOrEqual(t, left, 30*time.Second)
			require.InDelta(t, left-time.Second, hold.Remaining(), float64(time.Millisecond))
		}
		_, err := rlock.New(fakeClient(t, srv), "job").TryLock(t.Context())
		checkHeld(t, err)
		require.NoError(t, hold.Unlock())
		require.False(t, locked(t, srv, "job"))
	})
}

func TestU39FixedLeaseIsLostAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t)
		began := time.Now()
		hold := take(t, rlock.New(client, "job"), rlock.WithLease(20*time.Second))
		ctx := hold.Context(t.Context())
		const useful = 19 * time.Second // less the loss margin
		deadline, bounded := ctx.Deadline()
		require.True(t, bounded)
		require.Equal(t, useful, deadline.Sub(began))
		require.Equal(t, useful, hold.Remaining())

		time.Sleep(useful - time.Millisecond)
		require.NoError(t, hold.Err())
		require.NoError(t, ctx.Err())
		require.Equal(t, time.Millisecond, hold.Remaining())
		<-ctx.Done()
		require.Equal(t, useful, time.Since(began))
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrLost)
		require.ErrorIs(t, hold.Err(), redlatch.ErrLost)
		require.Zero(t, hold.Remaining())
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	})
}

func TestLeaseIsCutToWholeMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		hold := take(t, rlock.New(client, "job"), rlock.WithLease(5*time.Second+999*time.Microsecond))
		require.Equal(t, 5*time.Second, ttl(t, srv, "job"))
		require.Equal(t, 4500*time.Millisecond, hold.Remaining())
		require.NoError(t, hold.Unlock())
	})
}

func TestLossMarginIsTheClientsOrATenthOfTheLease(t *testing.T) {
	for _, c := range []struct {
		opts  []redlatch.Option
		lease time.Duration
		want  time.Duration
	}{
		{nil, time.Second, 900 * time.Millisecond},
		{nil, 10 * time.Second, 9 * time.Second},
		{nil, time.Hour, time.Hour - time.Second},
		{[]redlatch.Option{redlatch.WithLossMargin(3 * time.Second)}, 10 * time.Second, 7 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, client := inBubble(t, c.opts...)
			hold := take(t, rlock.New(client, "job"), rlock.WithLease(c.lease))
			require.Equal(t, c.want, hold.Remaining())
			require.NoError(t, hold.Unlock())
		})
	}
}

func TestMarginThatLeavesNothingOfTheLeaseIsABadLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t, redlatch.WithLossMargin(3*time.Second))
		for _, o := range []rlock.Option{rlock.WithLease(3 * time.Second), rlock.WithWatchdog(2 * time.Second)} {
			_, err := rlock.New(client, "job").TryLock(t.Context(), o)
			require.ErrorIs(t, err, redlatch.ErrInvalid)
			require.NotErrorIs(t, err, redlatch.ErrNotAcquired)
		}
		require.False(t, locked(t, srv, "job"))
		require.NoError(t, take(t, rlock.New(client, "job"), rlock.WithLease(3001*time.Millisecond)).Unlock())
	})
}

func TestWithWatchdogReplacesTheClientsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t, redlatch.WithWatchdogTimeout(20*time.Second))
		usual, short := take(t, rlock.New(client, "usual")), take(t, rlock.New(client, "short"), rlock.WithWatchdog(3*time.Second))
		require.Equal(t, 20*time.Second, ttl(t, srv, "usual"))
		require.Equal(t, 3*time.Second, ttl(t, srv, "short"))
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			require.GreaterOrEqual(t, ttl(t, srv, "short"), 2*time.Second)
		}
		require.NoError(t, usual.Err())
		require.NoError(t, short.Unlock())
		require.NoError(t, usual.Unlock())
	})
}

func TestWithWaitEndsOnTheMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		holdByHand(t, srv, "job", time.Hour)
		began := time.Now()
		_, err := rlock.New(client, "job").Lock(t.Context(), rlock.WithWait(7*time.Second))
		require.Equal(t, 7*time.Second, time.Since(began))
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		var le *redlatch.LockError
		require.ErrorAs(t, err, &le)
		require.Equal(t, "lock", le.Op)
		require.Equal(t, "job", le.Name)
		require.Equal(t, time.Hour, le.TTL.Round(10*time.Second), "what the holder had left when last asked")
	})
}

// The wait ends with the time of the first attempts: 3 s, the command timeout. The call that is sent in
// that moment has no outcome.
func TestWaitThatEndsWhileTheServerRefusesReturnsTheRefusal(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			srv, client := inBubble(t)
			require.NoError(t, take(t, rlock.New(client, "job")).Unlock())
			srv.FailWith("TRYAGAIN Multiple keys request during rehashing of slot")
			for _, wait := range []time.Duration{3 * time.Second, 2 * time.Second} {
				began := time.Now()
				_, err := rlock.New(client, "job").Lock(t.Context(), rlock.WithWait(wait))
				require.Equal(t, wait, time.Since(began))
				require.True(t, transport.IsCode(err, "TRYAGAIN"), "%v", err)
				require.NotErrorIs(t, err, redlatch.ErrUncertain)
			}
			srv.Heal()
		})
	}
}

func TestWithWaitOfZeroMakesOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		holdByHand(t, srv, "job", time.Hour)
		began := time.Now()
		_, err := rlock.New(client, "job").Lock(t.Context(), rlock.WithWait(0))
		checkHeld(t, err)
		free, err := rlock.New(client, "free").Lock(t.Context(), rlock.WithWait(0))
		require.NoError(t, err)
		require.NoError(t, free.Unlock())
		require.Zero(t, time.Since(began))
	})
}

func TestContextEndsTheWaitOnTheMillisecondWithItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		holdByHand(t, srv, "job", time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := rlock.New(client, "job").Lock(ctx, rlock.WithWait(time.Minute))
		require.Equal(t, 1500*time.Millisecond, time.Since(began))
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// A lease that is soon over when its holder dies survives the pauses of a busy machine: calls are late
// by a second.
func TestU36LeaseOfThreeSecondsSurvivesStallsOfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := wired(t, time.Second)
		warm := take(t, rlock.New(client, "warm"))
		time.Sleep(15 * time.Second) // the server knows the renewal
		require.NoError(t, warm.Unlock())
		hold := take(t, rlock.New(client, "job"), rlock.WithWatchdog(3*time.Second))
		time.Sleep(10 * time.Minute)
		require.NoError(t, hold.Err())
		require.NoError(t, hold.Unlock())
	})
}
