package rreadwritelock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// The reader that listens for the others already knows that the lock is held.
func TestRefusedWriterDoesNotWakeAllWaitingReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const readers = 20
		srv := redistest.Mini(t, embedded.WithInProcess())
		var attempts atomic.Int64
		counting := redlatch.WithObserver(redlatch.Observer{Attempted: func(_ context.Context, e redlatch.Attempted) {
			if e.Kind == "read" {
				attempts.Add(1)
			}
		}})
		far := take(t, rreadwritelock.New(fakeClient(t, srv), "job").Write())
		near := rreadwritelock.New(fakeClient(t, srv, counting), "job")
		var waiting []<-chan acquired
		for range readers {
			waiting = append(waiting, later(t.Context(), near.Read()))
		}
		synctest.Wait()
		attempts.Store(0)
		const tries = 10
		for range tries {
			refused(t, near.Write())
			time.Sleep(10 * time.Millisecond)
		}
		require.LessOrEqual(t, attempts.Load(), int64(tries), "the leader asks at most")

		unlock(t, far)
		for _, came := range waiting {
			r := <-came
			require.NoError(t, r.Err)
			unlock(t, r.Hold)
		}
	})
}
