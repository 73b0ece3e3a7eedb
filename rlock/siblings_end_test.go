package rlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

func TestSiblingsOfLostHoldReturnErrLost(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		outer := take(t, s.l)
		inner := again(t, s.l, outer)
		alive, dead := waitInner(s.l, outer), await(outer.Context(t.Context()), s.l)
		deeper := waitInner(s.l, inner, rlock.WithLease(time.Second))
		synctest.Wait()
		third := deeper.acquired(t, time.Second)
		onInner := waitInner(s.l, inner)
		synctest.Wait()
		s.srv.Do(t, "DEL", "lock")
		for _, w := range []*waiter{alive, dead, onInner} {
			w.ended(t, 11*time.Second)
			require.ErrorIs(t, w.err, redlatch.ErrLost)
		}
		for _, h := range []*rlock.Hold{outer, inner, third} {
			require.ErrorIs(t, h.Err(), redlatch.ErrLost)
		}
	})
}

func TestExpiredInnerHoldFreesSlot(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		outer := take(t, s.l)
		inner := again(t, s.l, outer, rlock.WithLease(5*time.Second))
		sibling := waitInner(s.l, outer)
		next := sibling.acquired(t, 5*time.Second)
		require.ErrorIs(t, inner.Err(), redlatch.ErrLost)
		require.NoError(t, outer.Err())
		require.NoError(t, next.Unlock())
		require.NoError(t, outer.Unlock())
	})
}

func TestInnerHoldAtMaxHoldKeepsSlotForLease(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		outer := take(t, s.l)
		stuck := again(t, s.l, outer, rlock.WithWatchdog(9*time.Second), rlock.WithMaxHold(4*time.Second))
		sibling := waitInner(s.l, outer)
		time.Sleep(9 * time.Second) // it was renewed after three
		synctest.Wait()
		sibling.stillWaits(t)
		time.Sleep(3*time.Second + 10*time.Millisecond)
		synctest.Wait()
		inner := sibling.acquired(t, time.Second)
		require.NoError(t, inner.Unlock())

		atMax := again(t, s.l, outer, rlock.WithMaxHold(time.Second))
		sibling = waitInner(s.l, outer)
		time.Sleep(2 * time.Second)
		require.ErrorIs(t, atMax.Unlock(), redlatch.ErrMaxHold)
		synctest.Wait()
		require.NoError(t, sibling.acquired(t, time.Second).Unlock())
		require.ErrorIs(t, stuck.Unlock(), redlatch.ErrMaxHold)
		require.NoError(t, outer.Unlock())
	})
}

func TestSiblingsOfHoldAtMaxHoldReturnErrMaxHold(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		outer := take(t, s.l, rlock.WithMaxHold(2*time.Second))
		inner := again(t, s.l, outer)
		sibling := waitInner(s.l, outer)
		sibling.ended(t, 3*time.Second)
		require.ErrorIs(t, sibling.err, redlatch.ErrMaxHold)
		require.NoError(t, inner.Unlock())
		require.ErrorIs(t, outer.Unlock(), redlatch.ErrMaxHold)
	})
}

func TestCloseAndShutdownCancelSiblings(t *testing.T) {
	for kind, newLock := range kinds {
		for how, end := range map[string]func(*redlatch.Client, context.Context) error{
			"close":    func(c *redlatch.Client, _ context.Context) error { return c.Close() },
			"shutdown": (*redlatch.Client).Shutdown,
		} {
			t.Run(kind+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv, client := inBubble(t)
					l := newLock(client, "lock")
					outer := take(t, l)
					_ = again(t, l, outer)
					sibling := waitInner(l, outer)
					synctest.Wait()
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					ended := make(chan error, 1)
					go func() { ended <- end(client, ctx) }()
					sibling.ended(t, time.Second)
					require.ErrorIs(t, sibling.err, redlatch.ErrClosed)
					if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
						require.NoError(t, err)
					}
					freeByHand(t, srv, "lock")
				})
			})
		}
	}
}

// The inner hold continues, and the callers acquire the lock behind earlier waiters.
func TestSiblingsOfUnlockedOuterHoldQueueAgain(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		outer := take(t, s.l)
		inner := again(t, s.l, outer)
		foreign := await(t.Context(), s.l)
		sibling := waitInner(s.l, outer)
		ctx := outer.Context(t.Context())
		ended := await(ctx, s.l)
		synctest.Wait()
		require.NoError(t, outer.Unlock())
		synctest.Wait()
		require.NoError(t, inner.Err())
		ended.ended(t, time.Millisecond)
		require.ErrorIs(t, ended.err, redlatch.ErrNotAcquired, "its context has ended")
		require.ErrorIs(t, ended.err, context.Canceled)
		sibling.stillWaits(t)
		s.refused(t)
		require.NoError(t, inner.Unlock())
		first := foreign.acquired(t, time.Second)
		sibling.stillWaits(t)
		require.NoError(t, first.Unlock())
		fresh := sibling.acquired(t, time.Second)
		require.NotEqual(t, outer.Owner(), fresh.Owner())
		require.NoError(t, fresh.Unlock())
	})
}
