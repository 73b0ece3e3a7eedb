package rlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestKindsSharingNameExclude(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		plain, fair := rlock.New(client, "lock"), rfairlock.New(client, "lock")
		for _, pair := range [][2]*rlock.Lock{{plain, fair}, {fair, plain}} {
			hold := take(t, pair[0])
			_, err := pair[1].TryLock(t.Context())
			checkHeld(t, err)
			_, err = pair[1].TryLock(hold.Context(t.Context()))
			checkHeld(t, err) // the proof for one is not valid for the other
			w := await(t.Context(), pair[1])
			time.Sleep(time.Minute)
			w.stillWaits(t)
			require.NoError(t, hold.Unlock())
			freed := time.Now()
			next := w.acquired(t, time.Minute)
			require.LessOrEqual(t, time.Since(freed), 10*time.Second, "they do not wake each other")
			require.NoError(t, next.Unlock())
		}
		synctest.Wait()
		require.Empty(t, keysLike(t, srv, "*"))
	})
}

func TestKindsUnlockOnceWhenReplyIsLost(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		hold := take(t, s.l)
		s.srv.LoseReplies(1)
		require.NoError(t, hold.Unlock())
		require.False(t, locked(t, s.srv, "lock"))
	})
}

func TestKindsUnlockAfterTemporaryServerError(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		hold := take(t, s.l)
		s.srv.FailWith("MISCONF Redis is configured to save RDB snapshots, but it's currently unable")
		outcome := hold.UnlockAsync()
		time.Sleep(time.Second)
		require.Empty(t, outcome)
		s.srv.Heal()
		require.NoError(t, <-outcome)
		require.False(t, locked(t, s.srv, "lock"))
	})
}

func TestKindsUndoReentryWhenReplyIsLost(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		outer := take(t, s.l)
		s.srv.LoseReplies(1)
		_, err := s.l.TryLock(outer.Context(t.Context()))
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 1, countOf(t, s.l, outer))
		require.NoError(t, outer.Unlock())
	})
}

func TestKindsUndoAcquireWhenReplyIsLost(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		require.NoError(t, take(t, s.l).Unlock()) // connects
		for _, how := range howLocks {
			s.srv.LoseReplies(1)
			_, err := how.lock(t.Context(), s.l)
			require.ErrorIs(t, err, redlatch.ErrUncertain)
			time.Sleep(2 * time.Second)
			require.False(t, locked(t, s.srv, "lock"), how.name)
		}
	})
}

func TestKindsDo(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		failure := errors.New("out of paper")
		require.Equal(t, failure, s.l.Do(t.Context(), func(ctx context.Context) error {
			s.refused(t)
			checkHeld(t, s.other.Do(ctx, func(context.Context) error { panic("inside") }, rlock.WithWait(time.Second)))
			require.NoError(t, s.l.Do(ctx, func(context.Context) error { return nil }))
			return failure
		}))
		require.PanicsWithValue(t, "the work", func() {
			_ = s.l.Do(t.Context(), func(context.Context) error { panic("the work") })
		})
		require.False(t, locked(t, s.srv, "lock"))
		for _, work := range []error{failure, nil} {
			err := s.l.Do(t.Context(), func(context.Context) error {
				s.srv.Do(t, "DEL", "lock")
				return work
			})
			require.Equal(t, work != nil, errors.Is(err, failure))
			require.ErrorIs(t, err, redlatch.ErrLost)
			if work != nil {
				require.Regexp(t, `^out of paper\nunlock "`, err.Error())
			}
		}
	})
}

func TestKindsReportState(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		hold := take(t, s.l, rlock.WithLease(time.Minute))
		_, err := s.other.TryLock(t.Context())
		var refusal *redlatch.LockError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, hold.Owner(), refusal.Holder)
		require.Equal(t, time.Minute, refusal.TTL)
		_, err = s.other.Lock(t.Context(), rlock.WithWait(time.Second))
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, hold.Owner(), refusal.Holder)
		in, err := admin.Inspect(t.Context(), s.other)
		require.NoError(t, err)
		require.Equal(t, hold.Owner(), in.Holders[0].Owner)
		requireAnswers(t, s, hold.Owner(), 59*time.Second, 1)
		requireAnswers(t, s, newOwner(), 59*time.Second, 0)
		for _, want := range []bool{true, false} {
			forced, err := s.other.ForceUnlock(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, forced)
			requireAnswers(t, s, hold.Owner(), 0, 0)
		}
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	})
}

// requireAnswers checks what both clients read about an owner.
func requireAnswers(t *testing.T, s *scene, owner codec.Owner, left time.Duration, count int64) {
	t.Helper()
	for _, l := range []*rlock.Lock{s.l, s.other} {
		isLocked, err := l.IsLocked(t.Context())
		require.NoError(t, err)
		require.Equal(t, left > 0, isLocked)
		n, err := l.HoldCount(t.Context(), owner)
		require.NoError(t, err)
		require.Equal(t, count, n)
		have, err := l.TTL(t.Context())
		require.NoError(t, err)
		require.Equal(t, left, have)
	}
}
