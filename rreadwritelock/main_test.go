package rreadwritelock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const soon = callers.Soon

var (
	connect = callers.Connect
	within  = callers.Within
	must    = callers.Must[*rlock.Hold]
)

// inMemory returns a lock on a new server for fake time.
func inMemory(t *testing.T, opts ...redlatch.Option) (*redistest.MiniServer, *rreadwritelock.Lock) {
	t.Helper()
	s := redistest.Mini(t, embedded.WithInProcess())
	return s, newLock(t, s, opts...)
}

func clientOf(t *testing.T, s redistest.Target, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	if mini, ok := s.(*redistest.MiniServer); ok {
		return callers.InProcess(t, mini, opts...)
	}
	return connect(t, s.URL(), opts...)
}

func newLock(t *testing.T, s redistest.Target, opts ...redlatch.Option) *rreadwritelock.Lock {
	t.Helper()
	return rreadwritelock.New(clientOf(t, s, opts...), redistest.Key(t))
}

func same(t *testing.T, s redistest.Target, rw *rreadwritelock.Lock, opts ...redlatch.Option) *rreadwritelock.Lock {
	t.Helper()
	return rreadwritelock.New(clientOf(t, s, opts...), rw.Name())
}

func take(t *testing.T, l *rlock.Lock, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	h, err := l.Lock(within(t), opts...)
	require.NoError(t, err)
	return h
}

// enter acquires the lock with the context of a hold.
func enter(t *testing.T, l *rlock.Lock, outer *rlock.Hold, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	h, err := l.Lock(outer.Context(within(t)), opts...)
	require.NoError(t, err)
	return h
}

func unlock(t *testing.T, holds ...*rlock.Hold) {
	t.Helper()
	for _, h := range holds {
		require.NoError(t, h.Unlock())
	}
}

func refused(t *testing.T, l *rlock.Lock) {
	t.Helper()
	_, err := l.TryLock(within(t))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
}

// lost waits until the hold's context ends, for at most bound.
func lost(t *testing.T, h *rlock.Hold, bound time.Duration) {
	t.Helper()
	select {
	case <-h.Context(t.Context()).Done():
		require.ErrorIs(t, h.Err(), redlatch.ErrLost)
	case <-time.After(bound):
		require.FailNow(t, "the hold is not lost")
	}
}

// free waits until nothing that belongs to the lock is left on the server.
func free(t *testing.T, s redistest.Target, rw *rreadwritelock.Lock) {
	t.Helper()
	require.Eventually(t, func() bool {
		keys, _ := s.Do(t, "KEYS", "*"+rw.Name()+"*").([]any)
		return len(keys) == 0
	}, soon, 5*time.Millisecond, "%s remains on the server", rw.Name())
}

func millis(t *testing.T, s redistest.Target, key string) int64 {
	t.Helper()
	ms, _ := s.Do(t, "PTTL", key).(int64)
	return ms
}

type acquired = callers.Acquired[*rlock.Hold]

func later(ctx context.Context, l *rlock.Lock, opts ...rlock.Option) <-chan acquired {
	return callers.Later(func() (*rlock.Hold, error) { return l.Lock(ctx, opts...) })
}

// queued is like later, but for a bubble, and returns when the caller is waiting.
func queued(ctx context.Context, l *rlock.Lock, opts ...rlock.Option) <-chan acquired {
	came := later(ctx, l, opts...)
	synctest.Wait()
	return came
}

// cuttable opens a client whose connection to the server can be cut.
func cuttable(t *testing.T, s *redistest.MiniServer, opts ...redlatch.Option) (c *redlatch.Client, cut func(on bool)) {
	t.Helper()
	var away atomic.Bool
	c, err := redlatch.New(func(ctx context.Context) (redis.Conn, error) {
		if away.Load() {
			return nil, errors.New("away")
		}
		return s.Server.Dial(ctx)
	}, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c, func(on bool) {
		away.Store(on)
		if on {
			s.DropConnections()
			synctest.Wait()
		}
	}
}
