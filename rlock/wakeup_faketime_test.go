package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/rlock"
)

func TestUnlockWakesAWaiterAtOnce(t *testing.T) {
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

// The key goes away without a word, as by DEL or by a message that got lost.
func TestLostWakeUpCostsAtMostThePollCap(t *testing.T) {
	for _, limit := range []time.Duration{time.Second, 4 * time.Second, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			srv, client := inBubble(t, redlatch.WithPollCap(limit))
			holdByHand(t, srv, "job", time.Hour)
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

// A lock without a time to live, which only something foreign can leave, is
// waited for without a busy loop.
func TestLockThatNeverExpiresIsPolledAtTheCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		srv.Do(t, "HSET", "job", foreignOwner, 1)
		w := await(t.Context(), rlock.New(client, "job"))
		time.Sleep(time.Hour + time.Second)
		w.stillWaits(t)
		srv.Do(t, "DEL", "job")
		began := time.Now()
		require.NoError(t, w.acquired(t, time.Minute).Unlock())
		require.LessOrEqual(t, time.Since(began), 10*time.Second)
	})
}

func TestNoiseOnTheChannelIsNoUnlock(t *testing.T) {
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
		require.Equal(t, 10*time.Second, w.took)
	})
}

// A waiter whose attempts take their time reads few of the messages that flood
// its channel. Other listeners on the same connection do not wait for it.
func TestU27FloodedWaiterDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const latency = 100 * time.Millisecond
		w, client := wired(t, latency)
		holdByHand(t, w.srv, "flooded", forever)
		holdByHand(t, w.srv, "quiet", forever)
		busy, calm := await(t.Context(), rlock.New(client, "flooded")), await(t.Context(), rlock.New(client, "quiet"))
		time.Sleep(2 * time.Second)
		for range 100 {
			w.srv.Do(t, "PUBLISH", codec.LockChannel("flooded"), codec.MessageUnlock)
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

func TestU19CancelledWaitersLeaveTheOthersTheirSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t, redlatch.WithPollCap(time.Hour))
		hold := take(t, rlock.New(client, "job"))
		ctx, cancel := context.WithCancel(t.Context())
		leavers := []*waiter{await(ctx, rlock.New(client, "job")), await(ctx, rlock.New(client, "job"))}
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

func TestU20FiniteWaitOutlastsTheLeaseOfADeadHolder(t *testing.T) {
	for _, lease := range []time.Duration{time.Second, 3 * time.Second, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			srv, client := inBubble(t, noPoll())
			holdByHand(t, srv, "job", lease)
			w := await(t.Context(), rlock.New(client, "job"), rlock.WithWait(lease+5*time.Second))
			hold := w.acquired(t, lease+5*time.Second)
			require.InDelta(t, lease, w.took, float64(2*time.Millisecond))
			require.NoError(t, hold.Unlock())
		})
	}
}
