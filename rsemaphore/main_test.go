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
	// promptly is what a wake-up may take on a busy machine. With noPoll a waiter that missed one
	// sleeps for a lease, which is 30 s.
	promptly = 15 * time.Second
)

// What the tests of all kinds share.
var (
	connect = callers.Connect
	within  = callers.Within
)

// noPoll has waiters that miss a message sleep for longer than a test.
func noPoll() redlatch.Option { return redlatch.WithPollCap(time.Minute) }

// newSemaphore returns a semaphore of n permits with a name of its own, on a client of its own.
func newSemaphore(t *testing.T, s *redistest.Server, n int, opts ...rsemaphore.Option) *rsemaphore.Expirable {
	t.Helper()
	sem := rsemaphore.NewExpirable(connect(t, s.URL(), noPoll()), redistest.Key(t), opts...)
	made, err := sem.TrySetPermits(within(t), n)
	require.NoError(t, err)
	require.True(t, made)
	return sem
}

// same returns the same semaphore on another client.
func same(t *testing.T, s *redistest.Server, sem *rsemaphore.Expirable, opts ...redlatch.Option) *rsemaphore.Expirable {
	t.Helper()
	return rsemaphore.NewExpirable(connect(t, s.URL(), append([]redlatch.Option{noPoll()}, opts...)...), sem.Name())
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

// counts holds how many permits there are, and how many of them are available.
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

// whole holds that all permits are available after a while.
func whole(t *testing.T, sem *rsemaphore.Expirable, permits int) {
	t.Helper()
	assert.Eventually(t, func() bool {
		n, err := sem.Available(within(t))
		return err == nil && n == permits
	}, soon, 5*time.Millisecond, "permits of %s are away", sem.Name())
	counts(t, sem, permits, permits)
}

// listening waits until so many connections listen to the semaphore.
func listening(t *testing.T, s *redistest.Server, name string, n int64) {
	t.Helper()
	callers.Listening(t, s, codec.SemaphoreChannel(name), n)
}

// acquired is what a waiter ends with.
type acquired = callers.Acquired[*rsemaphore.Hold]

// later waits for permits on a goroutine of its own.
func later(ctx context.Context, sem *rsemaphore.Expirable, n int, opts ...rsemaphore.AcquireOption) <-chan acquired {
	return callers.Later(func() (*rsemaphore.Hold, error) { return sem.Acquire(ctx, n, opts...) })
}

func must(t *testing.T, came <-chan acquired) *rsemaphore.Hold {
	t.Helper()
	return callers.Must(t, came, promptly)
}

// waits holds that a waiter has not come yet.
func waits(t *testing.T, came <-chan acquired) {
	t.Helper()
	select {
	case a := <-came:
		require.Failf(t, "it came", "%v", a.Err)
	case <-time.After(50 * time.Millisecond):
	}
}
