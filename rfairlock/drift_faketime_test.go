package rfairlock_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// A test TestMirrorX has the scenario X of Redisson's RedissonFairLockTest. Its scenarios of scripts
// are in internal/luasrc, of concurrency in internal/test/locksuite.

func TestMirrorTryLockNonDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t, noPoll())
		l := rfairlock.New(client, "job")
		hold := take(t, l)
		w := await(t.Context(), l, rlock.WithWait(3*time.Second))
		checkHeld(t, w.failed(t, soon))
		require.Equal(t, 3*time.Second, w.took)
		require.NoError(t, hold.Unlock())
		require.NoError(t, take(t, l).Unlock(), "the waiter has left")
		requireNoTrace(t, srv, "job")
	})
}

// In Redisson the late unlock succeeds because the lock is absent.
func TestMirrorExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t, noPoll())
		l := rfairlock.New(client, "job")
		hold := take(t, l, rlock.WithLease(2*time.Second))
		w := await(t.Context(), l)
		next := w.acquired(t, 2*time.Second+10*time.Millisecond)
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
		require.Equal(t, map[string]string{next.Owner().String(): "1"}, owners(t, srv, "job"))
		require.NoError(t, next.Unlock())
	})
}

func TestMirrorAutoExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t, noPoll())
		const lease = 6 * time.Second
		holder, err := redlatch.New(srv.Server.Dial, redlatch.WithWatchdogTimeout(lease))
		require.NoError(t, err)
		take(t, rfairlock.New(holder, "job"))
		w, _ := waitTogether(t, rfairlock.New(client, "job"), 1)
		require.NoError(t, holder.Close())
		require.True(t, locked(t, srv, "job"))
		require.NoError(t, w[0].acquired(t, lease+10*time.Millisecond).Unlock())
	})
}

func TestMirrorNameMapper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t, noPoll(), redlatch.WithNameMapper(redlatch.PrefixMapper("test::")))
		l := rfairlock.New(client, "job")
		hold := take(t, l)
		require.True(t, locked(t, srv, "test::job"))
		w, _ := waitTogether(t, l, 1)
		n, err := redis.Int(srv.Do(t, "EXISTS", "redisson_lock_queue:{test::job}", "redisson_lock_timeout:{test::job}"), nil)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Positive(t, listeners(t, srv, "test::job", queueOf(t, srv, "test::job")[0]))
		require.NoError(t, hold.Unlock())
		require.NoError(t, w[0].acquired(t, time.Second).Unlock())
		requireNoTrace(t, srv, "job")
	})
}

// requireNear bounds the deadlines.
func requireNear(t *testing.T, srv *redistest.MiniServer, bound func(place int) time.Duration) {
	t.Helper()
	queue, due := queueOf(t, srv, "job"), deadlinesOf(t, srv, "job")
	for i, owner := range queue { // one may have left in between
		require.LessOrEqual(t, time.Until(time.UnixMilli(due[owner])), bound(i), "place %d", i)
	}
}

// drift lets three callers, which do not start together, wait for at most wait, again and again. Only
// the waits of earlier waiters, and its own, may delay a waiter's deadline.
func drift(t *testing.T, wait, lease, stay time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// Heartbeats assume this wait for waiters of other processes.
		srv, client, _ := inBubble(t, redlatch.WithFairWaitTimeout(wait))
		bound := func(place int) time.Duration { return lease + wait*time.Duration(place+1) }
		l := rfairlock.New(client, "job")
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * wait / 3)
				for range testlevel.Rounds(12, 50) {
					hold, err := l.Lock(t.Context(), rlock.WithWait(wait), rlock.WithLease(lease))
					if err != nil {
						checkHeld(t, err)
						continue
					}
					time.Sleep(stay)
					assert.NoError(t, hold.Unlock())
				}
			})
		}
		done := make(chan struct{})
		go func() { defer close(done); wg.Wait() }()
		every := time.Duration(testlevel.Rounds(50, 10)) * time.Millisecond
		for running := true; running; {
			select {
			case <-done:
				running = false
			case <-time.After(every):
				requireNear(t, srv, bound)
			}
		}
		synctest.Wait()
		require.Empty(t, queueOf(t, srv, "job"))
		holdByHand(t, srv, "job", lease)
		await(t.Context(), l, rlock.WithWait(wait))
		synctest.Wait()
		require.Equal(t, lease+wait, time.Until(time.UnixMilli(deadlinesOf(t, srv, "job")[queueOf(t, srv, "job")[0]])))
	})
}

func TestMirrorWaitTimeoutDrift(t *testing.T) {
	drift(t, 500*time.Millisecond, 30*time.Second, 2*time.Second)
}

func TestMirrorLockAcquiredTimeoutDrift(t *testing.T) {
	drift(t, 3*time.Second, 30*time.Second, 100*time.Millisecond)
}

// Callers of several clients with short waits and long leases.
func TestU22DeadlinesDoNotDriftInAnHourOfChurn(t *testing.T) {
	testlevel.All(t, "an hour of fake time on a real server, 37 s")
	const lease, maxWait, callers = 30 * time.Second, 20 * time.Second, 12
	synctest.Test(t, func(t *testing.T) {
		srv, _, _ := inBubble(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var acquired, left int
		var mu sync.Mutex // guards acquired and left
		var wg sync.WaitGroup
		for range 3 {
			// Heartbeats assume this wait for waiters of other processes.
			client, _ := fakeClient(t, srv, redlatch.WithFairWaitTimeout(maxWait))
			for range callers / 3 {
				wg.Go(func() {
					for ctx.Err() == nil {
						ok := churnOnce(ctx, t, client, lease, maxWait)
						mu.Lock()
						if ok {
							acquired++
						} else {
							left++
						}
						mu.Unlock()
					}
				})
			}
		}
		for ctx.Err() == nil {
			time.Sleep(2900 * time.Millisecond)
			// Waiters may take less off when they leave than heartbeats assumed.
			requireNear(t, srv, func(int) time.Duration { return lease + maxWait*callers })
		}
		wg.Wait()
		synctest.Wait()
		t.Logf("acquired %d, left %d", acquired, left)
		require.Greater(t, acquired, 300)
		require.Greater(t, left, 300)
		require.Empty(t, queueOf(t, srv, "job"))
		require.Empty(t, deadlinesOf(t, srv, "job"))
	})
}

// churnOnce reports whether it acquired the lock.
func churnOnce(ctx context.Context, t *testing.T, client *redlatch.Client, lease, maxWait time.Duration) bool {
	t.Helper()
	hold, err := rfairlock.New(client, "job").Lock(ctx, rlock.WithWait(time.Millisecond+rand.N(maxWait)), rlock.WithLease(lease))
	if err != nil {
		return false
	}
	time.Sleep(rand.N(5 * time.Second))
	assert.NoError(t, hold.Unlock())
	return true
}
