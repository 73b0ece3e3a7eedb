package rfencedlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var (
	connect = callers.Connect
	within  = callers.Within
)

type maker func(c *redlatch.Client, name string, opts ...rfencedlock.Option) *rfencedlock.Lock

var makers = map[string]maker{"plain": rfencedlock.New, "fair": rfencedlock.NewFair}

// bubble runs a test for both makers in fake time. Each call to newLock uses a new client.
func bubble(t *testing.T, test func(t *testing.T, s *redistest.MiniServer, newLock func(...rfencedlock.Option) *rfencedlock.Lock)) {
	t.Helper()
	for name, newLock := range makers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := redistest.Mini(t, embedded.WithInProcess())
				test(t, s, func(opts ...rfencedlock.Option) *rfencedlock.Lock {
					return newLock(callers.InProcess(t, s), "lock", opts...)
				})
			})
		})
	}
}

func take(t *testing.T, l *rfencedlock.Lock, opts ...rlock.Option) *rfencedlock.Hold {
	t.Helper()
	hold, err := l.Lock(within(t), opts...)
	require.NoError(t, err)
	return hold
}

func lastToken(t *testing.T, l *rfencedlock.Lock) int64 {
	t.Helper()
	token, err := l.Token(t.Context())
	require.NoError(t, err)
	return token
}

// nothingHeld waits for uncertain calls, and checks that the lock is free and its queue is empty.
func nothingHeld(t *testing.T, s *redistest.MiniServer) {
	t.Helper()
	time.Sleep(time.Minute)
	require.Zero(t, s.Do(t, "EXISTS", "lock", codec.QueueKey("lock"), codec.TimeoutKey("lock")))
}
