package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

func TestAPairWithUnlockAsyncCostsOneRoundTrip(t *testing.T) {
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

func TestUnlockAsyncEndsTheHoldAtOnceAndTellsTheOutcome(t *testing.T) {
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
