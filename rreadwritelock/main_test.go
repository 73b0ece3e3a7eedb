package rreadwritelock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// soon is far more than anything takes that is waited for.
const soon = 30 * time.Second

func connect(t *testing.T, url string, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	c, err := redlatch.Open(t.Context(), url, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

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

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	t.Cleanup(cancel)
	return ctx
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
	require.Eventually(t, func() bool {
		pair, _ := s.Do(t, "PUBSUB", "NUMSUB", codec.ReadWriteChannel(rw.Name())).([]any)
		return len(pair) == 2 && pair[1] == n
	}, soon, 5*time.Millisecond, "they do not listen")
}

// acquired is what a waiter ends with.
type acquired struct {
	hold *rlock.Hold
	err  error
}

// later waits for the lock on a goroutine of its own.
func later(ctx context.Context, l *rlock.Lock, opts ...rlock.Option) <-chan acquired {
	came := make(chan acquired, 1)
	go func() {
		h, err := l.Lock(ctx, opts...)
		came <- acquired{h, err}
	}()
	return came
}

func must(t *testing.T, came <-chan acquired, bound time.Duration) *rlock.Hold {
	t.Helper()
	select {
	case a := <-came:
		require.NoError(t, a.err)
		return a.hold
	case <-time.After(bound):
		require.FailNow(t, "it does not come")
		return nil
	}
}
