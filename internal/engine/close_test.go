package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/transport"
)

// closeTakes closes the engine and returns how long that took.
func closeTakes(t *testing.T, e *Engine) time.Duration {
	t.Helper()
	began := time.Now()
	require.NoError(t, e.Close())
	return time.Since(began)
}

func requireClosed(t *testing.T, f *faketransport.Fake) {
	t.Helper()
	var err error
	f.Start(&transport.Call{Command: "TEST"}, func(_ any, e error) { err = e })
	require.ErrorIs(t, err, ErrNotSent)
	require.ErrorIs(t, err, ErrClosed)
}

func TestIdleCloseReturnsImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fake{}
		e, _ := engineOver(t, f)
		require.Zero(t, closeTakes(t, e))
		requireClosed(t, f)
		require.True(t, e.IsClosing())
		require.Zero(t, closeTakes(t, e))
		require.ErrorIs(t, e.Enter(), ErrClosed)
		require.Zero(t, e.inFlight.Load())
	})
}

// A waiter may make another attempt while Close begins.
func TestAttemptAfterCloseFailsImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := engineOver(t, &faketransport.Fake{})
		e.refuse()
		require.ErrorIs(t, run(t.Context(), e, nil).ended(t).err, ErrClosed)
	})
}

func TestCloseWaitsForInDoubtCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fake{}
		e, log := engineOver(t, f)
		e.Resolve(undoing(nil))
		synctest.Wait()
		time.AfterFunc(time.Second, func() { f.Last(t).Ends(int64(1), nil) })
		require.Equal(t, time.Second, closeTakes(t, e))
		require.Contains(t, log.String(), "was_held=true")
	})
}

// Closing the transport ends a running Undo.
func TestCloseWaitsAtMostOneCommandTimeout(t *testing.T) {
	for name, c := range map[string]struct{ phase, bound time.Duration }{
		"new":                         {0, testCommand},
		"in the middle of a question": {2 * time.Second, testCommand},
		"close within":                {0, testCommand / 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &faketransport.Fencing{Fake: &faketransport.Fake{}}
				f.Kill = func(context.Context) error { return errRefused }
				e, log := engineOver(t, f)
				for range 3 {
					e.Resolve(undoing(lostCall(e, 7)))
					e.Resolve(undoing(nil))
				}
				time.Sleep(c.phase)
				began := time.Now()
				require.NoError(t, e.CloseWithin(c.bound))
				require.Equal(t, c.bound, time.Since(began))
				require.Zero(t, e.inFlight.Load())
				require.NotContains(t, log.String(), "level=ERROR")
			})
		})
	}
}

// The reply has come, so the call's connection is not killed, and one answer settles it.
func TestCloseReleasesLateGrant(t *testing.T) {
	for _, freed := range []any{int64(1), nil} {
		synctest.Test(t, func(t *testing.T) {
			f := &faketransport.Fencing{Fake: &faketransport.Fake{}}
			f.Kill = func(context.Context) error { return errRefused }
			e, _ := engineOver(t, f)
			r := run(t.Context(), e, undoer{})
			acquire := f.Last(t)
			acquire.Call.Claim(7)
			time.AfterFunc(time.Second, func() {
				f.Answer = answering(freed, nil) // the release's
				acquire.Ends(nil, nil)           // acquired
			})
			require.Equal(t, time.Second, closeTakes(t, e))
			r.ended(t)
			require.ErrorIs(t, r.err, ErrClosed)
			require.ErrorIs(t, r.err, ErrUncertain)
			require.Equal(t, "RELEASE", f.Last(t).Name)
			require.Empty(t, f.Times())
		})
	}
}

type undoer struct{}

func (undoer) Late(any, error) *InDoubt { return undoing(nil) }

func TestTransportCloseAbandonsInDoubtCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fake{}
		e, _ := engineOver(t, f)
		r := run(t.Context(), e, undoer{})
		require.Equal(t, testCommand, closeTakes(t, e))
		r.ended(t)
		require.Zero(t, e.inFlight.Load())
		require.Len(t, f.Sent(), 1)
		e.Resolve(undoing(nil))
		require.Zero(t, e.inFlight.Load())
	})
}

func TestCloseWaitsForJoinedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := engineOver(t, &faketransport.Fake{})
		require.NoError(t, e.Enter())
		time.AfterFunc(time.Second, e.Leave)
		require.Equal(t, time.Second, closeTakes(t, e))
	})
}

func TestCloseInterruptsPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := engineOver(t, &faketransport.Fake{})
		results := make(chan bool, 2)
		go func() { results <- e.Sleep(t.Context(), time.Hour) }()
		go func() { results <- e.Wait(time.Hour) }()
		open, cancel := e.Open(t.Context())
		defer cancel()
		require.NoError(t, e.Enter())
		synctest.Wait()
		go func() { time.Sleep(time.Second); e.Leave() }()
		require.Equal(t, time.Second, closeTakes(t, e))
		require.False(t, <-results)
		require.False(t, <-results)
		require.ErrorIs(t, open.Err(), context.Canceled)
	})
}

func TestInFlightWakesWaiterAtEachZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Lifecycle{idle: make(chan struct{}, 1)}
		l.drain(t.Context()) // idle: returns
		for range 3 {
			l.idle <- struct{}{} // left over from a canceled wait
			l.inFlight.Add(2)
			go func() {
				time.Sleep(time.Second)
				l.Leave()
				time.Sleep(time.Second)
				l.Leave()
			}()
			began := time.Now()
			l.drain(t.Context())
			require.Equal(t, 2*time.Second, time.Since(began))
		}
		l.Join()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		l.drain(ctx)
		require.Error(t, ctx.Err())
	})
}

func TestNoGoroutineStartsAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := engineOver(t, &faketransport.Fake{})
		ran := 0
		require.True(t, e.Go(func() { time.Sleep(time.Second); ran++ }))
		require.Equal(t, time.Second, closeTakes(t, e), "it waits for started calls")
		require.Equal(t, 1, ran)
		require.False(t, e.Go(func() { ran++ }))
		synctest.Wait()
		require.Equal(t, 1, ran)
	})
}

var _ transport.Fencer = (*faketransport.Fencing)(nil)
