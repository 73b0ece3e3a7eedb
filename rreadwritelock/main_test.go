package rreadwritelock_test

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
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const soon = callers.Soon

// What the tests of all kinds share.
var (
	connect = callers.Connect
	within  = callers.Within
)

// newLock returns a read/write lock with a name of its own, on a client of its own.
func newLock(t *testing.T, s *redistest.Server, opts ...redlatch.Option) *rreadwritelock.Lock {
	t.Helper()
	return rreadwritelock.New(connect(t, s.URL(), opts...), redistest.Key(t))
}

// same returns the same lock on another client.
func same(t *testing.T, s *redistest.Server, rw *rreadwritelock.Lock, opts ...redlatch.Option) *rreadwritelock.Lock {
	t.Helper()
	return rreadwritelock.New(connect(t, s.URL(), opts...), rw.Name())
}

func take(t *testing.T, l *rlock.Lock, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	h, err := l.Lock(within(t), opts...)
	require.NoError(t, err)
	return h
}

// enter takes the lock with the proof of a hold.
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

// refused holds that the lock cannot be had now.
func refused(t *testing.T, l *rlock.Lock) {
	t.Helper()
	_, err := l.TryLock(within(t))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
}

// free holds that nothing of the lock is left on the server, after a while.
func free(t *testing.T, s *redistest.Server, rw *rreadwritelock.Lock) {
	t.Helper()
	assert.Eventually(t, func() bool {
		keys, _ := s.Do(t, "KEYS", "*"+rw.Name()+"*").([]any)
		return len(keys) == 0
	}, soon, 5*time.Millisecond, "%s is left on the server", rw.Name())
}

// waiting waits until so many connections listen to the lock.
func waiting(t *testing.T, s *redistest.Server, rw *rreadwritelock.Lock, n int64) {
	t.Helper()
	callers.Listening(t, s, codec.ReadWriteChannel(rw.Name()), n)
}

// acquired is what a waiter ends with.
type acquired = callers.Acquired[*rlock.Hold]

// later waits for the lock on a goroutine of its own.
func later(ctx context.Context, l *rlock.Lock, opts ...rlock.Option) <-chan acquired {
	return callers.Later(func() (*rlock.Hold, error) { return l.Lock(ctx, opts...) })
}

func must(t *testing.T, came <-chan acquired, bound time.Duration) *rlock.Hold {
	t.Helper()
	return callers.Must(t, came, bound)
}
