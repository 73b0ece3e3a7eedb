package rlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// A caller that only polls may let others go first when the client closes.
func TestACallerThatYieldsHearsOfClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t)
		l := rlock.New(client, "job")
		hold := take(t, l)
		next := await(t.Context(), l, rlock.WithoutWakeUps(time.Second))
		synctest.Wait()
		w := await(t.Context(), l, rlock.WithoutWakeUps(time.Second))
		synctest.Wait()
		require.NoError(t, hold.Unlock())
		hold = next.acquired(t, soon)
		time.Sleep(time.Second) // longer than a burst
		require.NoError(t, hold.Unlock())
		time.Sleep(time.Millisecond)
		w.stillWaits(t)
		require.NoError(t, client.Close())
		w.ended(t, time.Minute)
		require.ErrorIs(t, w.err, redlatch.ErrClosed)
		require.NotErrorIs(t, w.err, redlatch.ErrNotAcquired)
	})
}
