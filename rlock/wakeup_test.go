package rlock_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// promptly bounds a wake-up; a poll would take thirty seconds.
const promptly = soon

// The unlock happens at each moment between the first attempt, the subscription and the second attempt.
func TestU14UnlockDuringSubscribeIsNotMissed(t *testing.T) {
	t.Parallel()
	for moment := range 20 {
		synctest.Test(t, func(t *testing.T) {
			lan, client := wired(t, time.Millisecond, noPoll())
			loadScripts(t, client)
			hold := take(t, rlock.New(fakeClient(t, lan.srv), "job"))
			w := await(t.Context(), rlock.New(client, "job"))
			time.Sleep(time.Duration(moment) * time.Millisecond / 2)
			require.NoError(t, hold.Unlock())
			require.NoError(t, w.acquired(t, time.Second).Unlock())
		})
	}
}

func TestU16WaitersAcquireAfterLosingSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 0, noPoll())
		for _, free := range []bool{false, true} { // in the gap, or after it
			hold := take(t, rlock.New(fakeClient(t, w.srv), "job"))
			var queue []*waiter
			for range 5 {
				queue = append(queue, await(t.Context(), rlock.New(client, "job")))
			}
			time.Sleep(time.Second)
			w.reset()
			if free {
				time.Sleep(time.Second)
			}
			require.NoError(t, hold.Unlock())
			unlockEach(t, queue...)
		}
	})
}

// unlockEach unlocks each waiter's hold, in the order in which they get the lock.
func unlockEach(t *testing.T, queue ...*waiter) {
	t.Helper()
	for len(queue) > 0 {
		until(t, promptly, "no waiter got the lock", func() bool {
			for i, w := range queue {
				select {
				case <-w.done:
					require.NoError(t, w.err)
					require.NoError(t, w.hold.Unlock())
					queue = slices.Delete(queue, i, i+1)
					return true
				default:
				}
			}
			return false
		})
	}
}

func TestU17WaitersShareTwoConnections(t *testing.T) {
	t.Parallel()
	n := testlevel.Rounds(100, 3000)
	srv := redistest.Start(t)
	holders, waiters := connect(t, srv.URL()), connect(t, srv.URL(), noPoll())
	before := srv.Clients(t)
	holds, queue := make([]*rlock.Hold, n), make([]*waiter, n)
	for i := range n {
		name := redistest.Key(t)
		holds[i] = take(t, rlock.New(holders, name))
		queue[i] = await(t.Context(), rlock.New(waiters, name))
	}
	until(t, soon, "subscriptions", func() bool { return len(srv.Channels(t)) == n })
	require.Equal(t, 2, before, "a command connection for each client")
	require.Equal(t, 3, srv.Clients(t), "one more, for all subscriptions")
	for _, w := range queue {
		w.stillWaits(t)
	}
	for _, h := range holds {
		require.NoError(t, h.Unlock())
	}
	for _, w := range queue {
		require.NoError(t, w.acquired(t, soon).Unlock())
	}
	requireNoTrace(t, srv)
}

// requireNoTrace checks that no subscriptions or keys are left.
func requireNoTrace(t *testing.T, srv *redistest.Server) {
	t.Helper()
	until(t, soon, "subscriptions are left", func() bool { return len(srv.Channels(t)) == 0 })
	until(t, soon, "keys are left", func() bool { return srv.Do(t, "DBSIZE") == int64(0) })
}

// Not parallel: it counts goroutines.
func TestU18ContendedCyclesLeakNothing(t *testing.T) {
	srv := redistest.Start(t)
	// There are two clients, because callers of one client share a local queue.
	clients := []*redlatch.Client{connect(t, srv.URL(), noPoll()), connect(t, srv.URL(), noPoll())}
	for _, client := range clients { // both connections and the watchdog are there
		warm := rlock.New(client, "warm-up")
		holdByHand(t, srv, "warm-up", forever)
		w := await(t.Context(), warm)
		awaitWaiters(t, srv, "warm-up")
		freeByHand(t, srv, "warm-up")
		require.NoError(t, w.acquired(t, soon).Unlock())
		requireNoTrace(t, srv)
	}
	baseline := runtime.NumGoroutine()

	churn(t, srv, clients, testlevel.Rounds(500, 2400))
	for _, client := range clients {
		require.Zero(t, engine.EngineOf(client).Watchdog.Len(), "a released lock is renewed")
	}
	requireNoTrace(t, srv)
	until(t, soon, "more goroutines than before", func() bool { return runtime.NumGoroutine() <= baseline })
}

func letOthersRun(times int) {
	for range times {
		runtime.Gosched()
	}
}

// churn locks and unlocks a few names, which are first held until each client is waiting for each
// of them. After that, many callers stop waiting early.
func churn(t *testing.T, srv *redistest.Server, clients []*redlatch.Client, cycles int) {
	t.Helper()
	const workers = 20
	names := []string{"churn-0", "churn-1", "churn-2"}
	for _, name := range names {
		holdByHand(t, srv, name, forever)
	}
	var acquired, left atomic.Int64
	var wg sync.WaitGroup
	for i := range workers {
		client := clients[i%len(clients)]
		wg.Go(func() {
			for n := range cycles / workers {
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(6*time.Millisecond))
				name := names[rand.IntN(len(names))]
				if n == 0 {
					ctx, name = t.Context(), names[i/len(clients)%len(names)]
				}
				hold, err := rlock.New(client, name).Lock(ctx)
				if err == nil {
					acquired.Add(1)
					letOthersRun(rand.N(3))
					wg.Go(func() { assert.NoError(t, hold.Unlock()) })
					assert.NoError(t, hold.Unlock())
				} else {
					left.Add(1)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
				}
				cancel()
			}
		})
	}
	for _, name := range names {
		until(t, soon, "each client waits", func() bool { return listeners(t, srv, name) == int64(len(clients)) })
	}
	for _, name := range names {
		freeByHand(t, srv, name)
	}
	wg.Wait()
	t.Logf("acquired %d, left early %d", acquired.Load(), left.Load())
}
