package rreadwritelock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

type delayKey struct{}

// A reader whose leader gives up while a writer of the process waits is held back, but not for longer
// than the poll cap: readers of others may have the lock.
func TestAReaderThatIsLeftWithoutALeaderPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		late := redlatch.Observer{Woken: func(ctx context.Context, e redlatch.Woken) {
			if d, ok := ctx.Value(delayKey{}).(time.Duration); ok && e.By == "turn" {
				time.Sleep(d)
			}
		}}
		far := rreadwritelock.New(fakeClient(t, srv), "job")
		near := rreadwritelock.New(fakeClient(t, srv, redlatch.WithObserver(late)), "job")
		w := take(t, far.Write())
		first := later(t.Context(), near.Read())
		synctest.Wait()
		leads, cancel := context.WithCancel(context.WithValue(t.Context(), delayKey{}, 10*time.Millisecond))
		leader := later(leads, near.Read())
		synctest.Wait()
		follower := later(context.WithValue(t.Context(), delayKey{}, 20*time.Millisecond), near.Read())
		synctest.Wait()
		unlock(t, w)
		came := <-first
		require.NoError(t, came.Err)
		unlock(t, came.Hold)
		w = take(t, far.Write(), rlock.WithLease(time.Hour)) // before the two ask
		time.Sleep(100 * time.Millisecond)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		writer := later(ctx, near.Write())
		time.Sleep(100 * time.Millisecond)
		cancel()
		require.ErrorIs(t, (<-leader).Err, context.Canceled)
		reads := enter(t, far.Read(), w)
		unlock(t, w) // of which no message tells
		began := time.Now()
		came = <-follower
		require.NoError(t, came.Err)
		t.Logf("after %v", time.Since(began))
		require.LessOrEqual(t, time.Since(began), 11*time.Second)
		unlock(t, came.Hold, reads)
		stop()
		if w := <-writer; w.Err == nil {
			unlock(t, w.Hold)
		}
	})
}
