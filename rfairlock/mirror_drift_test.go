package rfairlock_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// discrete is a fair lock whose scripts are run one by one, on fake time.
type discrete struct {
	*testing.T
	srv         *redistest.MiniServer
	wait, lease time.Duration
}

// jobLock fills calls about the lock called job.
var jobLock = luasrc.Fair{
	Key: "job", Queue: codec.QueueKey("job"), Timeouts: codec.TimeoutKey("job"), Channel: codec.LockChannel("job"),
	Publish: "PUBLISH",
}

// run runs the script that fill asks for, with the time of now.
func (d discrete) run(fill func(c *transport.Call, now any)) any {
	d.Helper()
	var c transport.Call
	fill(&c, time.Now().UnixMilli())
	return d.srv.Do(d.T, "EVAL", append([]any{c.Script.Text(), c.NumKeys}, c.Args...)...)
}

// taking fills in one of the calls that take the lock.
type taking func(l *luasrc.Fair, c *transport.Call, now, owner, wait, lease any)

// acquire returns how long a thread is to wait, or that it has the lock.
func (d discrete) acquire(take taking, thread int) (left time.Duration, acquired bool) {
	d.Helper()
	reply := d.run(func(c *transport.Call, now any) {
		take(&jobLock, c, now, "client:"+strconv.Itoa(thread), d.wait.Milliseconds(), d.lease.Milliseconds())
	})
	refusal, refused := reply.([]any)
	if !refused {
		return 0, true
	}
	ms, ok := refusal[0].(int64)
	require.True(d, ok)
	return time.Duration(ms) * time.Millisecond, false
}

// waits holds that a thread that asks is to wait for so long.
func (d discrete) waits(thread int, want time.Duration) {
	d.Helper()
	left, acquired := d.acquire((*luasrc.Fair).Acquire, thread)
	require.False(d, acquired)
	require.Equal(d, want, left)
}

// due holds that a thread counts as dead after so long.
func (d discrete) due(thread int, want time.Duration) {
	d.Helper()
	deadline := deadlinesOf(d, d.srv, "job")["client:"+strconv.Itoa(thread)]
	require.Equal(d, want, time.Until(time.UnixMilli(deadline)), "thread %d", thread)
}

func (d discrete) acquires(take taking, thread int) {
	d.Helper()
	_, acquired := d.acquire(take, thread)
	require.True(d, acquired)
}

func (d discrete) release(thread int) {
	d.Helper()
	reply := d.run(func(c *transport.Call, now any) {
		jobLock.Release(c, now, "client:"+strconv.Itoa(thread), d.lease.Milliseconds(), 0)
	})
	require.Equal(d, int64(1), reply)
}

func (d discrete) givesUp(thread int) {
	d.Helper()
	d.run(func(c *transport.Call, now any) {
		jobLock.GiveUp(c, now, "client:"+strconv.Itoa(thread), d.wait.Milliseconds())
	})
}

// inSteps plays a story of scripts on fake time.
func inSteps(t *testing.T, wait, lease time.Duration, story func(d discrete)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv, _, _ := inBubble(t)
		story(discrete{T: t, srv: srv, wait: wait, lease: lease})
	})
}

func TestMirrorAcquireFailedTimeoutDrift_Descrete(t *testing.T) {
	inSteps(t, 5*time.Second, 30*time.Second, func(d discrete) {
		d.acquires((*luasrc.Fair).Acquire, 0)
		for i := range 4 {
			d.waits(i+1, time.Duration(30+5*i)*time.Second)
		}
		d.givesUp(2)
		for i, thread := range []int{1, 3, 4} {
			d.waits(thread, 30*time.Second)
			d.due(thread, time.Duration(35+5*i)*time.Second)
		}
		d.release(0)
		d.acquires((*luasrc.Fair).Acquire, 1)
		for i, thread := range []int{3, 4} {
			d.waits(thread, 30*time.Second)
			d.due(thread, time.Duration(35+5*i)*time.Second)
		}
	})
}

func TestMirrorLockAcquiredBooleanTimeoutDrift_Descrete(t *testing.T) {
	inSteps(t, 5*time.Second, 500*time.Millisecond, func(d discrete) {
		d.acquires((*luasrc.Fair).Try, 1)
		for _, thread := range []int{2, 3} {
			_, acquired := d.acquire((*luasrc.Fair).Try, thread)
			require.False(d, acquired)
		}
		require.Empty(d, queueOf(d, d.srv, "job"))
		time.Sleep(500 * time.Millisecond)
		d.acquires((*luasrc.Fair).Try, 3)
	})
}

func TestMirrorLockAcquiredTimeoutDrift_Descrete(t *testing.T) {
	inSteps(t, 5*time.Second, 300*time.Second, func(d discrete) {
		d.acquires((*luasrc.Fair).Acquire, 1)
		for i := range 3 {
			d.waits(i+2, time.Duration(300+5*i)*time.Second)
		}
		for i := range 3 {
			d.waits(i+2, 300*time.Second)
		}
		d.release(1)
		d.acquires((*luasrc.Fair).Acquire, 2)
		d.waits(3, 300*time.Second)
		d.waits(5, 305*time.Second+5*time.Second) // behind 3 and 4, which came 5 s earlier
	})
}

func TestMirrorAbandonedTimeoutDrift_Descrete(t *testing.T) {
	inSteps(t, 100*time.Millisecond, 500*time.Millisecond, func(d discrete) {
		d.acquires((*luasrc.Fair).Acquire, 0)
		for i := range 3 {
			d.waits(i+1, time.Duration(500+100*i)*time.Millisecond)
		}
		time.Sleep(699 * time.Millisecond) // the first and the second are not heard of again
		_, acquired := d.acquire((*luasrc.Fair).Acquire, 3)
		require.False(d, acquired)
		time.Sleep(time.Millisecond)
		d.acquires((*luasrc.Fair).Acquire, 3)
		require.Empty(d, queueOf(d, d.srv, "job"))
	})
}

func TestMirrorLeaseTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _, _ := inBubble(t)
		var all []*waiter
		began := time.Now()
		for range 8 {
			client, _ := fakeClient(t, srv)
			all = append(all, await(t.Context(), rfairlock.New(client, "job"),
				rlock.WithWait(10*time.Second), rlock.WithLease(time.Second)))
			time.Sleep(100 * time.Millisecond)
		}
		for i, w := range all {
			w.acquired(t, 11*time.Second) // and not unlocked
			for _, later := range all[i+1:] {
				later.stillWaits(t)
			}
		}
		require.LessOrEqual(t, time.Since(began), 11*time.Second)
	})
}

func TestMirrorMultipleLocks(t *testing.T) {
	threads := testlevel.Rounds(40, 500)
	synctest.Test(t, func(t *testing.T) {
		_, client, _ := inBubble(t)
		var r criticalSection
		var wg sync.WaitGroup
		began := time.Now()
		for range threads {
			wg.Go(func() {
				hold, err := rfairlock.New(client, "job").Lock(t.Context(), rlock.WithLease(5*time.Second))
				if !assert.NoError(t, err) {
					return
				}
				r.entered++
				time.Sleep(200 * time.Millisecond)
				assert.NoError(t, hold.Unlock())
			})
		}
		wg.Wait()
		require.Equal(t, threads, r.entered)
		require.Equal(t, time.Duration(threads)*200*time.Millisecond, time.Since(began))
	})
}

// requireNear checks that no waiter's deadline is further away than that.
func requireNear(t *testing.T, srv *redistest.MiniServer, bound func(place int) time.Duration) {
	t.Helper()
	queue, due := queueOf(t, srv, "job"), deadlinesOf(t, srv, "job")
	for i, owner := range queue { // one may have left between the two questions
		require.LessOrEqual(t, time.Until(time.UnixMilli(due[owner])), bound(i), "place %d", i)
	}
}

// drift lets three threads, which do not begin together, try again and again for as long as
// wait, and then leaves one behind that is dead. Nothing but the waits of those in front, and
// its own, may put the deadline of a waiter off.
func drift(t *testing.T, wait, lease, stay time.Duration, tries int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// A heartbeat takes the wait of a waiter that has come since it was made up for the fleet's.
		srv, client, _ := inBubble(t, redlatch.WithFairWaitTimeout(wait))
		bound := func(place int) time.Duration { return lease + wait*time.Duration(place+1) }
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * wait / 3)
				for range tries {
					hold, err := rfairlock.New(client, "job").Lock(t.Context(), rlock.WithWait(wait), rlock.WithLease(lease))
					if err != nil {
						checkHeld(t, err)
						continue
					}
					time.Sleep(stay)
					assert.NoError(t, hold.Unlock())
				}
			})
		}
		defer wg.Wait()
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
		synctest.Wait() // what gives up is on its way when Lock returns
		require.Empty(t, queueOf(t, srv, "job"))
		// The last one is killed: no client evicts it.
		holdByHand(t, srv, "job", lease)
		d := discrete{T: t, srv: srv, wait: wait, lease: lease}
		d.waits(9, lease)
		requireNear(t, srv, bound)
	})
}

func TestMirrorWaitTimeoutDrift(t *testing.T) {
	drift(t, 500*time.Millisecond, 30*time.Second, 2*time.Second, testlevel.Rounds(12, 50))
}

func TestMirrorLockAcquiredTimeoutDrift(t *testing.T) {
	drift(t, 3*time.Second, 30*time.Second, 100*time.Millisecond, testlevel.Rounds(12, 50))
}

func TestMirrorFirstThreadDeathTimeoutDrift(t *testing.T) {
	drift(t, 3*time.Second, 30*time.Second, 2*time.Second, testlevel.Rounds(12, 50))
}

// An hour of short waits, long leases, and callers that leave, of several
// clients.
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
			// A heartbeat takes the wait of a head of another process for the fleet's.
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
			// A heartbeat reckons with the fair wait of the waiters in front, which may
			// take less off when they leave: so what counts is how many were queued, not
			// the place.
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

// churnOnce waits for a while, and works for a while if it gets the lock.
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
