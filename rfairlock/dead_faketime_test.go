package rfairlock_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// evictions collects what clients report.
type evictions struct {
	mu  sync.Mutex // guards all
	all []redlatch.Evicted
}

func (ev *evictions) observer() redlatch.Option {
	return redlatch.WithObserver(redlatch.Observer{Evicted: func(e redlatch.Evicted) {
		ev.mu.Lock()
		defer ev.mu.Unlock()
		ev.all = append(ev.all, e)
	}})
}

func (ev *evictions) reported() []redlatch.Evicted {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	return slices.Clone(ev.all)
}

// requireOwners checks which owners were evicted. All of them must belong to the same library, and
// either all or none of them must have been subscribed.
func (ev *evictions) requireOwners(t *testing.T, isRedlatch, wasSubscribed bool, want ...string) {
	t.Helper()
	synctest.Wait() // the waiter may be notified before the report
	var owners []string
	for _, e := range ev.reported() {
		require.Equal(t, "job", e.Name)
		require.Equal(t, isRedlatch, e.IsRedlatch)
		require.Equal(t, wasSubscribed, e.WasSubscribed)
		owners = append(owners, e.Owner)
	}
	require.Equal(t, want, owners)
}

// The owners belong to a dead client of this library.
func TestU13DeadRedlatchWaitersEvictedSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ev := &evictions{}
		srv := redistest.Mini(t, embedded.WithInProcess())
		l := rfairlock.New(hostOf(t, srv, 0, ev.observer()), "job")
		hold := take(t, l, rlock.WithLease(time.Hour))
		id, err := uuid.NewV7()
		require.NoError(t, err)
		var dead []string
		for i := range 50 {
			dead = append(dead, codec.NewOwner(id, int64(i)).String())
			queueByHand(t, srv, "job", dead[i], time.Now().Add(2*time.Hour+time.Duration(i)*fairWait))
		}
		w := await(t.Context(), l)
		synctest.Wait()
		require.NoError(t, hold.Unlock())
		w.acquired(t, 25*time.Second)
		ev.requireOwners(t, true, false, dead...)
	})
}

func TestU13UnsubscribedRedissonWaiterEvictedAfter30s(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ev := &evictions{}
		srv := redistest.Mini(t, embedded.WithInProcess())
		queueByHand(t, srv, "job", foreignHead, time.Now().Add(time.Hour))
		began := time.Now()
		hold, err := rfairlock.New(hostOf(t, srv, 0, ev.observer()), "job").Lock(t.Context())
		require.NoError(t, err)
		took, grace := time.Since(began), 30*time.Second
		require.GreaterOrEqual(t, took, grace)
		require.LessOrEqual(t, took, grace+2*time.Second)
		require.NoError(t, hold.Unlock())
		ev.requireOwners(t, false, false, foreignHead)
	})
}

func TestWaitersOfDeadProcessEvicted(t *testing.T) {
	t.Parallel()
	for name, free := range map[string]func(t *testing.T, srv *redistest.MiniServer){
		"held when it dies": func(t *testing.T, srv *redistest.MiniServer) {
			t.Helper()
			time.Sleep(time.Minute)
			freeByHand(t, srv, "job")
		},
		"released to it": func(t *testing.T, srv *redistest.MiniServer) { t.Helper(); freeByHand(t, srv, "job") },
		"expired":        func(t *testing.T, srv *redistest.MiniServer) { t.Helper(); srv.Do(t, "DEL", "job") },
	} {
		for _, deep := range []int{1, testlevel.Rounds(10, 50)} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					ev := &evictions{}
					srv := redistest.Mini(t, embedded.WithInProcess())
					holdByHand(t, srv, "job", time.Hour)
					p := newProcess(t, srv)
					waitTogether(t, rfairlock.New(p.client, "job"), deep)
					dead := queueOf(t, srv, "job")
					lives, _ := waitTogether(t, rfairlock.New(hostOf(t, srv, 0, ev.observer()), "job"), 1)
					p.disconnect(true)
					free(t, srv)
					freed := time.Now()
					require.NoError(t, lives[0].acquired(t, time.Minute).Unlock())
					require.LessOrEqual(t, time.Since(freed), 15*time.Second)
					ev.requireOwners(t, true, false, dead...)
					require.Empty(t, srv.Do(t, "KEYS", "*job*"))
				})
			})
		}
	}
}

// passOn acquires and releases a lock for its first waiter, ARGV[1], as a Redisson client does.
const passOn = `if redis.call('EXISTS', KEYS[1]) == 1 or redis.call('LINDEX', KEYS[2], 0) ~= ARGV[1] then
    return 0
end
redis.call('LPOP', KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[1])
local head = redis.call('LINDEX', KEYS[2], 0)
if head then
    redis.call('PUBLISH', KEYS[4] .. ':' .. head, '0')
end
return 1`

// foreignWaiter queues a Redisson waiter. If it subscribes, it passes the lock on.
func foreignWaiter(t *testing.T, srv *redistest.MiniServer, owner string, subscribes bool) (leave func()) {
	t.Helper()
	queueByHand(t, srv, "job", owner, time.Now().Add(2*time.Hour+time.Duration(len(queueOf(t, srv, "job")))*fairWait))
	if !subscribes {
		return func() {}
	}
	done := make(chan struct{})
	t.Cleanup(func() { <-done }) // its connection is closed before
	conn, acts := redis.PubSubConn{Conn: srv.Dial(t)}, srv.Dial(t)
	require.NoError(t, conn.Subscribe(protocol.OwnerChannel("job", owner)))
	go func() {
		defer close(done)
		for {
			switch conn.Receive().(type) {
			case error:
				return
			case redis.Message:
				_, _ = acts.Do("EVAL", passOn, 4, "job", codec.QueueKey("job"), codec.TimeoutKey("job"), codec.LockChannel("job"), owner)
			}
		}
	}()
	return func() { _ = conn.Close() }
}

// Two dead Redisson waiters are first in the queue, followed by a live one and a waiter of this
// library.
func TestU13DeadWaitersDelayOthersBriefly(t *testing.T) {
	t.Parallel()
	const alive = "8f14e45f-ceea-467f-a0d2-4f1c1b8a7e11:10"
	for name, c := range map[string]struct {
		subscribed bool          // before they die
		held       time.Duration // after they die
		bound      time.Duration
	}{
		"subscribed":                  {true, 0, 35 * time.Second},
		"never subscribed":            {false, 0, 65 * time.Second},
		"dead while the lock is held": {false, 70 * time.Second, 0},
	} {
		for _, oursFirst := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					ev := &evictions{}
					srv := redistest.Mini(t, embedded.WithInProcess())
					holdByHand(t, srv, "job", time.Hour)
					dead := []string{foreignHead, foreignTail}
					var dies []func()
					for _, owner := range dead {
						dies = append(dies, foreignWaiter(t, srv, owner, c.subscribed))
					}
					if !oursFirst {
						foreignWaiter(t, srv, alive, true)
					}
					ours, _ := waitTogether(t, rfairlock.New(hostOf(t, srv, 0, ev.observer()), "job"), 1)
					if oursFirst {
						foreignWaiter(t, srv, alive, true)
					}
					time.Sleep(20 * time.Second) // subscribers are counted
					for _, die := range dies {
						die()
					}
					time.Sleep(c.held)
					freeByHand(t, srv, "job")
					freed := time.Now()
					require.NoError(t, ours[0].acquired(t, 2*time.Minute).Unlock())
					require.LessOrEqual(t, time.Since(freed), c.bound)
					ev.requireOwners(t, false, c.subscribed, dead...)
					require.Empty(t, queueOf(t, srv, "job"))
				})
			})
		}
	}
}

// The lock is freed without a message, which a live Redisson waiter needs.
func TestIdleHeadOfFreeLockNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ev := &evictions{}
		srv := redistest.Mini(t, embedded.WithInProcess())
		holdByHand(t, srv, "job", time.Hour)
		foreignWaiter(t, srv, foreignHead, true)
		ours, _ := waitTogether(t, rfairlock.New(hostOf(t, srv, 0, ev.observer()), "job"), 1)
		time.Sleep(time.Minute)
		srv.Do(t, "DEL", "job")
		require.NoError(t, ours[0].acquired(t, 15*time.Second).Unlock())
		require.Empty(t, ev.reported())
	})
}
