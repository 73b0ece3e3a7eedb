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
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// kinds are the kinds of lock whose holds are alike.
var kinds = map[string]func(*redlatch.Client, string) *rlock.Lock{
	"plain": rlock.New,
	"fair":  rfairlock.New,
	"write": func(c *redlatch.Client, name string) *rlock.Lock { return rreadwritelock.New(c, name).Write() },
}

// long is for how long a hold is renewed.
var long = time.Duration(testlevel.Rounds(10, 60)) * time.Minute

// scene is a lock of some kind, of two clients, on a server inside a bubble.
type scene struct {
	srv      *redistest.MiniServer
	client   *redlatch.Client
	l, other *rlock.Lock
}

// eachKind plays a scene with each kind of lock. At the end the lock must be free.
func eachKind(t *testing.T, play func(t *testing.T, s *scene)) {
	t.Helper()
	for kind, make := range kinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scene{}
				s.srv, s.client = inBubble(t)
				s.l, s.other = make(s.client, "lock"), make(fakeClient(t, s.srv), "lock")
				play(t, s)
				synctest.Wait()
				require.Empty(t, keysLike(t, s.srv, "*"), "something is left")
			})
		})
	}
}

// refused checks that another caller does not get the lock.
func (s *scene) refused(t *testing.T) {
	t.Helper()
	for _, l := range []*rlock.Lock{s.l, s.other} {
		_, err := l.TryLock(t.Context())
		checkHeld(t, err)
	}
}

func TestKindsReenterByProof(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
			holds := []*rlock.Hold{take(t, s.l)}
			holds = append(holds, again(t, s.l, holds[0]))
			holds = append(holds, again(t, s.l, holds[1]))
			require.EqualValues(t, 3, countOf(t, s.l, holds[0]))
			for left, i := range order {
				s.refused(t)
				require.NoError(t, holds[i].Unlock())
				require.EqualValues(t, 2-left, countOf(t, s.l, holds[0]))
			}
		}
	})
}

// Waiters do not keep a holder from re-entering.
func TestKindsReenterWhileOthersWait(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		hold := take(t, s.l)
		here, there := await(t.Context(), s.l), await(t.Context(), s.other)
		synctest.Wait()
		inner, err := s.l.Lock(hold.Context(t.Context()), rlock.WithWait(time.Second))
		require.NoError(t, err)
		require.NoError(t, hold.Unlock())
		here.stillWaits(t)
		there.stillWaits(t)
		require.NoError(t, inner.Unlock())
		for range 2 {
			select {
			case <-here.done:
				require.NoError(t, here.hold.Unlock())
				here.done = nil
			case <-there.done:
				require.NoError(t, there.hold.Unlock())
				there.done = nil
			}
		}
	})
}

func TestKindsRefuseTheReentryOfALostHold(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		forgotten := take(t, s.l)
		ctx := forgotten.Context(t.Context())
		s.srv.Do(t, "DEL", "lock")
		_, err := s.l.Lock(ctx)
		require.ErrorIs(t, err, redlatch.ErrLost)
		require.ErrorIs(t, forgotten.Err(), redlatch.ErrLost)
		synctest.Wait()
		require.False(t, locked(t, s.srv, "lock"), "a re-entry never takes a free lock")

		expired := take(t, s.l, rlock.WithLease(10*time.Second))
		ctx = context.WithoutCancel(expired.Context(t.Context()))
		time.Sleep(9 * time.Second)
		_, err = s.l.TryLock(ctx)
		require.ErrorIs(t, err, redlatch.ErrLost)
		synctest.Wait() // it is freed

		former := take(t, s.l)
		ctx = context.WithoutCancel(former.Context(t.Context()))
		require.NoError(t, former.Unlock())
		fresh, err := s.l.TryLock(ctx)
		require.NoError(t, err)
		require.NotEqual(t, former.Owner(), fresh.Owner())
		require.NoError(t, fresh.Unlock())
	})
}

func TestKindsKeepTheMostThatNestedLeasesPromise(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		outer := take(t, s.l, rlock.WithLease(60*time.Second))
		time.Sleep(10 * time.Second)
		inner := again(t, s.l, outer, rlock.WithLease(5*time.Second))
		require.InDelta(t, 50, ttl(t, s.srv, "lock").Seconds(), 0.1, "re-entry never shortens")
		time.Sleep(time.Second)
		require.NoError(t, inner.Unlock())
		require.InDelta(t, 49, ttl(t, s.srv, "lock").Seconds(), 0.1)
		require.NoError(t, outer.Unlock())

		outer = take(t, s.l)
		inner = again(t, s.l, outer, rlock.WithLease(5*time.Minute))
		time.Sleep(2 * time.Minute)
		require.InDelta(t, 180, ttl(t, s.srv, "lock").Seconds(), 1, "renewals do not shorten it")
		require.NoError(t, outer.Unlock())
		require.InDelta(t, 180, ttl(t, s.srv, "lock").Seconds(), 1)
		require.NoError(t, inner.Unlock())
	})
}

func TestKindsAreRenewedForAsLongAsTheyAreHeld(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		hold := take(t, s.l)
		time.Sleep(long)
		s.refused(t)
		require.NoError(t, hold.Err())
		require.NoError(t, hold.Unlock())
	})
}

func TestKindsLearnOfALossAndTouchNothingOfTheNextHolder(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		renewed := take(t, s.l)
		began := time.Now()
		holdByHand(t, s.srv, "lock", time.Hour)
		<-renewed.Context(t.Context()).Done()
		require.LessOrEqual(t, time.Since(began), 10*time.Second+time.Millisecond)
		require.ErrorIs(t, renewed.Unlock(), redlatch.ErrLost)
		require.Equal(t, map[string]string{foreignOwner: "1"}, owners(t, s.srv, "lock"))
		s.srv.Do(t, "DEL", "lock")

		fixed := take(t, s.l, rlock.WithLease(10*time.Second))
		holdByHand(t, s.srv, "lock", time.Hour)
		require.ErrorIs(t, fixed.Unlock(), redlatch.ErrLost, "it was not notified")
		require.Equal(t, map[string]string{foreignOwner: "1"}, owners(t, s.srv, "lock"))
		s.srv.Do(t, "DEL", "lock")

		gone := take(t, s.l)
		s.srv.Do(t, "DEL", "lock")
		require.ErrorIs(t, gone.Unlock(), redlatch.ErrLost, "a free lock is no lock that was held until now")
	})
}

// The former holder has the turn of its process until it learns of the loss.
func TestKindsAreAcquiredAgainAndAgainBesideAHoldThatIsForgotten(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		former := take(t, s.l, rlock.WithLease(time.Hour))
		s.srv.Do(t, "DEL", "lock")
		for range 3 {
			hold := take(t, s.l)
			s.refused(t)
			require.NoError(t, hold.Unlock())
		}
		require.ErrorIs(t, former.Unlock(), redlatch.ErrLost)
	})
}

func TestKindsAreHandedOver(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		hold := take(t, s.l)
		w := await(t.Context(), s.l)
		synctest.Wait()
		owner, err := hold.HandOver()
		require.NoError(t, err)
		require.ErrorIs(t, hold.Err(), redlatch.ErrHandedOver)
		require.NoError(t, hold.Unlock(), "a deferred unlock does nothing")
		time.Sleep(25 * time.Second)
		resumed, err := s.other.Resume(t.Context(), travels(t, owner))
		require.NoError(t, err)
		time.Sleep(long)
		w.stillWaits(t)
		owner, err = resumed.HandOver()
		require.NoError(t, err)
		require.NoError(t, s.l.UnlockAs(t.Context(), owner))
		require.NoError(t, w.acquired(t, 11*time.Second).Unlock())
		require.ErrorIs(t, s.l.UnlockAs(t.Context(), owner), redlatch.ErrNotHeld)
		_, err = s.l.Resume(t.Context(), owner)
		require.ErrorIs(t, err, redlatch.ErrNotHeld)
		time.Sleep(20 * time.Second) // for the latches
	})
}

func TestKindsLetTwoUsersOfOneOwnerIn(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		owner := newOwner()
		a, b := take(t, s.l, rlock.WithOwner(owner)), take(t, s.other, rlock.WithOwner(owner))
		require.EqualValues(t, 2, countOf(t, s.l, a))
		s.refused(t)
		time.Sleep(time.Minute)
		require.NoError(t, a.Unlock())
		s.refused(t)
		time.Sleep(time.Minute)
		require.NoError(t, b.Unlock())
		time.Sleep(20 * time.Second) // for the latches
	})
}

func TestKindsEndAtTheirMaximum(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		hold := take(t, s.l, rlock.WithMaxHold(5*time.Minute))
		w := await(t.Context(), s.other)
		time.Sleep(5*time.Minute - time.Millisecond)
		require.NoError(t, hold.Err())
		time.Sleep(time.Millisecond)
		require.ErrorIs(t, hold.Err(), redlatch.ErrMaxHold)
		ended := time.Now()
		next := w.acquired(t, time.Minute)
		require.LessOrEqual(t, time.Since(ended), 30*time.Second+time.Millisecond, "one lease later")
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrMaxHold)
		require.NoError(t, next.Err())
		require.NoError(t, next.Unlock())
	})
}

func TestKindsAreLeftToTheirLease(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		hold := take(t, s.l, rlock.WithLease(time.Minute))
		require.NoError(t, hold.LetExpire())
		require.NoError(t, hold.Unlock())
		began := time.Now()
		next, err := s.other.Lock(t.Context())
		require.NoError(t, err)
		require.InDelta(t, 60, time.Since(began).Seconds(), 0.1)
		require.NoError(t, next.Unlock())

		left := take(t, s.l)
		require.NoError(t, s.client.Close())
		require.ErrorIs(t, left.Err(), redlatch.ErrClosed)
		require.True(t, locked(t, s.srv, "lock"))
		time.Sleep(31 * time.Second)
	})
}

func TestKindsAnswerQuestionsAlike(t *testing.T) {
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
		held, err := s.other.IsHeldBy(t.Context(), hold.Owner())
		require.NoError(t, err)
		require.True(t, held)
		forced, err := s.other.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, forced)
		isLocked, err := s.other.IsLocked(t.Context())
		require.NoError(t, err)
		require.False(t, isLocked)
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	})
}

func TestKindsRunAFunctionUnderTheLock(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		failure := errors.New("the work failed")
		require.ErrorIs(t, s.l.Do(t.Context(), func(ctx context.Context) error {
			s.refused(t)
			return errors.Join(failure, s.l.Do(ctx, func(context.Context) error { return nil }))
		}), failure)
		require.Panics(t, func() {
			_ = s.l.Do(t.Context(), func(context.Context) error { panic("the work") })
		})
	})
}

func TestKindsRefuseBadNamesAndOptions(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		_, err := s.l.TryLock(t.Context(), rlock.WithWait(time.Second))
		require.ErrorIs(t, err, redlatch.ErrInvalid)
		_, err = s.l.Lock(t.Context(), rlock.WithOwner(redlatch.Owner{}))
		require.ErrorIs(t, err, redlatch.ErrInvalid)
		_, err = s.l.Lock(t.Context(), rlock.WithLease(time.Minute), rlock.WithMaxHold(time.Minute))
		require.ErrorIs(t, err, redlatch.ErrInvalid)
		_, err = rfairlock.New(s.client, "").Lock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrInvalid)
	})
}
