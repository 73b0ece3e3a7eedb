package rlock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

func countOf(t testing.TB, l *rlock.Lock, h *rlock.Hold) int64 {
	t.Helper()
	n, err := l.HoldCount(context.WithoutCancel(t.Context()), h.Owner())
	require.NoError(t, err)
	return n
}

// again re-enters a hold.
func again(t testing.TB, l *rlock.Lock, h *rlock.Hold, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	inner, err := l.TryLock(h.Context(context.Background()), opts...)
	require.NoError(t, err)
	return inner
}

func TestProofIsForThatLockOfThatClientOnly(t *testing.T) {
	t.Parallel()
	srv, client := onShared(t)
	l := rlock.New(client, redistest.Key(t))
	outer := take(t, l)
	ctx := outer.Context(t.Context())
	other := rlock.New(client, redistest.Key(t))
	hold := take(t, other)
	_, err := other.TryLock(ctx)
	checkHeld(t, err)
	_, err = rlock.New(connect(t, srv.URL()), l.Name()).TryLock(ctx)
	checkHeld(t, err)
	inner, err := rlock.New(client, l.Name()).TryLock(ctx) // another handle for the same lock
	require.NoError(t, err)
	require.NoError(t, inner.Unlock())
	require.NoError(t, outer.Unlock())
	require.NoError(t, hold.Unlock())
}

func TestReentryRefusesWhatTheServerForgotAndEndsTheOuterHold(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	client := connect(t, srv.URL())
	l := rlock.New(client, redistest.Key(t))
	outer := take(t, l)
	ctx := outer.Context(t.Context())
	srv.Do(t, "DEL", l.Name())
	before := grants(t, srv)
	_, err := l.TryLock(ctx)
	require.ErrorIs(t, err, redlatch.ErrLost)
	require.ErrorIs(t, outer.Err(), redlatch.ErrLost)
	require.ErrorIs(t, context.Cause(ctx), redlatch.ErrLost)
	require.False(t, locked(t, srv, l.Name()), "a re-entry never takes a free lock")
	require.Equal(t, before, grants(t, srv), "not even for a moment")

	foreign := take(t, rlock.New(connect(t, srv.URL()), l.Name()))
	require.EqualValues(t, 1, countOf(t, l, foreign))
	require.NoError(t, foreign.Unlock())
}

// The server still counts an inner hold whose lease has expired.
func TestHandOverLeavesACountOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		l := rlock.New(client, "lock")
		hold := take(t, l)
		inner := again(t, l, hold, rlock.WithLease(time.Second))
		time.Sleep(2 * time.Second)
		require.ErrorIs(t, inner.Err(), redlatch.ErrLost)
		owner, err := hold.HandOver()
		require.NoError(t, err)
		require.Equal(t, "1", owners(t, srv, "lock")[owner.String()])
		require.NoError(t, l.UnlockAs(t.Context(), owner))
		require.False(t, locked(t, srv, "lock"))
	})
}

func TestResolvingAnInnerUnlockNeverFreesALockThatWasLeft(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*rlock.Hold) error{
		"handed over": func(h *rlock.Hold) error { _, err := h.HandOver(); return err },
		"let expire":  (*rlock.Hold).LetExpire,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			client := connect(t, s.URL(), redlatch.WithCommandTimeout(time.Second))
			l := rlock.New(client, redistest.Key(t))
			hold := take(t, l)
			require.NoError(t, again(t, l, hold).Unlock())
			inner := again(t, l, hold)
			s.Pause()
			require.NoError(t, inner.Unlock())
			require.ErrorIs(t, leave(hold), redlatch.ErrUncertain, "not as long as that is open")
			s.Resume()
			var err error
			defer func() { assert.NoError(t, err, "the hold can be left") }()
			until(t, soon, "the hold can be left", func() bool { err = leave(hold); return err == nil })
			for range 20 { // whatever settles has had its say by then
				loadScripts(t, client)
			}
			require.Equal(t, "1", owners(t, s, l.Name())[hold.Owner().String()])
		})
	}
}

// The reply is NOSCRIPT, and the caller has left.
func TestTurnGoesToTheNextWaiterWhenTheServerDidNotKnowTheScript(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := connect(t, s.URL())
	l := rlock.New(client, redistest.Key(t))
	s.Do(t, "SCRIPT", "FLUSH")
	s.Pause()
	w := await(t.Context(), l, rlock.WithWait(200*time.Millisecond))
	require.Error(t, w.failed(t, soon))
	s.Resume()
	require.NoError(t, await(t.Context(), l).acquired(t, soon).Unlock())
}

// errgroup cancels with a sibling's error, which may be one of this package.
func TestCauseOfAContextSaysNothingAboutTheCall(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := connect(t, s.URL())
	p, far := through(t, s)
	l := rlock.New(client, redistest.Key(t))
	for _, cause := range []error{
		redlatch.ErrUncertain, redlatch.ErrNotSent, redlatch.ErrClosed, redlatch.ErrLost, redlatch.ErrNotHeld,
	} {
		cause = fmt.Errorf("a sibling: %w", cause)
		ctx, cancel := context.WithCancelCause(t.Context())
		holdByHand(t, s, l.Name(), forever)
		until(t, soon, "those before have gone", func() bool { return listeners(t, s, l.Name()) == 0 })
		w := await(ctx, l)
		awaitWaiters(t, s, l.Name())
		cancel(cause)
		err := w.failed(t, soon)
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, cause)
		require.ErrorContains(t, err, "a sibling")
		freeByHand(t, s, l.Name())
		require.NoError(t, await(t.Context(), l).acquired(t, soon).Unlock())

		// The same during an attempt without a reply.
		before := grants(t, s)
		p.Blackhole(redistest.ToClient)
		ctx, cancel = context.WithCancelCause(t.Context())
		w = await(ctx, rlock.New(far, redistest.Key(t)))
		until(t, soon, "the attempt", func() bool { return grants(t, s) == before+1 })
		cancel(cause)
		err = w.failed(t, soon)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, cause)
		require.ErrorContains(t, err, "a sibling")
		p.Heal()
	}
}
