package rlock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

func countOf(t testing.TB, l *rlock.Lock, h *rlock.Hold) int64 {
	t.Helper()
	n, err := l.HoldCount(context.WithoutCancel(t.Context()), h.Owner())
	require.NoError(t, err)
	return n
}

func unlockAll(t testing.TB, holds ...*rlock.Hold) {
	t.Helper()
	for _, h := range holds {
		require.NoError(t, h.Unlock())
	}
}

// again re-enters a hold.
func again(t testing.TB, l *rlock.Lock, h *rlock.Hold, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	inner, err := l.TryLock(h.Context(context.Background()), opts...)
	require.NoError(t, err)
	return inner
}

func TestProofValidForOneLockAndClient(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		outer, unrelated := take(t, s.l), rlock.New(s.client, "unrelated")
		hold := take(t, unrelated)
		ctx := outer.Context(t.Context())
		for _, l := range []*rlock.Lock{unrelated, s.other} {
			_, err := l.TryLock(ctx)
			checkHeld(t, err)
		}
		again := *s.l // another handle for the same lock
		inner, err := again.TryLock(ctx)
		require.NoError(t, err)
		unlockAll(t, inner, outer, hold)
	})
}

// The server still counts an inner hold whose lease has expired.
func TestHandOverResetsCountToOne(t *testing.T) {
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

// The unlock arrives late, but before the client gives up its connection.
func TestResolvingInnerUnlockKeepsNewHold(t *testing.T) {
	for name, leave := range map[string]func(*rlock.Hold) error{
		"handed over": func(h *rlock.Hold) error { _, err := h.HandOver(); return err },
		"let expire":  (*rlock.Hold).LetExpire,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, client := wired(t, 0, redlatch.WithCommandTimeout(100*time.Millisecond))
				l := rlock.New(client, "job")
				hold := take(t, l)
				require.NoError(t, again(t, l, hold).Unlock())
				inner := again(t, l, hold)
				held := w.holdCommand(hold.Owner().String())
				require.NoError(t, inner.Unlock())
				require.ErrorIs(t, leave(hold), redlatch.ErrUncertain, "not while the unlock is uncertain")
				held.release(t)
				time.Sleep(time.Second) // the count is corrected in the background
				require.NoError(t, leave(hold))
				time.Sleep(soon)
				require.Equal(t, map[string]string{hold.Owner().String(): "1"}, owners(t, w.srv, "job"))
			})
		})
	}
}

// The reply is NOSCRIPT, and the caller has left.
func TestNoScriptReplyPassesTurnToNextWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 0)
		l := rlock.New(client, "job")
		speak := w.holdReplies()
		_, err := l.Lock(t.Context(), rlock.WithWait(200*time.Millisecond))
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		speak()
		require.NoError(t, await(t.Context(), l).acquired(t, time.Second).Unlock())
	})
}

// errgroup cancels with a sibling's error, which may be an error of this package.
func TestContextCauseDoesNotChangeResult(t *testing.T) {
	for _, cause := range []error{
		redlatch.ErrUncertain, redlatch.ErrNotSent, redlatch.ErrClosed, redlatch.ErrLost, redlatch.ErrNotHeld,
	} {
		synctest.Test(t, func(t *testing.T) {
			cause := fmt.Errorf("a sibling: %w", cause)
			w, client := wired(t, 0)
			loadScripts(t, client)
			holdByHand(t, w.srv, "held", time.Hour)
			ctx, cancel := context.WithCancelCause(t.Context())
			waits := await(ctx, rlock.New(client, "held"))
			synctest.Wait()
			speak := w.holdReplies()
			attempts := await(ctx, rlock.New(client, "free"))
			synctest.Wait()
			cancel(cause)
			require.ErrorIs(t, waits.failed(t, time.Second), redlatch.ErrNotAcquired)
			require.ErrorIs(t, attempts.failed(t, time.Second), redlatch.ErrUncertain)
			for _, err := range []error{waits.err, attempts.err} {
				require.ErrorIs(t, err, context.Canceled)
				require.NotErrorIs(t, err, cause)
				require.ErrorContains(t, err, "a sibling")
			}
			speak()
		})
	}
}
