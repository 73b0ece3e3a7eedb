package rfairlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// The tests of this file and of mirror_drift_test.go set up what the tests of the
// same names do in Redisson's RedissonFairLockTest, and prove the same. Those that
// a fair lock shares with a plain one are in package rlock, for both. Where
// Redisson has threads, here are goroutines; where it throws, here is an error.

// criticalSection counts the callers inside. The plain counter is guarded by nothing but the
// lock under test, so the race detector watches, too.
type criticalSection struct {
	inside  int
	entered int
}

// visitLocked takes the lock n times, and goes in each time.
func (r *criticalSection) visitLocked(ctx context.Context, t testing.TB, l *rlock.Lock, n int, stay time.Duration) {
	t.Helper()
	for range n {
		hold, err := l.Lock(ctx)
		if !assert.NoError(t, err) {
			return
		}
		r.inside++
		assert.Equal(t, 1, r.inside, "one at a time")
		r.entered++
		if stay > 0 {
			time.Sleep(stay) // the work
		}
		r.inside--
		assert.NoError(t, hold.Unlock())
	}
}

func TestMirrorConcurrency_SingleInstance(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	client, name := connect(t, srv.URL(), noPoll()), redistest.Key(t)
	var r criticalSection
	var wg sync.WaitGroup
	for range 15 {
		wg.Go(func() { r.visitLocked(t.Context(), t, rfairlock.New(client, name), 1, 0) })
	}
	wg.Wait()
	require.Equal(t, 15, r.entered)
}

func TestMirrorConcurrencyLoop_MultiInstance(t *testing.T) {
	t.Parallel()
	const clients = 16
	iterations := testlevel.Rounds(5, 20) // Redisson: 100
	srv := redistest.Shared(t)
	name := redistest.Key(t)
	var r criticalSection
	var wg sync.WaitGroup
	for range clients {
		l := rfairlock.New(connect(t, srv.URL(), noPoll()), name)
		wg.Go(func() { r.visitLocked(t.Context(), t, l, iterations, 5*time.Millisecond) })
	}
	wg.Wait()
	require.Equal(t, clients*iterations, r.entered)
}

func TestMirrorConcurrency_MultiInstance(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	name := redistest.Key(t)
	var r criticalSection
	var wg sync.WaitGroup
	for range 100 {
		l := rfairlock.New(connect(t, srv.URL(), noPoll()), name)
		wg.Go(func() { r.visitLocked(t.Context(), t, l, 1, 0) })
	}
	wg.Wait()
	require.Equal(t, 100, r.entered)
}

// Redisson starts its threads 10 ms apart and hopes; here each is in the queue
// before the next begins.
func TestMirrorConcurrency_MultiInstance_Ordering(t *testing.T) {
	t.Parallel()
	const n = 16
	srv := redistest.Shared(t)
	name := redistest.Key(t)
	hold := take(t, rfairlock.New(connect(t, srv.URL()), name))
	var all []*waiter
	for range n {
		all = append(all, queueUp(t.Context(), t, srv, rfairlock.New(connect(t, srv.URL(), noPoll()), name), 1)...)
	}
	require.NoError(t, hold.Unlock())
	for i, w := range all {
		next := w.acquired(t, promptly)
		for _, later := range all[i+1:] {
			later.stillWaits(t)
		}
		require.NoError(t, next.Unlock())
	}
}

func TestMirrorTryLockNonDelayed(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	client := connect(t, srv.URL(), noPoll())
	loadScripts(t, client)
	l := rfairlock.New(client, redistest.Key(t))
	hold := take(t, l)
	w := await(t.Context(), l, rlock.WithWait(3*time.Second))
	checkHeld(t, w.failed(t, soon))
	require.NoError(t, hold.Unlock())
	// The give-up went before this on the same connection.
	require.NoError(t, take(t, l).Unlock())
	requireNoTrace(t, srv, l.Name())
}

func TestMirrorTryLockWait(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	name := redistest.Key(t)
	hold := take(t, rfairlock.New(connect(t, srv.URL()), name))
	w := await(t.Context(), rfairlock.New(connect(t, srv.URL()), name), rlock.WithWait(3*time.Second))
	checkHeld(t, w.failed(t, soon))
	require.GreaterOrEqual(t, w.took, 3*time.Second)
	require.NoError(t, hold.Unlock())
}

// In Redisson the late unlock succeeds, because the lock is absent. Here the first
// holder learns that it had lost the lock.
func TestMirrorExpire(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	l := rfairlock.New(connect(t, srv.URL(), noPoll()), redistest.Key(t))
	hold := take(t, l, rlock.WithLease(2*time.Second))
	w := await(t.Context(), l)
	next := w.acquired(t, 2*time.Second+promptly)
	require.GreaterOrEqual(t, w.took, time.Second)
	require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	require.Equal(t, map[string]string{next.Owner().String(): "1"}, owners(t, srv, l.Name()))
	require.NoError(t, next.Unlock())
}

func TestMirrorAutoExpire(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	name := redistest.Key(t)
	const lease = 6 * time.Second
	holder := connect(t, srv.URL(), redlatch.WithWatchdogTimeout(lease))
	take(t, rfairlock.New(holder, name))
	w := queueUp(t.Context(), t, srv, rfairlock.New(connect(t, srv.URL(), noPoll()), name), 1)[0]
	require.NoError(t, holder.Close())
	require.True(t, locked(t, srv, name))
	require.NoError(t, w.acquired(t, lease+soon).Unlock())
}

func TestMirrorNameMapper(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	client := connect(t, srv.URL(), noPoll(), redlatch.WithNameMapper(redlatch.PrefixMapper("test::")))
	l := rfairlock.New(client, redistest.Key(t))
	mapped := "test::" + l.Name()
	hold := take(t, l)
	require.True(t, locked(t, srv, mapped))
	w := await(t.Context(), l)
	queue := awaitAsleep(t, srv, mapped, 1)
	n, err := redis.Int(srv.Do(t, "EXISTS", "redisson_lock_queue:{"+mapped+"}", "redisson_lock_timeout:{"+mapped+"}"), nil)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Positive(t, listeners(t, srv, mapped, queue[0]))
	require.NoError(t, hold.Unlock())
	require.NoError(t, w.acquired(t, promptly).Unlock())
	requireNoTrace(t, srv, mapped)
}

// Writes are paused on the server, so that waiters get no reply to their
// attempts, and leave. Redisson left them in the queue (#5019).
func TestMirrorAcquireFailedNotCalledOnRedisTimeout(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	client := connect(t, srv.URL(), redlatch.WithCommandTimeout(time.Second))
	loadScripts(t, client)
	l := rfairlock.New(client, redistest.Key(t))
	hold := take(t, l)
	all := []*waiter{
		await(t.Context(), l, rlock.WithWait(4*time.Second)),
		await(t.Context(), l, rlock.WithWait(5*time.Second)),
	}
	awaitAsleep(t, srv, l.Name(), 2)
	srv.Do(t, "CLIENT", "PAUSE", 6000, "WRITE")
	srv.Do(t, "PUBLISH", codec.OwnerChannel(l.Name(), queueOf(t, srv, l.Name())[0]), codec.MessageUnlock)
	for _, w := range all {
		require.Error(t, w.failed(t, 5*time.Second+promptly))
	}
	until(t, 6*time.Second+gone, "no place is left", func() bool {
		return len(queueOf(t, srv, l.Name()))+len(deadlinesOf(t, srv, l.Name())) == 0
	})
	require.NoError(t, hold.Unlock())
	requireNoTrace(t, srv, l.Name())
}
