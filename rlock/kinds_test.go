package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// kinds are the kinds of lock whose holds behave in the same way.
var kinds = map[string]func(*redlatch.Client, string) *rlock.Lock{
	"plain": rlock.New,
	"fair":  rfairlock.New,
	"write": func(c *redlatch.Client, name string) *rlock.Lock { return rreadwritelock.New(c, name).Write() },
}

var long = time.Duration(testlevel.Rounds(2, 10)) * time.Minute

// scene is a lock of one kind with two clients in a bubble.
type scene struct {
	srv      *redistest.MiniServer
	client   *redlatch.Client
	l, other *rlock.Lock
}

// eachKind runs play for each kind, and checks that no key is left.
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
				require.Empty(t, keysLike(t, s.srv, "*"), "keys remain")
			})
		})
	}
}

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
		orders := [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}, {0, 2, 1}, {2, 0, 1}}
		for _, order := range testlevel.Part(orders, 2, t.Name()) {
			holds := []*rlock.Hold{take(t, s.l)}
			holds = append(holds, again(t, s.l, holds[0]))
			holds = append(holds, again(t, s.l, holds[1]))
			require.EqualValues(t, 3, countOf(t, s.l, holds[0]))
			for left, i := range order {
				s.refused(t)
				require.NoError(t, holds[i].Err())
				require.Equal(t, holds[0].Owner(), holds[i].Owner())
				require.NoError(t, holds[i].Unlock())
				require.EqualValues(t, 2-left, countOf(t, s.l, holds[0]))
			}
		}
	})
}

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
		unlockEach(t, here, there)
	})
}

func TestKindsRejectReentryOfLostHold(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		for _, opts := range [][]rlock.Option{nil, {rlock.WithOwner(newOwner())}} {
			forgotten := take(t, s.l, opts...)
			ctx := forgotten.Context(t.Context())
			s.srv.Do(t, "DEL", "lock")
			_, err := s.l.Lock(ctx)
			require.ErrorIs(t, err, redlatch.ErrLost)
			require.ErrorIs(t, forgotten.Err(), redlatch.ErrLost)
			synctest.Wait()
			require.False(t, locked(t, s.srv, "lock"), "a re-entry never takes a free lock")
		}

		expired := take(t, s.l, rlock.WithLease(10*time.Second))
		ctx := context.WithoutCancel(expired.Context(t.Context()))
		time.Sleep(9 * time.Second)
		_, err := s.l.TryLock(ctx)
		require.ErrorIs(t, err, redlatch.ErrLost)
		synctest.Wait() // it is freed

		former := take(t, s.l)
		ctx = context.WithoutCancel(former.Context(t.Context()))
		require.NoError(t, former.Unlock())
		fresh, err := s.l.TryLock(ctx)
		require.NoError(t, err)
		require.NotEqual(t, former.Owner(), fresh.Owner())
		_, err = s.l.TryLock(ctx)
		checkHeld(t, err)
		require.NoError(t, fresh.Unlock())
	})
}

func TestKindsKeepLongestNestedLease(t *testing.T) {
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
		require.NoError(t, inner.Err())
		time.Sleep(170 * time.Second)
		require.NoError(t, inner.Unlock())

		// Redisson stops renewing the outer hold here.
		outer = take(t, s.l)
		require.NoError(t, again(t, s.l, outer, rlock.WithLease(10*time.Second)).Unlock())
		time.Sleep(time.Minute)
		require.NoError(t, outer.Err())
		require.EqualValues(t, 1, countOf(t, s.l, outer))
		require.NoError(t, outer.Unlock())

		// Redisson gives the inner hold the outer one's lease here.
		outer = take(t, s.l, rlock.WithLease(10*time.Second))
		inner = again(t, s.l, outer)
		require.Greater(t, ttl(t, s.srv, "lock"), 29*time.Second)
		time.Sleep(9 * time.Second)
		synctest.Wait()
		require.ErrorIs(t, outer.Err(), redlatch.ErrLost)
		time.Sleep(time.Minute)
		require.NoError(t, inner.Err())
		require.NoError(t, inner.Unlock())
	})
}

func TestKindsDetectLossWithoutTouchingNextHolder(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		renewed := take(t, s.l)
		began := time.Now()
		holdByHand(t, s.srv, "lock", time.Hour)
		awaitLoss(t, renewed, 10*time.Second+time.Millisecond)
		require.Equal(t, map[string]string{foreignOwner: "1"}, owners(t, s.srv, "lock"))
		require.Equal(t, time.Hour-time.Since(began), ttl(t, s.srv, "lock"))
		s.srv.Do(t, "DEL", "lock")

		fixed := take(t, s.l, rlock.WithLease(10*time.Second))
		ctx := fixed.Context(t.Context())
		holdByHand(t, s.srv, "lock", time.Hour)
		require.ErrorIs(t, fixed.Unlock(), redlatch.ErrLost, "the hold had not noticed the loss")
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrNotHeld, "the holder had unlocked before noticing the loss")
		require.Equal(t, map[string]string{foreignOwner: "1"}, owners(t, s.srv, "lock"))
		s.srv.Do(t, "DEL", "lock")

		gone := take(t, s.l)
		s.srv.Do(t, "DEL", "lock")
		require.ErrorIs(t, gone.Unlock(), redlatch.ErrLost, "the lock was not held until now")
	})
}

// The former holder keeps its turn in the local queue until it notices the loss.
func TestKindsAcquireRepeatedlyDespiteForgottenHold(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		former := take(t, s.l, rlock.WithLease(time.Hour))
		s.srv.Do(t, "DEL", "lock")
		require.NoError(t, await(t.Context(), s.l).acquired(t, 11*time.Second).Unlock())
		for range 3 {
			hold := take(t, s.l)
			s.refused(t)
			require.NoError(t, hold.Unlock())
		}
		require.ErrorIs(t, former.Unlock(), redlatch.ErrLost)
	})
}

func TestKindsHandOver(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		_, err := s.l.Resume(t.Context(), newOwner())
		require.ErrorIs(t, err, redlatch.ErrNotHeld)
		hold := take(t, s.l)
		ctx := hold.Context(t.Context())
		w := await(t.Context(), s.l)
		synctest.Wait()
		owner, err := hold.HandOver()
		require.NoError(t, err)
		require.ErrorIs(t, hold.Err(), redlatch.ErrHandedOver)
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrHandedOver)
		require.NoError(t, hold.Unlock(), "a deferred unlock does nothing")
		time.Sleep(25 * time.Second)
		resumed, err := s.other.Resume(t.Context(), travels(t, owner))
		require.NoError(t, err)
		require.Equal(t, owner, resumed.Owner())
		_, err = s.other.Resume(t.Context(), newOwner())
		require.ErrorIs(t, err, redlatch.ErrNotHeld)
		time.Sleep(long)
		w.stillWaits(t)
		require.NoError(t, resumed.Err())
		owner, err = resumed.HandOver()
		require.NoError(t, err)
		require.NoError(t, s.l.UnlockAs(t.Context(), owner))
		require.NoError(t, w.acquired(t, 11*time.Second).Unlock())
		require.ErrorIs(t, s.l.UnlockAs(t.Context(), owner), redlatch.ErrNotHeld)
		_, err = s.l.Resume(t.Context(), owner)
		require.ErrorIs(t, err, redlatch.ErrNotHeld)
		time.Sleep(20 * time.Second) // until the latches expire
	})
}

func TestKindsAdmitTwoUsersOfOneOwner(t *testing.T) {
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
		require.NoError(t, b.Err())
		require.NoError(t, s.l.UnlockAs(t.Context(), owner))
		require.False(t, locked(t, s.srv, "lock"))
		require.ErrorIs(t, s.l.UnlockAs(t.Context(), owner), redlatch.ErrNotHeld)
		require.ErrorIs(t, b.Unlock(), redlatch.ErrLost)
		time.Sleep(20 * time.Second) // for the latches
	})
}

func TestKindsEndAtMaxHold(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		hold := take(t, s.l, rlock.WithMaxHold(2*time.Minute))
		ctx := hold.Context(t.Context())
		deadline, ok := ctx.Deadline()
		require.True(t, ok)
		require.Equal(t, 2*time.Minute, time.Until(deadline))
		w := await(t.Context(), s.other)
		time.Sleep(2*time.Minute - time.Millisecond)
		synctest.Wait()
		require.NoError(t, hold.Err())
		time.Sleep(time.Millisecond)
		require.ErrorIs(t, hold.Err(), redlatch.ErrMaxHold)
		synctest.Wait()
		awaitClosed(t, ctx.Done(), time.Millisecond, "the end")
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrMaxHold)
		next := w.acquired(t, 30*time.Second+time.Millisecond) // one lease later
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrMaxHold)
		require.NoError(t, next.Err())
		require.EqualValues(t, 1, countOf(t, s.l, next))
		require.NoError(t, next.Unlock())

		hold = take(t, s.l, rlock.WithMaxHold(time.Minute))
		time.Sleep(time.Minute)
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrMaxHold)
		require.False(t, locked(t, s.srv, "lock"))
	})
}

func TestKindsLetExpire(t *testing.T) {
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

		fixed := take(t, s.l, rlock.WithLease(10*time.Second))
		next = await(t.Context(), s.other).acquired(t, 11*time.Second)
		require.ErrorIs(t, fixed.Unlock(), redlatch.ErrLost)
		require.EqualValues(t, 1, countOf(t, s.l, next))
		require.NoError(t, next.Unlock())

		left := take(t, s.l)
		require.NoError(t, s.client.Close())
		require.ErrorIs(t, left.Err(), redlatch.ErrClosed)
		require.True(t, locked(t, s.srv, "lock"))
		time.Sleep(31 * time.Second)
	})
}
