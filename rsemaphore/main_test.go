package rsemaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rsemaphore"
)

const (
	soon = callers.Soon
	// promptly bounds a wake-up on a busy machine. With noPoll a waiter that missed one sleeps for a
	// lease, 30 s.
	promptly = 15 * time.Second
)

var (
	connect = callers.Connect
	within  = callers.Within
)

// noPoll makes waiters that miss a message sleep for longer than a test.
func noPoll() redlatch.Option { return redlatch.WithPollCap(time.Minute) }

// newSemaphore returns a new semaphore of n permits with its own client of the shared server.
func newSemaphore(t *testing.T, n int, opts ...rsemaphore.Option) *rsemaphore.Expirable {
	t.Helper()
	sem := rsemaphore.NewExpirable(connect(t, redistest.Shared(t).URL(), noPoll()), redistest.Key(t), opts...)
	made, err := sem.TrySetPermits(within(t), n)
	require.NoError(t, err)
	require.True(t, made)
	return sem
}

func same(t *testing.T, sem *rsemaphore.Expirable) *rsemaphore.Expirable {
	t.Helper()
	return rsemaphore.NewExpirable(connect(t, redistest.Shared(t).URL(), noPoll()), sem.Name())
}

func take(t *testing.T, sem *rsemaphore.Expirable, n int, opts ...rsemaphore.AcquireOption) *rsemaphore.Hold {
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
	got, err = sem.Permits(within(t))
	require.NoError(t, err)
	require.Equal(t, permits, got, "permits")
	got, err = sem.Acquired(within(t))
	require.NoError(t, err)
	require.Equal(t, permits-available, got, "acquired")
}

func whole(t *testing.T, sem *rsemaphore.Expirable, permits int) {
	t.Helper()
	assert.Eventually(t, func() bool {
		n, err := sem.Available(within(t))
		return err == nil && n == permits
	}, soon, 5*time.Millisecond, "permits of %s are away", sem.Name())
	counts(t, sem, permits, permits)
}

func listening(t *testing.T, name string, n int64) {
	t.Helper()
	callers.Listening(t, redistest.Shared(t), codec.SemaphoreChannel(name), n)
}

type acquired = callers.Acquired[*rsemaphore.Hold]

func later(ctx context.Context, sem *rsemaphore.Expirable, n int, opts ...rsemaphore.AcquireOption) <-chan acquired {
	return callers.Later(func() (*rsemaphore.Hold, error) { return sem.Acquire(ctx, n, opts...) })
}

func must(t *testing.T, came <-chan acquired) *rsemaphore.Hold {
	t.Helper()
	return callers.Must(t, came, promptly)
}

func waits(t *testing.T, came <-chan acquired) {
	t.Helper()
	select {
	case a := <-came:
		require.Failf(t, "it came", "%v", a.Err)
	case <-time.After(50 * time.Millisecond):
	}
}
