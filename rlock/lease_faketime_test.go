package rlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

func TestU39LockKeptForOneHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		hold := take(t, rlock.New(client, "job"))
		ctx := hold.Context(t.Context())
		_, bounded := ctx.Deadline()
		require.False(t, bounded, "a renewed lease has no deadline")
		time.Sleep(time.Second) // out of step with the renewals
		for range testlevel.Rounds(5, 60) {
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

func TestLeaseTruncatedToMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		hold := take(t, rlock.New(client, "job"), rlock.WithLease(5*time.Second+999*time.Microsecond))
		require.Equal(t, 5*time.Second, ttl(t, srv, "job"))
		require.Equal(t, 4500*time.Millisecond, hold.Remaining())
		require.NoError(t, hold.Unlock())
	})
}

func TestLossMarginDefaultsToTenthOfLease(t *testing.T) {
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

func TestLeaseMustExceedLossMargin(t *testing.T) {
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

func TestWithWatchdogOverridesClientLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t, redlatch.WithWatchdogTimeout(20*time.Second))
		usual, short := take(t, rlock.New(client, "usual")), take(t, rlock.New(client, "short"), rlock.WithWatchdog(3*time.Second))
		require.Equal(t, 20*time.Second, ttl(t, srv, "usual"))
		require.Equal(t, 3*time.Second, ttl(t, srv, "short"))
		for range 200 {
			time.Sleep(100 * time.Millisecond)
			require.GreaterOrEqual(t, ttl(t, srv, "short"), 2*time.Second)
		}
		require.NoError(t, usual.Err())
		require.NoError(t, short.Unlock())
		require.NoError(t, usual.Unlock())
	})
}

// The wait ends together with the first attempt's command timeout.
func TestExpiredWaitReturnsServerError(t *testing.T) {
	for range 5 {
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

// Each call is a second late.
func TestU36ShortLeaseSurvivesStalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, client := wired(t, time.Second)
		warm := take(t, rlock.New(client, "warm"))
		time.Sleep(15 * time.Second) // the server knows the renewal
		require.NoError(t, warm.Unlock())
		hold := take(t, rlock.New(client, "job"), rlock.WithWatchdog(3*time.Second))
		time.Sleep(2 * time.Minute)
		require.NoError(t, hold.Err())
		require.NoError(t, hold.LetExpire())
	})
}

func TestRenewalNeverShortensLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		l := rlock.New(client, "lock")
		outer := take(t, l)
		inner := again(t, l, outer, rlock.WithWatchdog(3*time.Second))
		for range 60 {
			time.Sleep(300 * time.Millisecond)
			require.Greater(t, ttl(t, srv, "lock"), 19*time.Second)
		}
		require.NoError(t, inner.Unlock())
		require.NoError(t, outer.Unlock())
	})
}

func TestGivenOwnerNeverShortensLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		l := rlock.New(client, "lock")
		outer := take(t, l, rlock.WithOwner(newOwner()), rlock.WithLease(time.Minute))
		time.Sleep(10 * time.Second)
		inner := again(t, l, outer, rlock.WithLease(5*time.Second))
		require.Equal(t, 50*time.Second, ttl(t, srv, "lock"))
		require.NoError(t, inner.Unlock())
		require.NoError(t, outer.Unlock())

		hold := take(t, l, rlock.WithLease(time.Minute))
		resumed, err := l.Resume(t.Context(), hold.Owner(), rlock.WithWatchdog(shortLease)) // renews it
		require.NoError(t, err)
		require.Equal(t, time.Minute, ttl(t, srv, "lock"))
		require.NoError(t, resumed.Unlock())
	})
}

func TestLetExpireRejectsReenteredHold(t *testing.T) {
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
