package rlock_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// The tests of this file and of mirror_state_test.go set up what the tests of
// the same names do in Redisson's RedissonLockTest, and prove the same. Those
// that need re-entry or a cluster are elsewhere. Where Redisson has threads,
// here are goroutines; where it throws, here is an error.

func TestMirrorConcurrency_SingleInstance(t *testing.T) {
	t.Parallel()
	_, client := onShared(t, noPoll())
	name := redistest.Key(t)
	var r criticalSection
	var wg sync.WaitGroup
	for range 15 {
		wg.Go(func() { r.visitLocked(t, rlock.New(client, name), 1, 0) })
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
		l := rlock.New(connect(t, srv.URL(), noPoll()), name)
		wg.Go(func() { r.visitLocked(t, l, iterations, 10*time.Millisecond) })
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
		l := rlock.New(connect(t, srv.URL(), noPoll()), name)
		wg.Go(func() { r.visitLocked(t, l, 1, 0) })
	}
	wg.Wait()
	require.Equal(t, 100, r.entered)
}

// In Redisson a holder could fall out of the renewal registry while another
// thread left it.
func TestMirrorConcurrencyTryLockUnLock(t *testing.T) {
	t.Parallel()
	const goroutines = 16
	tries := testlevel.Rounds(60, 300) // Redisson: 10,000
	srv, client := onShared(t)
	name := redistest.Key(t)
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range tries {
				hold, err := rlock.New(client, name).TryLock(t.Context(), rlock.WithWatchdog(shortLease))
				if err != nil {
					checkHeld(t, err)
					continue
				}
				assert.NoError(t, hold.Err())
				assert.NoError(t, hold.Unlock())
			}
		})
	}
	wg.Wait()
	hold := take(t, rlock.New(client, name), rlock.WithWatchdog(shortLease))
	for range 2 {
		awaitRenewal(t, srv, name)
	}
	require.NoError(t, hold.Unlock())
}

func TestMirrorSubscriptionsPerConnection(t *testing.T) {
	t.Parallel()
	const goroutines = 32
	cycles := testlevel.Rounds(320, 1600) // Redisson: 5,000 cycles of up to 20 ms
	srv := redistest.Start(t)
	client := connect(t, srv.URL(), noPoll())
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range cycles / goroutines {
				name := "lock-" + strconv.Itoa(rand.IntN(5))
				hold, err := rlock.New(client, name).Lock(t.Context())
				if !assert.NoError(t, err) {
					return
				}
				spin(rand.N(2 * time.Millisecond))
				assert.NoError(t, hold.Unlock())
			}
		})
	}
	wg.Wait()
	requireNoTrace(t, srv)
	require.LessOrEqual(t, srv.Clients(t), 2)
}

func TestMirrorSinglePubSub(t *testing.T) {
	t.Parallel()
	srv, client := onShared(t, noPoll())
	names := []string{redistest.Key(t), redistest.Key(t)}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			hold, err := rlock.New(client, names[i%2]).Lock(t.Context(), rlock.WithWait(soon))
			if assert.NoError(t, err) {
				spin(time.Millisecond)
				assert.NoError(t, hold.Unlock())
			}
		})
	}
	wg.Wait()
	for _, name := range names {
		require.False(t, locked(t, srv, name))
	}
}

// An interrupted thread is a cancelled context.
func TestMirrorLockIsNotRenewedAfterInterruptedTryLock(t *testing.T) {
	t.Parallel()
	srv, client := onShared(t)
	for range 200 {
		name := redistest.Key(t)
		ctx, cancel := context.WithCancel(t.Context())
		w := await(ctx, rlock.New(client, name), rlock.WithWait(time.Minute))
		spin(rand.N(300 * time.Microsecond))
		cancel()
		w.ended(t, soon)
		if w.err == nil {
			require.NoError(t, w.hold.Unlock())
		}
		until(t, promptly, "the lock is not held", func() bool { return !locked(t, srv, name) })
	}
}

func TestMirrorRedisFailed(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	client := connect(t, srv.URL(), redlatch.WithCommandTimeout(time.Second))
	srv.Kill()
	_, err := rlock.New(client, "job").Lock(t.Context(), rlock.WithWait(5*time.Second), rlock.WithLease(10*time.Second))
	requireTransportError(t, err)
}

func TestMirrorTryLockWait(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	name := redistest.Key(t)
	hold := take(t, rlock.New(connect(t, srv.URL()), name))
	w := await(t.Context(), rlock.New(connect(t, srv.URL()), name), rlock.WithWait(3*time.Second))
	checkHeld(t, w.failed(t, soon))
	require.GreaterOrEqual(t, w.took, 3*time.Second)
	require.NoError(t, hold.Unlock())
}

// A caller that must not be interrupted waits with a context that never ends.
func TestMirrorLockUninterruptibly(t *testing.T) {
	t.Parallel()
	srv, client := onShared(t, noPoll())
	name := redistest.Key(t)
	hold := take(t, rlock.New(connect(t, srv.URL()), name))
	ctx, cancel := context.WithCancel(t.Context())
	w := await(context.WithoutCancel(ctx), rlock.New(client, name))
	awaitWaiters(t, srv, name)
	cancel()
	w.stillWaits(t)
	require.NoError(t, hold.Unlock())
	require.NoError(t, w.acquired(t, promptly).Unlock())
}
