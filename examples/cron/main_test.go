package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// machine returns the lock as another machine sees it.
func machine(t *testing.T, s *redistest.Server, key string) *rlock.Lock {
	t.Helper()
	client, err := redlatch.Open(t.Context(), s.URL())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return rlock.New(client, key)
}

func TestCronJobRunsOncePerPeriod(t *testing.T) {
	t.Parallel()
	s, key := redistest.Shared(t), redistest.Key(t)
	var jobs, did atomic.Int64
	var machines sync.WaitGroup
	for range 8 {
		lock := machine(t, s, key)
		machines.Go(func() {
			ok, err := once(t.Context(), lock, func(context.Context) error { jobs.Add(1); return nil })
			if ok {
				did.Add(1)
			}
			assert.NoError(t, err)
		})
	}
	machines.Wait()
	require.EqualValues(t, 1, jobs.Load())
	require.EqualValues(t, 1, did.Load())

	left, err := machine(t, s, key).TTL(t.Context())
	require.NoError(t, err)
	require.InDelta(t, (period - slack).Seconds(), left.Seconds(), 20, "it stays for the period")
}

func TestFailedCronJobRunsOnAnotherMachine(t *testing.T) {
	t.Parallel()
	s, key := redistest.Shared(t), redistest.Key(t)
	broken := errors.New("out of paper")
	did, err := once(t.Context(), machine(t, s, key), func(context.Context) error { return broken })
	require.True(t, did)
	require.ErrorIs(t, err, broken)

	did, err = once(t.Context(), machine(t, s, key), func(context.Context) error { return nil })
	require.NoError(t, err)
	require.True(t, did)
}

func TestCronProgramReportsOtherProcess(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	require.NoError(t, run(t.Context(), s.URL()))
	require.NoError(t, run(t.Context(), s.URL()))
	left, err := machine(t, s, "cron-example").TTL(t.Context())
	require.NoError(t, err)
	require.Greater(t, left, 30*time.Minute)
}
