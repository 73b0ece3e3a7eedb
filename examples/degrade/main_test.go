package main

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func lockOf(t *testing.T, s *redistest.MiniServer, key string) *rlock.Lock {
	t.Helper()
	client, err := redlatch.New(s.Server.Dial, redlatch.WithCommandTimeout(silence))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return rlock.New(client, key)
}

// inBubble calls body with a server on fake time.
func inBubble(t *testing.T, body func(t *testing.T, s *redistest.MiniServer)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { body(t, redistest.Mini(t, embedded.WithInProcess())) })
}

func TestBothPoliciesRejectHeldLock(t *testing.T) {
	inBubble(t, bothPoliciesRefuse)
}

func bothPoliciesRefuse(t *testing.T, s *redistest.MiniServer) {
	t.Helper()
	const key = "held"
	hold, err := lockOf(t, s, key).Lock(t.Context())
	require.NoError(t, err)
	for _, when := range []policy{failClosed, failOpen} {
		err := guarded(t.Context(), lockOf(t, s, key), when, func(context.Context) error {
			t.Errorf("%s: worked concurrently with the holder", when)
			return nil
		})
		require.ErrorIs(t, err, redlatch.ErrNotAcquired, when)
	}
	require.NoError(t, hold.Unlock())
}

func TestBothPoliciesRejectKeyOfAnotherType(t *testing.T) {
	inBubble(t, func(t *testing.T, s *redistest.MiniServer) {
		t.Helper()
		s.Do(t, "SET", "text", "x")
		s.Do(t, "HSET", "hash", "x", "1")
		for _, key := range []string{"text", "hash"} {
			for _, when := range []policy{failClosed, failOpen} {
				err := guarded(t.Context(), lockOf(t, s, key), when, func(context.Context) error {
					t.Errorf("%s: worked without the lock", when)
					return nil
				})
				require.ErrorIs(t, err, redlatch.ErrWrongType, when)
			}
		}
	})
}

func TestFailOpenRunsWithoutRedis(t *testing.T) { inBubble(t, withoutRedis) }

func withoutRedis(t *testing.T, s *redistest.MiniServer) {
	t.Helper()
	s.Close()
	worked := map[policy]bool{}
	for _, when := range []policy{failClosed, failOpen} {
		err := guarded(t.Context(), lockOf(t, s, "any"), when, func(context.Context) error {
			worked[when] = true
			return nil
		})
		if when == failClosed {
			require.ErrorIs(t, err, redlatch.ErrNotSent)
		} else {
			require.NoError(t, err)
		}
	}
	require.Equal(t, map[policy]bool{failOpen: true}, worked)
}

func TestOutageEndsOnlyFailClosedWork(t *testing.T) { inBubble(t, redisDies) }

func redisDies(t *testing.T, s *redistest.MiniServer) {
	t.Helper()
	closed, open := lockOf(t, s, "closed"), lockOf(t, s, "open")
	ended := make(chan error, 2)
	started := make(chan struct{}, 2)
	release := make(chan struct{})
	work := func(ctx context.Context) error {
		started <- struct{}{}
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	go func() { ended <- guarded(t.Context(), open, failOpen, work) }()
	<-started
	lost := make(chan error, 1)
	go func() { lost <- guarded(t.Context(), closed, failClosed, work) }()
	<-started
	s.Close()
	require.ErrorIs(t, <-lost, redlatch.ErrLost)
	require.Empty(t, ended, "the other still works")
	close(release)
	require.NoError(t, <-ended)
}

func TestDegradeProgramWorksUnderTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	require.NoError(t, run(t.Context(), s.URL(), failOpen))
	require.NoError(t, run(t.Context(), s.URL(), failClosed))
	require.EqualValues(t, 0, s.Do(t, "EXISTS", "degrade-example"))
}
