package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

var (
	errBroken  = fmt.Errorf("%w: connection reset", transport.ErrUncertain)
	errNotSent = fmt.Errorf("%w: connection refused", transport.ErrNotSent)
	errRefused = &transport.ServerError{Text: "NOPERM this user has no permissions"}
	errReason  = errors.New("the caller's reason")
)

// running is a Run in the background.
type running struct {
	done  chan struct{}
	reply any
	err   error
	took  time.Duration
}

func run(ctx context.Context, e *Engine, ghost Ghost) *running {
	r := &running{done: make(chan struct{})}
	a := e.Attempt()
	a.Call.Command = "TEST"
	began := time.Now()
	e.Join() // as every user's call does
	go func() {
		defer close(r.done)
		defer e.Leave()
		r.reply, r.err = a.Run(ctx, ghost)
		r.took = time.Since(began)
	}()
	synctest.Wait()
	return r
}

func (r *running) ended(t *testing.T) *running {
	t.Helper()
	synctest.Wait()
	select {
	case <-r.done:
	default:
		require.FailNow(t, "Run is still there")
	}
	return r
}

func TestRunPassesTheOutcomeOn(t *testing.T) {
	for _, c := range []struct {
		reply   any
		err     error
		haunted int
	}{
		{reply: int64(7)},
		{reply: nil},
		{err: errRefused},
		{err: errNotSent},
		{err: errBroken, haunted: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, ghost := &fake{}, &haunting{}
			e, _ := engineOver(t, f)
			r := run(t.Context(), e, ghost)
			f.last(t).ends(c.reply, c.err)
			r.ended(t)
			require.Equal(t, c.reply, r.reply)
			require.Equal(t, c.err, r.err)
			times, _, err := ghost.seen()
			require.Equal(t, c.haunted, times)
			if c.haunted > 0 {
				require.Equal(t, c.err, err)
			}
		})
	}
}

// ways to end the wait for a call that has no outcome.
var waitEnds = []struct {
	name string
	end  func(e *Engine, cancel context.CancelCauseFunc)
	why  error
}{
	{"context", func(_ *Engine, cancel context.CancelCauseFunc) { cancel(errReason) }, errReason},
	{"timeout", func(*Engine, context.CancelCauseFunc) { time.Sleep(testCommand) }, nil},
	{"close", func(e *Engine, _ context.CancelCauseFunc) { e.beginClosing() }, ErrClosed},
}

// outcomes that come when nobody waits any more.
var lateOutcomes = []struct {
	name  string
	reply any
	err   error
}{
	{"a reply", int64(1), nil},
	{"acquired", nil, nil},
	{"an error", nil, errRefused},
	{"lost", nil, errBroken},
	{"never ran", nil, errNotSent},
}

func TestACallThatWasLeftIsGivenToItsGhostExactlyOnce(t *testing.T) {
	for _, w := range waitEnds {
		for _, o := range lateOutcomes {
			t.Run(w.name+", "+o.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, ghost := &fake{conn: 5}, &haunting{}
					e, _ := engineOver(t, f)
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					r := run(ctx, e, ghost)
					w.end(e, cancel)
					r.ended(t)
					require.ErrorIs(t, r.err, ErrUncertain)
					require.NotErrorIs(t, r.err, ErrNotSent)
					if w.why != nil {
						require.ErrorIs(t, r.err, w.why)
						require.Zero(t, r.took)
					}
					times, _, _ := ghost.seen()
					require.Zero(t, times, "nothing is known yet")

					f.last(t).ends(o.reply, o.err)
					synctest.Wait()
					times, reply, err := ghost.seen()
					require.Equal(t, 1, times)
					require.Equal(t, o.reply, reply)
					require.Equal(t, o.err, err)
					require.Equal(t, int64(5), ghost.attempt.Call.Conn(), "the call is still there to be fenced")
				})
			})
		}
	}
}

// The caller may have been told to stop for a reason that sounds like ours, such
// as the loss of another lock.
func TestCauseOfAContextSaysNothingAboutTheAttempt(t *testing.T) {
	for _, own := range ours {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{conn: 5}
			e, _ := engineOver(t, f)
			ctx, cancel := context.WithCancelCause(t.Context())
			cause := fmt.Errorf("a sibling: %w", own)
			r := run(ctx, e, nil)
			cancel(cause)
			r.ended(t)
			require.ErrorIs(t, r.err, ErrUncertain)
			require.ErrorIs(t, r.err, context.Canceled)
			require.ErrorContains(t, r.err, "a sibling")
			for _, err := range append([]error{cause}, ours...) {
				require.Equal(t, err == ErrUncertain, errors.Is(r.err, err), err) //nolint:errorlint // identity is meant
			}
			f.last(t).ends(nil, nil)
		})
	}
}

func TestACallThatWasNotSentIsWithdrawnAndHasNoGhost(t *testing.T) {
	for _, w := range waitEnds {
		t.Run(w.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, ghost := &fake{queues: true}, &haunting{}
				e, _ := engineOver(t, f)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				r := run(ctx, e, ghost)
				w.end(e, cancel)
				r.ended(t)
				require.ErrorIs(t, r.err, ErrNotSent)
				require.NotErrorIs(t, r.err, ErrUncertain)
				c := f.last(t)
				require.False(t, c.call.Claim(1), "it must never be sent")
				c.ends(nil, transport.ErrNotSent)
				synctest.Wait()
				times, _, _ := ghost.seen()
				require.Zero(t, times)
			})
		})
	}
}

func TestRunWaitsOneCommandTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := engineOver(t, &fake{})
		r := run(t.Context(), e, nil)
		<-r.done
		require.Equal(t, testCommand, r.took)
		require.ErrorContains(t, r.err, "no reply within 3s")
	})
}

func TestRunForGoesOnWhileTheClientCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		e, _ := engineOver(t, f)
		e.beginClosing()
		a := e.Attempt()
		a.Call.Command = "TEST"
		began := time.Now()
		_, err := a.RunFor(2*time.Second, nil)
		require.ErrorIs(t, err, ErrUncertain)
		require.Equal(t, 2*time.Second, time.Since(began))

		go func() {
			time.Sleep(time.Second)
			calls := f.sent()
			calls[len(calls)-1].ends("fine", nil)
		}()
		b := e.Attempt()
		b.Call.Command = "TEST"
		reply, err := b.RunFor(2*time.Second, nil)
		require.NoError(t, err)
		require.Equal(t, "fine", reply)
	})
}

// Whoever wins the race between the reply and the caller's leaving, the reply
// reaches exactly one of the caller and the ghost.
func TestNoReplyIsLostOrSeenTwiceWhenItRacesWithTheEndOfTheWait(t *testing.T) {
	t.Parallel()
	f := &fake{}
	e, _ := engineOver(t, f)
	for i := range 2000 {
		ghost := &haunting{}
		ctx, cancel := context.WithCancel(t.Context())
		a := e.Attempt()
		a.Call.Command = "TEST"
		started := make(chan struct{})
		f.answer = func(*sentCall) (any, error, bool) { close(started); return nil, nil, false }
		var wg sync.WaitGroup
		var reply any
		var err error
		wg.Go(func() { reply, err = a.Run(ctx, ghost) })
		<-started
		wg.Go(cancel)
		wg.Go(func() { f.last(t).ends(int64(i), nil) })
		wg.Wait()
		times, late, _ := ghost.seen()
		if err == nil {
			require.Equal(t, int64(i), reply)
			require.Zero(t, times)
		} else {
			require.ErrorIs(t, err, ErrUncertain)
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, 1, times)
			require.Equal(t, int64(i), late)
		}
	}
	require.Zero(t, e.ghosts.n.Load())
}

// What would be sent at the last moment would be answered too late, and be in doubt.
func TestCallThatIsNotSentInHalfOfItsTimeIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{queues: true}
		e, _ := engineOver(t, f)
		ghost := &haunting{}
		r := run(t.Context(), e, ghost)
		time.Sleep(testCommand)
		r.ended(t)
		require.Equal(t, testCommand/2, r.took)
		require.ErrorIs(t, r.err, ErrNotSent)
		require.ErrorContains(t, r.err, "not sent within")
		require.False(t, f.last(t).call.Claim(7))
		f.last(t).ends(nil, errNotSent)

		f.queues = false // and one that was sent has all of it
		r = run(t.Context(), e, ghost)
		time.Sleep(testCommand)
		r.ended(t)
		require.Equal(t, testCommand, r.took)
		require.ErrorIs(t, r.err, ErrUncertain)
		f.last(t).ends(nil, nil)
		times, _, _ := ghost.seen()
		require.Equal(t, 1, times)
	})
}
