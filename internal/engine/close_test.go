package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// closeTakes closes the engine and returns how long that took.
func closeTakes(t *testing.T, e *Engine) time.Duration {
	t.Helper()
	began := time.Now()
	require.NoError(t, e.Close())
	return time.Since(began)
}

func TestCloseWithNothingOpenTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		e, _ := engineOver(t, f)
		require.Zero(t, closeTakes(t, e))
		require.True(t, f.closed)
		require.True(t, e.IsClosing())
		require.Zero(t, closeTakes(t, e))
		require.ErrorIs(t, e.Enter(), ErrClosed)
		require.Zero(t, e.ghosts.n.Load())
	})
}

func TestCloseWaitsUntilOpenDoubtsAreSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		e, log := engineOver(t, f)
		e.Settle(doubtAbout(nil))
		synctest.Wait()
		time.AfterFunc(time.Second, func() { f.last(t).ends(int64(1), nil) })
		require.Equal(t, time.Second, closeTakes(t, e))
		require.Contains(t, log.String(), "was_held=true")
	})
}

// A question under way when the waiting is over ends with the transport.
func TestCloseWaitsForOpenDoubtsOneCommandTimeoutAtMost(t *testing.T) {
	for name, phase := range map[string]time.Duration{"new": 0, "in the middle of a question": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fencing{fake: &fake{}}
				f.fence = func(context.Context) error { return errRefused }
				e, log := engineOver(t, f)
				for range 3 {
					e.Settle(doubtAbout(doubtful(e, 7)))
					e.Settle(doubtAbout(nil))
				}
				time.Sleep(phase)
				require.Equal(t, testCommand, closeTakes(t, e))
				require.Zero(t, e.ghosts.n.Load())
				require.NotContains(t, log.String(), "level=ERROR")
			})
		})
	}
}

func TestCloseHandsBackWhatIsGrantedWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		e, _ := engineOver(t, f)
		ghost := &settling{e: e}
		r := run(t.Context(), e, ghost)
		acquire := f.last(t)
		time.AfterFunc(time.Second, func() {
			f.answer = answering(int64(1), nil) // the release's
			acquire.ends(nil, nil)              // acquired
		})
		require.Equal(t, time.Second, closeTakes(t, e))
		r.ended(t)
		require.ErrorIs(t, r.err, ErrClosed)
		require.ErrorIs(t, r.err, ErrUncertain)
		require.Equal(t, "RELEASE", f.last(t).name)
	})
}

// settling is a ghost that opens a doubt, as lock kinds do.
type settling struct{ e *Engine }

// Haunt is part of Ghost.
func (s *settling) Haunt(a *Attempt, _ any, _ error) {
	a.Free()
	s.e.Settle(doubtAbout(nil))
}

// The transport ends what is in flight when it is closed: too late to settle.
func TestDoubtsThatArriseWhenTheTransportClosesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		e, _ := engineOver(t, f)
		r := run(t.Context(), e, &settling{e: e})
		require.Equal(t, testCommand, closeTakes(t, e))
		r.ended(t)
		require.Zero(t, e.ghosts.n.Load())
		require.Len(t, f.sent(), 1)
		e.Settle(doubtAbout(nil))
		require.Zero(t, e.ghosts.n.Load())
	})
}

func TestCloseWaitsForCallsThatJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := engineOver(t, &fake{})
		require.NoError(t, e.Enter())
		time.AfterFunc(time.Second, e.Leave)
		require.Equal(t, time.Second, closeTakes(t, e))
	})
}

func TestCloseEndsPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := engineOver(t, &fake{})
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

func TestTallyWakesItsWaiterWheneverItComesToZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := tally{zero: make(chan struct{}, 1)}
		tally.wait(t.Context()) // nothing to wait for
		for range 3 {
			tally.zero <- struct{}{} // left over from a wait that was given up
			tally.add(2)
			go func() {
				time.Sleep(time.Second)
				tally.add(-1)
				time.Sleep(time.Second)
				tally.add(-1)
			}()
			began := time.Now()
			tally.wait(t.Context())
			require.Equal(t, 2*time.Second, time.Since(began))
		}
		tally.add(1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		tally.wait(ctx)
		require.Error(t, ctx.Err())
	})
}

var _ transport.Fencer = (*fencing)(nil)
