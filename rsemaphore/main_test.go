package rsemaphore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var (
	connect = callers.Connect
	within  = callers.Within
)

// promptly limits the time that a wake-up may take. With noPoll, a waiter that misses a wake-up
// sleeps longer.
const promptly = 15 * time.Second

// noPoll makes waiters that miss a message sleep for longer than a test waits.
func noPoll() redlatch.Option { return redlatch.WithPollCap(time.Hour) }

// bubble returns a server inside a synctest bubble, and a function that returns a semaphore with n permits on
// a new client.
func bubble(t *testing.T, n int) (*redistest.MiniServer, func(...redlatch.Option) *rsemaphore.Expirable) {
	t.Helper()
	srv := redistest.Mini(t, embedded.WithInProcess())
	open := func(settings ...redlatch.Option) *rsemaphore.Expirable {
		return rsemaphore.NewExpirable(callers.InProcess(t, srv, settings...), "job")
	}
	require.NoError(t, open().SetPermits(t.Context(), n))
	return srv, open
}

// inBubble returns a semaphore with one permit, which is acquired by another client.
func inBubble(t *testing.T, near redlatch.Option) (*redistest.MiniServer, *rsemaphore.Expirable, *rsemaphore.Hold) {
	t.Helper()
	srv, open := bubble(t, 1)
	held := take(t, open(), 1)
	return srv, open(near), held
}

func take(t *testing.T, sem *rsemaphore.Expirable, n int, opts ...rlock.Option) *rsemaphore.Hold {
	t.Helper()
	h, err := sem.Acquire(within(t), n, opts...)
	require.NoError(t, err)
	return h
}

func release(t *testing.T, holds ...*rsemaphore.Hold) {
	t.Helper()
	for _, h := range holds {
		require.NoError(t, h.Release())
	}
}

func counts(t *testing.T, sem *rsemaphore.Expirable, available, permits int) {
	t.Helper()
	got, err := sem.Available(within(t))
	require.NoError(t, err)
	require.Equal(t, available, got, "available")
	in, err := sem.Inspect(within(t))
	require.NoError(t, err)
	require.Equal(t, permits, in.Available+in.Acquired, "permits")
}

// whole waits for uncertain calls, and checks that all permits are available.
func whole(t *testing.T, sem *rsemaphore.Expirable, permits int) {
	t.Helper()
	time.Sleep(10 * time.Second)
	counts(t, sem, permits, permits)
}

type acquired = callers.Acquired[*rsemaphore.Hold]

// later calls Acquire in a goroutine, and returns when it is waiting.
func later(ctx context.Context, sem *rsemaphore.Expirable, n int, opts ...rlock.Option) <-chan acquired {
	came := callers.Later(func() (*rsemaphore.Hold, error) { return sem.Acquire(ctx, n, opts...) })
	synctest.Wait()
	return came
}

func must(t *testing.T, came <-chan acquired) *rsemaphore.Hold {
	t.Helper()
	return callers.Must(t, came, promptly)
}

func waits(t *testing.T, came <-chan acquired) {
	t.Helper()
	synctest.Wait()
	require.Empty(t, came)
}

func ends(t *testing.T, ctx context.Context) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		require.FailNow(t, "the hold does not end")
	}
}
