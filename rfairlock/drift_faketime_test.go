package rfairlock_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
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

func TestNameMapperRenamesQueueAndChannels(t *testing.T) {
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

// areNear checks bounds of the deadlines.
func areNear(t *testing.T, srv *redistest.MiniServer, bound func(place int) time.Duration) bool {
	t.Helper()
	queue, due := queueOf(t, srv, "job"), deadlinesOf(t, srv, "job")
	for i, owner := range queue { // one may have left in between
		if !assert.LessOrEqual(t, time.Until(time.UnixMilli(due[owner])), bound(i), "place %d", i) {
			return false
		}
	}
	return true
}

// Callers that start at different times wait briefly and repeatedly. Only its own wait and those of earlier
// waiters may delay a waiter's deadline.
func TestU22DeadlinesDoNotDrift(t *testing.T) {
	t.Parallel()
	const lease = 30 * time.Second
	for name, c := range map[string]struct {
		clients, callers int
		wait, stay       time.Duration
		random           bool // the wait and the stay are at most these
		over             time.Duration
	}{
		"waits time out":        {1, 3, 500 * time.Millisecond, time.Second, false, 15 * time.Second},
		"waiters acquire":       {1, 3, 3 * time.Second, 100 * time.Millisecond, false, 2 * time.Second},
		"several clients, both": {3, 12, 20 * time.Second, 5 * time.Second, true, time.Duration(testlevel.Rounds(1, 15)) * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv, _, _ := inBubble(t)
				var acquired, left atomic.Int64
				over := time.Now().Add(c.over)
				var wg sync.WaitGroup
				var locks []*rlock.Lock
				for range c.clients { // heartbeats assume this wait for waiters in other processes
					client, _ := fakeClient(t, srv, redlatch.WithFairWaitTimeout(c.wait))
					locks = append(locks, rfairlock.New(client, "job"))
				}
				for i := range c.callers {
					wg.Go(func() {
						time.Sleep(time.Duration(i) * c.wait / 3)
						for time.Now().Before(over) {
							wait, stay := c.wait, c.stay
							if c.random {
								wait, stay = time.Millisecond+rand.N(wait), rand.N(stay)
							}
							hold, err := locks[i%c.clients].Lock(t.Context(), rlock.WithWait(wait), rlock.WithLease(lease))
							if err != nil {
								left.Add(1)
								checkHeld(t, err)
								continue
							}
							acquired.Add(1)
							time.Sleep(stay)
							assert.NoError(t, hold.Unlock())
						}
					})
				}
				bound := func(place int) time.Duration {
					if c.random { // waiters may take less off when they leave than heartbeats assumed
						place = c.callers
					}
					return lease + c.wait*time.Duration(place+1)
				}
				for time.Now().Before(over) && areNear(t, srv, bound) {
					time.Sleep(c.over / 50)
				}
				wg.Wait()
				synctest.Wait()
				t.Logf("acquired %d, left %d", acquired.Load(), left.Load())
				require.Greater(t, acquired.Load(), int64(10))
				requireNoneQueued(t, srv, "job")
				holdByHand(t, srv, "job", lease)
				waitTogether(t, locks[0], 1, rlock.WithWait(c.wait))
				due := time.UnixMilli(deadlinesOf(t, srv, "job")[queueOf(t, srv, "job")[0]])
				require.WithinDuration(t, time.Now().Add(lease+c.wait), due, time.Millisecond)
			})
		})
	}
}
