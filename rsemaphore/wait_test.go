package rsemaphore_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
)

// Redisson's lost wake-up S1.
func TestReleaseOfThreePermitsWakesThreeWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, open := bubble(t, 3)
		sem, other := open(noPoll()), open(noPoll())
		three := take(t, sem, 3)
		waiters := []<-chan acquired{later(within(t), other, 1), later(within(t), other, 1), later(within(t), other, 1)}
		release(t, three)
		for _, w := range waiters {
			release(t, must(t, w))
		}
		whole(t, sem, 3)
	})
}

// Redisson's lost wake-up S2.
func TestLargeWaiterPassesWakeUpToSmallWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, open := bubble(t, 2)
		sem, other := open(noPoll()), open(noPoll())
		one, two := take(t, sem, 1), take(t, sem, 1)
		big := later(within(t), other, 2)
		small := later(within(t), other, 1)
		waits(t, small)
		release(t, one)
		h := must(t, small)
		waits(t, big)
		release(t, h, two)
		release(t, must(t, big))
		whole(t, sem, 2)
	})
}

func TestSmallCallerBypassesLargeWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, open := bubble(t, 3)
		sem := open(noPoll())
		two := take(t, sem, 2)
		big := later(within(t), sem, 2)
		release(t, take(t, sem, 1))
		h, err := sem.TryAcquire(within(t), 1)
		require.NoError(t, err)
		waits(t, big)
		release(t, h, two)
		release(t, must(t, big))
		whole(t, sem, 3)
	})
}

func TestCallersOfClientServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, open := bubble(t, 1)
		sem := open(noPoll())
		h := take(t, sem, 1)
		const callers = 20
		order := make(chan int, callers)
		for i := range callers {
			go func() {
				h, err := sem.Acquire(within(t), 1)
				if assert.NoError(t, err) {
					order <- i
					assert.NoError(t, h.Release())
				}
			}()
			synctest.Wait()
		}
		release(t, h)
		for i := range callers {
			require.Equal(t, i, <-order)
		}
		whole(t, sem, 1)
	})
}

// The permit returns before the first attempt, the subscription, or the second attempt, or after it.
func TestReleaseDuringWaitSetupIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, open := bubble(t, 2)
		holder, other := open(), open(noPoll())
		for round := range testlevel.Rounds(30, 500) {
			h := take(t, holder, 2)
			call := func() (*rsemaphore.Hold, error) { return other.Acquire(t.Context(), 1) }
			a, b := callers.Later(call), callers.Later(call)
			for range round {
				runtime.Gosched()
			}
			release(t, h)
			release(t, must(t, a), must(t, b))
		}
	})
}

func TestCanceledWaitersKeepOthersNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, open := bubble(t, 2)
		sem, other := open(noPoll()), open(noPoll())
		for range testlevel.Rounds(10, 100) {
			h := take(t, sem, 2)
			ctx, cancel := context.WithCancel(t.Context())
			var leave []<-chan acquired
			for range 3 {
				leave = append(leave, later(ctx, other, 2))
			}
			stay := later(t.Context(), other, 1)
			go cancel()
			release(t, h)
			for _, l := range leave {
				if a := <-l; a.Err == nil {
					release(t, a.Hold)
				} else {
					require.ErrorIs(t, a.Err, context.Canceled)
				}
			}
			release(t, must(t, stay))
		}
		whole(t, sem, 2)
	})
}

func TestReconnectRecoversMissedMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, sem, far, _, _ := inCounter(t, 2)
		require.NoError(t, sem.Acquire(t.Context(), 2))
		a, b := taking(t.Context(), far, 1), taking(t.Context(), far, 1)
		srv.Do(t, "INCRBY", "job", 2) // and the message is lost
		time.Sleep(time.Minute)
		require.Empty(t, a)
		srv.DropSubscribers()
		time.Sleep(promptly)
		require.Len(t, a, 1)
		require.Len(t, b, 1)
	})
}

func TestCloseAndShutdownCancelWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, open := bubble(t, 1)
		sem := open()
		h := take(t, sem, 1)
		for _, end := range []func(c *redlatch.Client) error{
			(*redlatch.Client).Close, func(c *redlatch.Client) error { return c.Shutdown(t.Context()) },
		} {
			client := callers.InProcess(t, srv, noPoll())
			far := rsemaphore.NewExpirable(client, "job")
			all := []<-chan acquired{later(t.Context(), far, 1), later(t.Context(), far, 1), later(t.Context(), far, 1)}
			require.NoError(t, end(client))
			for _, w := range all {
				require.ErrorIs(t, (<-w).Err, redlatch.ErrClosed)
			}
			_, err := far.Acquire(t.Context(), 1)
			require.ErrorIs(t, err, redlatch.ErrClosed)
		}
		release(t, h)
		whole(t, sem, 1)
	})
}

func TestLostReplyResolvedByPermitIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, open := bubble(t, 3)
		tr, client := callers.Stalling(t, srv)
		sem, far := open(), rsemaphore.NewExpirable(client, "job")
		release(t, take(t, far, 1)) // the server knows the scripts
		synctest.Wait()
		srv.LoseReplies(1)
		_, err := far.Acquire(t.Context(), 2)
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		whole(t, sem, 3)
		// A release whose reply is lost is retried.
		h := take(t, far, 2)
		srv.LoseReplies(1)
		release(t, h)
		whole(t, sem, 3)
		// A late grant is released.
		tr.Mute(true)
		ctx, cancel := context.WithCancel(t.Context())
		came := later(ctx, far, 2)
		cancel()
		require.ErrorIs(t, (<-came).Err, redlatch.ErrUncertain)
		counts(t, sem, 1, 3)
		tr.Mute(false)
		whole(t, sem, 3)
	})
}

// Java's acquire(365_000, TimeUnit.DAYS) has a lease beyond time.Duration.
func TestWaiterForVeryLongLeaseDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		srv, open := bubble(t, 0)
		sem := open(noPoll(), redlatch.WithObserver(redlatch.Observer{
			Attempted: func(context.Context, redlatch.Attempted) { asked.Add(1) },
		}))
		ends := time.Now().UnixMilli() + 365_000*24*time.Hour.Milliseconds()
		srv.Do(t, "ZADD", "{job}:timeout", ends, "0123456789abcdef")
		_, err := sem.Acquire(t.Context(), 1, rlock.WithWait(time.Hour))
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.Less(t, asked.Load(), int64(10))
		in, err := sem.Inspect(t.Context())
		require.NoError(t, err)
		require.Greater(t, in.Permits[0].Left, 250*365*24*time.Hour)
	})
}

// The process that holds the permits dies.
func TestPermitsOfKilledProcessExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 6 * time.Second
		srv, open := bubble(t, 3)
		tr, client := callers.Stalling(t, srv)
		take(t, rsemaphore.NewExpirable(client, "job"), 2, rlock.WithWatchdog(lease))
		sem, other := open(), open()
		time.Sleep(2 * lease)
		counts(t, sem, 1, 3) // they are renewed
		last := take(t, sem, 1)
		waiters := []<-chan acquired{later(t.Context(), sem, 1), later(t.Context(), other, 1), later(t.Context(), other, 1)}
		tr.Stall(true)
		time.Sleep(lease/2 - time.Millisecond)
		for _, w := range waiters {
			require.Empty(t, w)
		}
		time.Sleep(lease)
		came, rest := []*rsemaphore.Hold{last}, []<-chan acquired(nil)
		for _, w := range waiters {
			if len(w) > 0 {
				came = append(came, must(t, w))
			} else {
				rest = append(rest, w)
			}
		}
		require.Len(t, rest, 1)
		release(t, came...)
		release(t, must(t, rest[0]))
		whole(t, sem, 3)
	})
}
