package rlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

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
