// Package overload tests a client under excessive load: many thousands of concurrent callers, and a slow
// server.
//
// Each test loads a client that keeps other holds. During the load it samples their remaining leases, which
// show late renewals, and the heap. No hold may be lost. Afterward a lock must work, and the heap, the
// goroutines and the server's keys must be as before. With a slow server, at most as many callers as fit in
// flight get an unknown outcome.
//
// Sizes are a tenth of those in the names of the tests, for every change and the race detector. With
// REDLATCH_OVERLOAD=full they are as named, and the figures are logged.
package overload_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

const foreign = "8f14e45f-ceea-467f-a0d2-4f1c1b8a7e11:7"

func direct(s *redistest.Server) string { return s.URL() }

// holdMany makes another owner hold n locks for an hour.
func (r *rig) holdMany(prefix string, n int) {
	r.t.Helper()
	r.server.Do(r.t, "EVAL", `for i = 0, ARGV[2] - 1 do
redis.call('HSET', ARGV[1] .. i, ARGV[3], 1)
redis.call('PEXPIRE', ARGV[1] .. i, 3600000)
end`, 0, prefix, n, foreign)
}

// freeMany deletes them and notifies the waiters, a thousand at a time.
func (r *rig) freeMany(prefix string, n int) {
	r.t.Helper()
	for i := 0; i < n; i += 1000 {
		r.server.Do(r.t, "EVAL", `for i = ARGV[2] + 0, ARGV[3] - 1 do
redis.call('DEL', ARGV[1] .. i)
redis.call('PUBLISH', ARGV[4]:gsub('@', ARGV[1] .. i), '0')
end`, 0, prefix, i, min(i+1000, n), codec.LockChannel("@"))
	}
}

// These tests measure and are not parallel.
func TestTwentyThousandWaitersOnOneLock(t *testing.T) {
	testlevel.All(t, "load")
	r, n := newRig(t, direct), sized(20000)
	name := redistest.Key(t)
	r.holdMany(name, 1)
	began := time.Now()
	var y results
	wait := runConcurrently(n, func(int) {
		began := time.Now()
		hold, err := rlock.New(r.client, name+"0").Lock(t.Context())
		y.count(hold, err, began)
	})
	e := engine.EngineOf(r.client)
	r.until("all wait", func() bool { return e.Waiting() == int64(n) })
	t.Logf("%d wait after %v", n, since(began))
	r.untilRenewed()
	before := r.server.CommandStats(t)["evalsha"]
	freed := time.Now()
	r.freeMany(name, 1)
	wait()
	took := since(freed)
	t.Logf("each had its turn within %v, %.0f a second: %s", took, float64(n)/took.Seconds(), &y)
	scripts := r.server.CommandStats(t)["evalsha"] - before
	t.Logf("%d scripts for all turns", scripts)
	require.LessOrEqual(t, scripts, int64(2*n+n/10), "two for each, and a few polls")
	require.EqualValues(t, n, y.acquired.Load())
	require.Zero(t, y.unlocks.Load())
	r.calmed(n, "waiters for one lock", took, &y)
}

func TestTwentyThousandWaitersOnTwentyThousandLocks(t *testing.T) {
	testlevel.All(t, "load")
	r, n := newRig(t, direct), sized(20000)
	name := redistest.Key(t)
	r.holdMany(name, n)
	began := time.Now()
	var y results
	wait := runConcurrently(n, func(i int) {
		began := time.Now()
		hold, err := rlock.New(r.client, fmt.Sprint(name, i)).Lock(t.Context())
		y.count(hold, err, began)
	})
	r.until("all listen", func() bool { return r.channels() == n })
	t.Logf("%d listen after %v", n, since(began))
	require.Equal(t, 2, r.server.Clients(t))
	r.untilRenewed()
	freed := time.Now()
	r.freeMany(name, n)
	wait()
	took := since(freed)
	t.Logf("all had their locks within %v: %s", took, &y)
	require.EqualValues(t, n, y.acquired.Load())
	require.Zero(t, y.unlocks.Load())
	r.until("no listener", func() bool { return r.channels() == 0 })
	r.calmed(n, "waiters for as many locks", took, &y)
}

func TestBurstOfFiftyThousandTryLocks(t *testing.T) {
	testlevel.All(t, "load")
	for _, of := range []string{"one lock", "as many locks"} {
		t.Run(of, func(t *testing.T) {
			one := of == "one lock"
			r, n := newRig(t, direct), sized(50000)
			name := redistest.Key(t)
			began := time.Now()
			var y results
			runConcurrently(n, func(i int) {
				if one {
					i = 0
				}
				began := time.Now()
				hold, err := rlock.New(r.client, fmt.Sprint(name, i)).TryLock(t.Context())
				y.count(hold, err, began)
			})()
			took := since(began)
			t.Logf("%v: %s", took, &y)
			require.LessOrEqual(t, y.uncertain.Load(), int64(flightMax), "none, where the machine is not busy")
			require.Zero(t, y.other.Load())
			r.untilRenewed()
			r.calmed(n, "TryLocks of "+of+" at once", took, &y)
		})
	}
}

// flightMax is the number of calls in flight on a connection.
const flightMax = 1024

func TestBurstOfFiftyThousandTryLocksOnBusyServer(t *testing.T) {
	testlevel.All(t, "load")
	// A tenth would succeed in time.
	r, n := newRig(t, direct), max(10000, sized(50000))
	name := redistest.Key(t)
	release := r.keepBusy(75 * time.Millisecond)
	began := time.Now()
	var y results
	runConcurrently(n, func(i int) {
		began := time.Now()
		hold, err := rlock.New(r.client, fmt.Sprint(name, i)).TryLock(t.Context())
		y.count(hold, err, began)
	})()
	took := since(began)
	t.Logf("%v: %s", took, &y)
	r.untilRenewed()
	release()
	require.Positive(t, y.notSent.Load(), "the server was not busy enough: the test proves nothing")
	// Commands in flight have half of the command timeout left, which may be too little on a busy machine.
	require.LessOrEqual(t, y.uncertain.Load(), int64(flightMax))
	require.Zero(t, y.other.Load())
	r.calmed(n, "TryLocks of as many locks at once, the server busy", took, &y)
}

// keepBusy makes the server run scripts of duration d until release is called. With two alternating callers
// it always has another script.
func (r *rig) keepBusy(d time.Duration) (release func()) {
	r.t.Helper()
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for range 2 {
		conn := r.server.Dial(r.t)
		workers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, err := conn.Do("EVAL", `local function now()
local t = redis.call('TIME')
return t[1] * 1000000 + t[2]
end
local till = now() + ARGV[1] * 1000
repeat for i = 1, 1000 do end until now() > till`, 0, d.Milliseconds())
				if err != nil {
					r.t.Errorf("the server cannot be kept busy: %v", err)
					return
				}
			}
		})
	}
	return func() {
		close(stop)
		workers.Wait()
	}
}

func TestServerWithHalfSecondLatency(t *testing.T) {
	testlevel.All(t, "load")
	var p *redistest.Proxy
	r := newRig(t, func(s *redistest.Server) string {
		p = redistest.NewProxy(t, s.Addr())
		return p.URL()
	}, redlatch.WithCommandTimeout(lease)) // only for the slow server, not a slow machine
	callers, name := sized(2000), redistest.Key(t)
	p.Latency(redistest.ToServer, 250*time.Millisecond)
	p.Latency(redistest.ToClient, 250*time.Millisecond)
	began := time.Now()
	var y results
	runConcurrently(callers, func(i int) {
		for again := true; again; again = !r.allRenewed() && r.failures.Load() == 0 {
			began := time.Now()
			var hold *rlock.Hold
			var err error
			if i%3 == 0 {
				hold, err = rlock.New(r.client, fmt.Sprint(name, "of its own", i)).TryLock(t.Context())
			} else {
				hold, err = rlock.New(r.client, fmt.Sprint(name, i%100)).Lock(t.Context(), rlock.WithWait(5*time.Second))
			}
			y.count(hold, err, began)
		}
	})()
	took := since(began)
	t.Logf("%v: %s", took, &y)
	p.Latency(redistest.ToServer, 0)
	p.Latency(redistest.ToClient, 0)
	require.Zero(t, y.uncertain.Load()+y.notSent.Load()+y.other.Load()+y.unlocks.Load())
	require.Positive(t, y.acquired.Load())
	r.calmed(callers, "callers, replies after 500 ms", took, &y)
}

type results struct {
	acquired, held, notSent, uncertain, other atomic.Int64
	unlocks                                   atomic.Int64 // failed
	first                                     atomic.Pointer[error]
	slowest                                   atomic.Int64
}

// count counts the outcome of a Lock or TryLock, and unlocks.
func (y *results) count(hold *rlock.Hold, err error, began time.Time) {
	took := int64(since(began))
	for old := y.slowest.Load(); took > old; old = y.slowest.Load() {
		y.slowest.CompareAndSwap(old, took)
	}
	switch {
	case err == nil:
		y.acquired.Add(1)
		if err := hold.Unlock(); err != nil {
			y.unlocks.Add(1)
			y.first.CompareAndSwap(nil, &err)
		}
		return
	case errors.Is(err, redlatch.ErrUncertain):
		y.uncertain.Add(1)
	case errors.Is(err, redlatch.ErrNotSent):
		y.notSent.Add(1)
	case errors.Is(err, redlatch.ErrNotAcquired):
		y.held.Add(1)
		return
	default:
		y.other.Add(1)
	}
	y.first.CompareAndSwap(nil, &err)
}

// counts returns the counts other than zero.
func (y *results) counts() string {
	var all []string
	for _, c := range []struct {
		n    *atomic.Int64
		what string
	}{
		{&y.acquired, "acquired"}, {&y.held, "held by others"}, {&y.notSent, "not sent"},
		{&y.uncertain, "uncertain"}, {&y.other, "otherwise"}, {&y.unlocks, "unlocks failed"},
	} {
		if n := c.n.Load(); n > 0 {
			all = append(all, fmt.Sprint(n, " ", c.what))
		}
	}
	return strings.Join(all, ", ")
}

func (y *results) String() string {
	text := fmt.Sprintf("%s; the slowest took %v", y.counts(), time.Duration(y.slowest.Load()).Round(time.Millisecond))
	if err := y.first.Load(); err != nil {
		text += fmt.Sprintf("; the first error: %v", *err)
	}
	return text
}

// runConcurrently calls call on n goroutines.
func runConcurrently(n int, call func(i int)) (wait func()) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { call(i) })
	}
	return all.Wait
}
