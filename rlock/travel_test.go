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

// An inner hold whose own lease ran out is still counted on the server.
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

// The unlock of an inner hold has no known outcome. What settles that must not
// free a lock that was handed over, or left to its lease, meanwhile.
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

// The server forgot the lock, and the outer hold is given up while the re-entry is
// on its way. The turn must not stay with either.
func TestTurnGoesToTheNextWaiterAfterAReentryThatCameTooLate(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, client := through(t, s)
	l := rlock.New(client, redistest.Key(t))
	hold := take(t, l)
	require.NoError(t, again(t, l, hold).Unlock())
	ctx := context.WithoutCancel(hold.Context(t.Context()))
	s.Do(t, "DEL", l.Name())
	held := p.HoldMatching(redistest.ToServer, l.Name())
	re := await(ctx, l)
	awaitClosed(t, held.Seen(), soon, "the re-entry")
	un := inBackground(func() (*rlock.Hold, error) { return nil, hold.Unlock() })
	until(t, soon, "the unlock", func() bool { return !hold.Internal().IsCounted() })
	held.Release()
	require.ErrorIs(t, re.failed(t, soon), redlatch.ErrLost)
	un.ended(t, soon)
	require.NoError(t, un.err, "it left the freeing to the re-entry")
	require.NoError(t, await(t.Context(), l).acquired(t, soon).Unlock())
}

// The reply is NOSCRIPT, and the caller has left: the call never runs.
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

// errgroup cancels with a sibling's error, which may be one of ours.
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

		// And during an attempt whose reply stays out.
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
