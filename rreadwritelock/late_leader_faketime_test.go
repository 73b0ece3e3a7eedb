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
	"github.com/redlatch/redlatch/rreadwritelock"
)

// A reader that was refused and follows another one asks when that one is in. A writer of another
// process may be sooner. Then the reader leads, and has to listen.
func TestAReaderThatComesToLeadByARefusalListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		// Those that follow ask a moment after their leader is in.
		late := redlatch.Observer{Woken: func(_ context.Context, e redlatch.Woken) {
			if e.By == "turn" {
				time.Sleep(10 * time.Millisecond)
			}
		}}
		far := rreadwritelock.New(fakeClient(t, srv), "job")
		near := rreadwritelock.New(fakeClient(t, srv, redlatch.WithObserver(late)), "job")
		w := take(t, far.Write())
		var readers []<-chan acquired
		for range 3 {
			readers = append(readers, later(t.Context(), near.Read()))
			synctest.Wait()
		}
		next := func() acquired {
			select {
			case r := <-readers[0]:
				readers = readers[1:]
				return r
			case r := <-readers[1]:
				readers = append(readers[:1], readers[2:]...)
				return r
			}
		}
		unlock(t, w)
		first := <-readers[0]
		readers = readers[1:]
		require.NoError(t, first.Err)
		unlock(t, first.Hold)
		w = take(t, far.Write()) // before the two others ask: one leads then, one follows
		time.Sleep(100 * time.Millisecond)
		unlock(t, w)
		second := next()
		require.NoError(t, second.Err)
		unlock(t, second.Hold)
		w = take(t, far.Write()) // before the last one asks, which leads then
		time.Sleep(100 * time.Millisecond)
		unlocked := time.Now()
		unlock(t, w)
		third := <-readers[0]
		require.NoError(t, third.Err)
		require.Zero(t, time.Since(unlocked), "it has heard of the release")
		unlock(t, third.Hold)
	})
}
