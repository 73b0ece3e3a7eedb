package rlock_test

import (
	"context"
	"reflect"
	"runtime"
	"strings"
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

// criticalSection counts its visitors. Only the lock under test guards entered.
type criticalSection struct {
	inside  atomic.Int64
	entered int
}

func (r *criticalSection) visit(t testing.TB) {
	t.Helper()
	assert.EqualValues(t, 1, r.inside.Add(1), "one at a time")
	r.entered++
	r.inside.Add(-1)
}

func (r *criticalSection) visitLocked(t testing.TB, l *rlock.Lock, n int) {
	t.Helper()
	for range n {
		hold, err := l.Lock(t.Context())
		if !assert.NoError(t, err) {
			return
		}
		r.visit(t)
		assert.NoError(t, hold.Unlock())
	}
}

// Half of the callers do not wait: their failed attempts must not disturb the waiters.
func TestU11ClientsHoldLockOneAtATime(t *testing.T) {
	t.Parallel()
	rounds := testlevel.Rounds(2, 8)
	srv := redistest.Shared(t)
	name := redistest.Key(t)
	var r criticalSection
	var tried atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		l := rlock.New(connect(t, srv.URL(), noPoll()), name)
		for range 8 {
			wg.Go(func() { r.visitLocked(t, l, rounds) })
			wg.Go(func() {
				for range 4 * rounds {
					hold, err := l.TryLock(t.Context())
					if err != nil {
						checkHeld(t, err)
						continue
					}
					r.visit(t)
					tried.Add(1)
					hold.UnlockAsync()
				}
			})
		}
	}
	wg.Wait()
	require.Equal(t, 8*8*rounds+int(tried.Load()), r.entered)
}

// A wait that ends during an attempt is contention, not a failure of Redis.
func TestU33WaitEndingDuringAttemptIsContention(t *testing.T) {
	t.Parallel()
	const latency = 200 * time.Millisecond
	step := time.Duration(testlevel.Rounds(550, 70)) * time.Millisecond
	for wait := 6 * latency; wait < 5*time.Second; wait += step {
		synctest.Test(t, func(t *testing.T) {
			w, client := wired(t, latency, redlatch.WithPollCap(latency))
			holdByHand(t, w.srv, "job", time.Hour)
			l := rlock.New(client, "job")
			began := time.Now()
			_, err := l.Lock(t.Context(), rlock.WithWait(wait))
			checkHeld(t, err)
			require.NotErrorIs(t, err, redlatch.ErrNotSent)
			require.Equal(t, wait, time.Since(began))

			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			_, err = l.Lock(ctx)
			checkHeld(t, err)
			require.NotErrorIs(t, err, redlatch.ErrNotSent)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	}
}

func TestU33WaitEndingDuringSilenceIsNotContention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, time.Millisecond, redlatch.WithPollCap(time.Second))
		holdByHand(t, w.srv, "job", time.Hour)
		waits := await(t.Context(), rlock.New(client, "job"), rlock.WithWait(7*time.Second))
		time.Sleep(5 * time.Second)
		w.hole.Store(true)
		err := waits.failed(t, time.Minute)
		require.Equal(t, 7*time.Second, waits.took())
		requireTransportError(t, err)
	})
}

func TestShortWaitKeepsFirstAttempt(t *testing.T) {
	const latency = 200 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, latency)
		holdByHand(t, w.srv, "held", time.Hour)
		loadScripts(t, client)
		for _, wait := range []time.Duration{time.Millisecond, latency / 2} {
			began := time.Now()
			_, err := rlock.New(client, "held").Lock(t.Context(), rlock.WithWait(wait))
			checkHeld(t, err)
			require.NotErrorIs(t, err, redlatch.ErrNotSent)
			require.Equal(t, latency, time.Since(began))
			hold, err := rlock.New(client, "free").Lock(t.Context(), rlock.WithWait(wait))
			require.NoError(t, err)
			require.NoError(t, hold.Unlock())
		}
		w.hole.Store(true)
		began := time.Now()
		_, err := rlock.New(client, "held").Lock(t.Context(), rlock.WithWait(time.Millisecond))
		requireTransportError(t, err)
		require.Equal(t, 500*time.Millisecond, time.Since(began))

		ctx, cancel := context.WithTimeout(t.Context(), latency)
		defer cancel()
		began = time.Now()
		_, err = rlock.New(client, "another").Lock(ctx, rlock.WithWait(time.Millisecond))
		requireTransportError(t, err)
		require.Equal(t, latency, time.Since(began), "the context bounds everything")
	})
}

// commands counts the commands sent to a server, except the test's own.
func commands(t testing.TB, srv *redistest.Server) (scripts, all int64) {
	t.Helper()
	stats := srv.CommandStats(t)
	for name, n := range stats {
		if name != "info" && name != "ping" && name != "config|resetstat" {
			all += n
		}
	}
	return stats["evalsha"], all
}

func TestLockUnlockRunsTwoScripts(t *testing.T) {
	t.Parallel()
	pairs := testlevel.Rounds(200, 1000)
	srv := redistest.Start(t)
	l := rlock.New(connect(t, srv.URL()), redistest.Key(t))
	require.NoError(t, take(t, l).Unlock()) // the server knows the scripts
	srv.Do(t, "CONFIG", "RESETSTAT")
	for range pairs {
		hold, err := l.Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Unlock())
	}
	scripts, all := commands(t, srv)
	require.EqualValues(t, 2*pairs, scripts)
	require.LessOrEqual(t, all, int64(2*(1+3)*pairs))
	require.Empty(t, srv.Channels(t), "a free lock has no subscribers")
	require.Equal(t, 1, srv.Clients(t))
}

// An uncontended pair allocates the hold and its owner's text, boxed. A re-entry allocates the hold
// and the arguments of two count changes.
const (
	allocationsOfAPair    = 3
	allocationsOfAReentry = 7
)

// Not parallel: it counts allocations.
func TestLockUnlockAllocations(t *testing.T) {
	testlevel.NoRace(t, "the race detector allocates")
	_, client := onShared(t)
	l := rlock.New(client, redistest.Key(t))
	ctx := t.Context()
	require.NoError(t, take(t, l).Unlock())
	require.LessOrEqual(t, allocations(ctx, t, l), allocationsOfAPair)
	outer := take(t, l)
	inside := outer.Context(ctx)
	require.LessOrEqual(t, allocations(inside, t, l), allocationsOfAReentry)
	require.NoError(t, outer.Unlock())
}

// A program that ends its goroutine in an observer, as t.FailNow does, does not delay Close.
func TestBlockedUnlockDoesNotDelayClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t, redlatch.WithObserver(redlatch.Observer{
			Ended: func(context.Context, redlatch.Ended) { runtime.Goexit() },
		}))
		hold := take(t, rlock.New(client, "job"))
		var unlock sync.WaitGroup
		unlock.Go(func() { _ = hold.Unlock() })
		unlock.Wait()
		began := time.Now()
		require.NoError(t, client.Close())
		require.Zero(t, time.Since(began))
	})
}

// With the allocator's header, larger holds take 1,024 bytes instead of 896.
func TestHoldFitsSizeClass(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, reflect.TypeFor[rlock.Hold]().Size(), uintptr(888))
}

// allocations returns the number of allocations per pair, rounded down to ignore background work.
func allocations(ctx context.Context, t *testing.T, l *rlock.Lock) int {
	t.Helper()
	n := testing.AllocsPerRun(testlevel.Rounds(500, 2000), func() {
		hold, err := l.Lock(ctx)
		if err == nil {
			err = hold.Unlock()
		}
		if err != nil {
			t.Error(err)
		}
	})
	t.Logf("%.0f allocations", n)
	return int(n)
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // frees memory released by finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// inLocalQueue counts the callers in local queues by their stacks.
func inLocalQueue() int {
	stacks := make([]byte, 16<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "acquire.(*Acquisition).AwaitTurn(")
}

// Not parallel: the heap is that of the whole process.
func TestWaiterMemory(t *testing.T) {
	testlevel.NoRace(t, "the race detector uses memory")
	const callers, most = 1000, 1750 // bytes: it is 1,588, of which the goroutine is 480
	srv, client := onShared(t, noPoll())
	name := redistest.Key(t)
	hold := take(t, rlock.New(connect(t, srv.URL()), name), rlock.WithLease(time.Minute))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := rlock.New(client, name)
	var wg sync.WaitGroup
	wait := func() {
		_, err := l.Lock(ctx)
		assert.ErrorIs(t, err, context.Canceled)
	}
	before := heapInUse()
	wg.Go(wait)
	awaitWaiters(t, srv, name) // earlier waiters have a timer
	for range callers - 1 {
		wg.Go(wait)
	}
	until(t, soon, "all but one wait in the local queue", func() bool { return inLocalQueue() == callers-1 })
	each := (heapInUse() - before) / callers
	t.Logf("%d bytes each", each)
	require.LessOrEqual(t, each, int64(most))
	cancel()
	wg.Wait()
	require.NoError(t, hold.Unlock())
}
