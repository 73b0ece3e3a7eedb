package rlock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

func TestUnlockWakesWaiterImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		hold := take(t, rlock.New(client, "job"))
		here, there := await(t.Context(), rlock.New(client, "job")), await(t.Context(), rlock.New(fakeClient(t, srv), "job"))
		time.Sleep(3 * time.Second)
		unlocked := time.Now()
		require.NoError(t, hold.Unlock())
		synctest.Wait()
		first, second := here, there
		select {
		case <-there.done:
			first, second = there, here
		default:
		}
		require.NoError(t, first.acquired(t, soon).Unlock())
		require.NoError(t, second.acquired(t, soon).Unlock())
		require.Zero(t, time.Since(unlocked))
	})
}

func TestLostNotificationDelaysAtMostPollCap(t *testing.T) {
	for _, limit := range []time.Duration{time.Second, 4 * time.Second, 10 * time.Second} {
		for _, expires := range []string{"PEXPIRE", "PERSIST"} {
			synctest.Test(t, func(t *testing.T) {
				srv, client := inBubble(t, redlatch.WithPollCap(limit))
				holdByHand(t, srv, "job", time.Hour)
				if expires == "PERSIST" {
					srv.Do(t, expires, "job")
				}
				w := await(t.Context(), rlock.New(client, "job"))
				time.Sleep(limit*5/2 + limit/10)
				w.stillWaits(t)
				srv.Do(t, "DEL", "job")
				began := time.Now()
				hold := w.acquired(t, time.Minute)
				require.LessOrEqual(t, time.Since(began), limit)
				require.Positive(t, time.Since(began))
				require.NoError(t, hold.Unlock())
			})
		}
	}
}

func TestUnknownMessagesDoNotWakeWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		holdByHand(t, srv, "job", time.Minute)
		w := await(t.Context(), rlock.New(client, "job"), rlock.WithWait(10*time.Second))
		for range 9 {
			time.Sleep(time.Second)
			for _, noise := range []string{"0", "1", "-1", "", "unlock"} {
				srv.Do(t, "PUBLISH", codec.LockChannel("job"), noise)
			}
		}
		w.ended(t, time.Minute)
		checkHeld(t, w.err)
		require.Equal(t, 10*time.Second, w.took())
	})
}

func TestU27FloodedWaiterDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const latency = 100 * time.Millisecond
		w, client := wired(t, latency)
		holdByHand(t, w.srv, "flooded", forever)
		holdByHand(t, w.srv, "quiet", forever)
		busy, calm := await(t.Context(), rlock.New(client, "flooded")), await(t.Context(), rlock.New(client, "quiet"))
		time.Sleep(2 * time.Second)
		for range 100 {
			w.srv.Do(t, "PUBLISH", codec.LockChannel("flooded"), protocol.MessageUnlock)
		}
		freed := time.Now()
		freeByHand(t, w.srv, "quiet")
		hold := calm.acquired(t, soon)
		require.LessOrEqual(t, time.Since(freed), 3*latency)
		require.NoError(t, hold.Unlock())
		freeByHand(t, w.srv, "flooded")
		require.NoError(t, busy.acquired(t, soon).Unlock())
	})
}

func TestU19CanceledWaitersKeepSharedSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t, redlatch.WithPollCap(time.Hour))
		hold := take(t, rlock.New(client, "job"))
		ctx, cancel := context.WithCancel(t.Context())
		listens := rlock.WithOwner(newOwner()) // not in a local queue
		leavers := []*waiter{
			await(ctx, rlock.New(client, "job")), await(ctx, rlock.New(client, "job")), await(ctx, rlock.New(client, "job"), listens),
		}
		stayer := await(t.Context(), rlock.New(client, "job"))
		time.Sleep(time.Second)
		cancel()
		for _, w := range leavers {
			w.ended(t, soon)
			require.ErrorIs(t, w.err, context.Canceled)
			require.ErrorIs(t, w.err, redlatch.ErrNotAcquired)
		}
		unlocked := time.Now()
		require.NoError(t, hold.Unlock())
		require.NoError(t, stayer.acquired(t, soon).Unlock())
		require.Zero(t, time.Since(unlocked))
	})
}

func TestU20FiniteWaitOutlastsDeadHoldersLease(t *testing.T) {
	for _, lease := range []time.Duration{time.Second, 3 * time.Second, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			srv, client := inBubble(t, noPoll())
			holdByHand(t, srv, "job", lease)
			w := await(t.Context(), rlock.New(client, "job"), rlock.WithWait(lease+5*time.Second))
			hold := w.acquired(t, lease+5*time.Second)
			require.InDelta(t, lease, w.took(), float64(2*time.Millisecond))
			require.NoError(t, hold.Unlock())
		})
	}
}

func TestLocalWaitersTakeTurnsWithOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, calls, client := atPasses(t)
		l := rlock.New(client, "lock")
		first := take(t, l)
		goroutines, rounds := testlevel.Rounds(60, 400), 2
		var r criticalSection
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() { r.visitLocked(t, l, rounds) })
		}
		synctest.Wait()
		requests := func() int { return calls.count("acquire") + calls.count("pass") + calls.count("release") }
		before := requests()
		require.NoError(t, first.Unlock())
		wg.Wait()
		require.Equal(t, goroutines*rounds, r.entered)
		each := float64(requests()-before) / float64(goroutines*rounds)
		t.Logf("requests per acquisition %.3f", each)
		require.Less(t, each, 1.5, "two requests per release")
	})
}

func TestU29ProcessPollsOncePerCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		calls := &faketransport.Stalling{Transport: redigoTransport(srv)}
		client := over(t, calls)
		holdByHand(t, srv, "lock", time.Hour)
		l := rlock.New(client, "lock")
		ctx, cancel := context.WithTimeout(t.Context(), 65*time.Second)
		defer cancel()
		var waiters []*waiter
		for range 1000 {
			waiters = append(waiters, await(ctx, l))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		before := calls.Started()
		time.Sleep(50 * time.Second)
		synctest.Wait()
		require.LessOrEqual(t, calls.Started()-before, int64(5), "one attempt per poll cap")
		for _, w := range waiters {
			<-w.done
			require.ErrorIs(t, w.err, redlatch.ErrNotAcquired)
			require.ErrorIs(t, w.err, context.DeadlineExceeded)
		}
	})
}

func TestLocalQueueIsFIFO(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t)
		l := rlock.New(client, "lock")
		hold := take(t, l)
		var order []int
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				h, err := l.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i) // the lock guards it
				_ = h.Unlock()
			})
			synctest.Wait()
		}
		require.NoError(t, hold.Unlock())
		wg.Wait()
		require.True(t, slices.IsSorted(order), "%v", order)
		require.Len(t, order, 50)
	})
}

func TestMaxWaitersRejectsImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t, redlatch.WithMaxWaiters(2))
		l := rlock.New(client, "lock")
		hold := take(t, l)
		a, b := await(t.Context(), l), await(t.Context(), l)
		synctest.Wait()
		_, err := l.Lock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.ErrorContains(t, err, "WithMaxWaiters")
		require.NoError(t, hold.Unlock())
		unlockEach(t, a, b)
	})
}

// The next caller waits until the abandoned attempt is released.
func TestNextWaiterContinuesAfterUncertainCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const latency = 100 * time.Millisecond
		_, client := wired(t, latency)
		l := rlock.New(client, "lock")
		require.NoError(t, take(t, l).Unlock()) // the scripts are known
		ctx, cancel := context.WithCancel(t.Context())
		leaver := await(ctx, l)
		synctest.Wait() // its attempt is in flight
		next := await(t.Context(), l)
		synctest.Wait()
		cancel()
		require.ErrorIs(t, leaver.failed(t, atOnce), redlatch.ErrUncertain)
		hold := next.acquired(t, soon)
		require.Equal(t, 3*latency, next.took(), "the abandoned acquire, its release, and an acquire")
		require.NoError(t, hold.Unlock())
	})
}
