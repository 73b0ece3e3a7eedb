package rsemaphore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
)

func TestPermitsAreRenewedOnAServerWithoutMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := connect(t, s.URL(), redlatch.WithWatchdogTimeout(6*time.Second))
	plain, err := rlock.New(c, "plain").Lock(within(t))
	require.NoError(t, err)
	read, err := rreadwritelock.New(c, "both").Read().Lock(within(t))
	require.NoError(t, err)
	sem := rsemaphore.NewExpirable(c, "permits")
	require.NoError(t, sem.SetPermits(within(t), 1))
	permit := take(t, sem, 1)
	time.Sleep(time.Second)
	s.Do(t, "CONFIG", "SET", "maxmemory", 1)
	time.Sleep(8 * time.Second) // longer than a lease
	require.NoError(t, plain.Err())
	require.NoError(t, read.Err())
	require.NoError(t, permit.Err())
	require.NoError(t, permit.Release())
}

func TestACounterIsReleasedOnAServerWithoutMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	sem := newCounter(t, s, 2)
	require.NoError(t, sem.Acquire(within(t), 2))
	s.Do(t, "CONFIG", "SET", "maxmemory", 1)
	require.NoError(t, sem.Release(within(t), 2))
	available(t, sem, 2)
}
