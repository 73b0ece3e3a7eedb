package rlock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// waitInner locks with a hold's proof, in a context that outlives the hold.
func waitInner(l *rlock.Lock, outer *rlock.Hold, opts ...rlock.Option) *waiter {
	return await(context.WithoutCancel(outer.Context(context.Background())), l, opts...)
}

// refusedInside checks that a hold has an inner hold.
func (s *scene) refusedInside(t *testing.T, outer *rlock.Hold) {
	t.Helper()
	before := countOf(t, s.l, outer)
	_, err := s.l.TryLock(outer.Context(t.Context()))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	require.ErrorContains(t, err, "held by an inner hold of this context")
	_, err = s.l.Lock(outer.Context(t.Context()), rlock.WithWait(0))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	require.Equal(t, before, countOf(t, s.l, outer))
}

func TestSiblingsWaitInOrderWithoutRequests(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		outer := take(t, s.l)
		inner := again(t, s.l, outer)
		var siblings []*waiter
		for range 5 {
			siblings = append(siblings, waitInner(s.l, outer))
			synctest.Wait()
		}
		s.refusedInside(t, outer)
		for _, w := range siblings {
			w.stillWaits(t)
		}
		require.EqualValues(t, 2, countOf(t, s.l, outer), "waiters have sent nothing")
		for i, w := range siblings {
			require.NoError(t, inner.Unlock())
			synctest.Wait()
			inner = w.acquired(t, time.Second)
			require.EqualValues(t, 2, countOf(t, s.l, outer))
			for _, later := range siblings[i+1:] {
				later.stillWaits(t)
			}
		}
		require.NoError(t, inner.Unlock())
		require.NoError(t, again(t, s.l, outer).Unlock(), "the slot is free")
		require.NoError(t, outer.Unlock())
	})
}

func TestEachHoldHasOneInnerHold(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		one := take(t, s.l)
		two := again(t, s.l, one)
		three := again(t, s.l, two)
		s.refusedInside(t, one)
		s.refusedInside(t, two)
		onOne, onTwo := waitInner(s.l, one), waitInner(s.l, two)
		synctest.Wait()
		require.NoError(t, three.Unlock())
		synctest.Wait()
		onOne.stillWaits(t)
		three = onTwo.acquired(t, time.Second)
		require.NoError(t, three.Unlock())
		synctest.Wait()
		onOne.stillWaits(t)
		require.NoError(t, two.Unlock())
		synctest.Wait()
		require.NoError(t, onOne.acquired(t, time.Second).Unlock())
		require.NoError(t, one.Unlock())
	})
}

func TestInnerHoldReplacesUnlockedOuterHold(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		one := take(t, s.l)
		two := again(t, s.l, one)
		three := again(t, s.l, two)
		onOne := waitInner(s.l, one)
		// After the second is unlocked, it proves the first hold.
		ctx := context.WithoutCancel(two.Context(one.Context(t.Context())))
		onTwo := await(ctx, s.l)
		synctest.Wait()
		require.NoError(t, two.Unlock())
		synctest.Wait()
		s.refusedInside(t, one)
		onOne.stillWaits(t)
		onTwo.stillWaits(t)
		require.NoError(t, three.Unlock())
		synctest.Wait()
		three = onOne.acquired(t, time.Second)
		onTwo.stillWaits(t)
		require.NoError(t, three.Unlock())
		synctest.Wait()
		three = onTwo.acquired(t, time.Second)
		require.Equal(t, one.Owner(), three.Owner())
		require.NoError(t, three.Unlock())
		require.NoError(t, one.Unlock())
	})
}

func TestSiblingsStopWaiting(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		outer := take(t, s.l)
		inner := again(t, s.l, outer)
		ctx, cancel := context.WithTimeout(outer.Context(t.Context()), time.Second)
		defer cancel()
		byContext, byWait := await(ctx, s.l), waitInner(s.l, outer, rlock.WithWait(2*time.Second))
		last := waitInner(s.l, outer)
		byContext.ended(t, time.Second+time.Millisecond)
		require.ErrorIs(t, byContext.err, redlatch.ErrNotAcquired)
		require.ErrorIs(t, byContext.err, context.DeadlineExceeded)
		require.ErrorContains(t, byContext.err, "held by an inner hold of this context")
		byWait.ended(t, time.Second+time.Millisecond)
		require.ErrorIs(t, byWait.err, redlatch.ErrNotAcquired)
		require.Equal(t, 2*time.Second, byWait.took())
		require.NoError(t, inner.Unlock())
		synctest.Wait()
		require.NoError(t, last.acquired(t, time.Second).Unlock(), "the slot skipped canceled waiters")
		require.NoError(t, outer.Unlock())
	})
}

func TestSiblingsCountAsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t, redlatch.WithMaxWaiters(2))
		l := rlock.New(client, "lock")
		outer := take(t, l)
		inner := again(t, l, outer)
		waiters := []*waiter{waitInner(l, outer), waitInner(l, outer)}
		synctest.Wait()
		_, err := l.Lock(outer.Context(t.Context()))
		checkHeld(t, err)
		require.ErrorContains(t, err, "WithMaxWaiters")
		require.NoError(t, inner.Unlock())
		unlockEach(t, waiters...)
		require.NoError(t, take(t, rlock.New(client, "other")).Unlock())
		require.NoError(t, outer.Unlock())
	})
}

func TestHoldsOfGivenOwnerHaveSeparateChains(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		owner, err := take(t, s.l).HandOver()
		require.NoError(t, err)
		one, err := s.l.Resume(t.Context(), owner)
		require.NoError(t, err)
		two, err := s.l.Lock(one.Context(t.Context()), rlock.WithOwner(owner)) // skips the chain
		require.NoError(t, err)
		insideOne, insideTwo := again(t, s.l, one), again(t, s.l, two)
		s.refusedInside(t, one)
		s.refusedInside(t, two)
		waiting := waitInner(s.l, one)
		synctest.Wait()
		require.NoError(t, insideTwo.Unlock())
		synctest.Wait()
		waiting.stillWaits(t)
		require.NoError(t, insideOne.Unlock())
		synctest.Wait()
		require.NoError(t, waiting.acquired(t, time.Second).Unlock())
		require.NoError(t, two.Unlock())
		require.NoError(t, one.Unlock())
	})
}

func TestSiblingsUnderTransferredLockExclude(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t)
		l := rlock.New(client, "lock")
		first := take(t, l)
		w := await(t.Context(), l)
		synctest.Wait()
		require.NoError(t, first.Unlock())
		outer := w.acquired(t, time.Second)
		inner := again(t, l, outer)
		sibling, foreign := waitInner(l, outer), await(t.Context(), l)
		synctest.Wait()
		require.NoError(t, inner.Unlock())
		synctest.Wait()
		foreign.stillWaits(t)
		require.NoError(t, sibling.acquired(t, time.Second).Unlock())
		require.NoError(t, outer.Unlock())
		require.NoError(t, foreign.acquired(t, time.Second).Unlock())
	})
}

func TestLongSiblingWaitLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, logged := newJournal()
		_, client := inBubble(t, logged, redlatch.WithCommandTimeout(3*time.Second))
		l := rlock.New(client, "orders:42")
		outer := take(t, l)
		ctx := outer.Context(t.Context())
		inner, err := l.Lock(ctx)
		require.NoError(t, err)
		short := await(ctx, l, rlock.WithWait(2900*time.Millisecond))
		short.ended(t, 3*time.Second)
		require.Zero(t, log.count("inner hold"))
		for range 3 {
			_, err = l.Lock(ctx, rlock.WithWait(time.Minute))
			require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		}
		require.Equal(t, 1, log.count("inner hold"))
		require.Equal(t, 1, log.count("orders:42"))
		require.Equal(t, 1, log.count("level=WARN", "use that hold's context"))
		require.NoError(t, inner.Unlock())
		require.NoError(t, outer.Unlock())
	})
}

func TestSiblingsRace(t *testing.T) {
	t.Parallel()
	srv, client := onShared(t)
	for kind, newLock := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			l := newLock(client, redistest.Key(t))
			for range testlevel.Rounds(3, 20) {
				outer := take(t, l)
				raceInside(t, l, outer)
				require.NoError(t, outer.Err())
				// Abandoned attempts are resolved and leave the slot.
				require.NoError(t, waitInner(l, outer).acquired(t, soon).Unlock())
				require.EqualValues(t, 1, countOf(t, l, outer))
				require.NoError(t, outer.Unlock())
				require.False(t, locked(t, srv, l.Name()))
			}
		})
	}
}

func raceInside(t *testing.T, l *rlock.Lock, outer *rlock.Hold) {
	t.Helper()
	var inside atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 10 {
				ctx, cancel := context.WithCancel(outer.Context(t.Context()))
				if (i+n)%3 == 0 {
					time.AfterFunc(time.Duration(i*n)*50*time.Microsecond, cancel)
				}
				inner, err := l.Lock(ctx)
				if err == nil {
					assert.EqualValues(t, 1, inside.Add(1), "two callers are inside")
					letOthersRun(10) // lets another caller enter, if possible
					inside.Add(-1)
					err = inner.Unlock()
				}
				if (i+n)%3 != 0 {
					assert.NoError(t, err, fmt.Sprint(i, n))
				}
				cancel()
			}
		})
	}
	wg.Wait()
}
