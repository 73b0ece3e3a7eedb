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

const soon = callers.Soon

var (
	connect = callers.Connect
	within  = callers.Within
)

// maker is New or NewFair.
type maker func(c *redlatch.Client, name string, opts ...rfencedlock.Option) *rfencedlock.Lock

var makers = map[string]maker{"plain": rfencedlock.New, "fair": rfencedlock.NewFair}

// both runs a test for the plain and the fair lock on the shared server.
func both(t *testing.T, test func(t *testing.T, s *redistest.Server, newLock maker)) {
	t.Helper()
	s := redistest.Shared(t)
	for name, newLock := range makers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s, newLock)
		})
	}
}

// bubble runs a test for both in fake time. Each call of newLock uses another client.
func bubble(t *testing.T, test func(t *testing.T, s *redistest.MiniServer, newLock func() *rfencedlock.Lock)) {
	t.Helper()
	for name, newLock := range makers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := redistest.Mini(t, embedded.WithInProcess())
				test(t, s, func() *rfencedlock.Lock { return newLock(callers.InProcess(t, s), "lock") })
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

// lastToken returns the counter.
func lastToken(t *testing.T, l *rfencedlock.Lock) int64 {
	t.Helper()
	token, err := l.Token(t.Context())
	require.NoError(t, err)
	return token
}

// nothingHeld waits until the lock is free and its queue is empty.
func nothingHeld(t *testing.T, s redistest.Target, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, key := range []string{name, codec.QueueKey(name), codec.TimeoutKey(name)} {
			if s.Do(t, "EXISTS", key) != any(int64(0)) {
				return false
			}
		}
		return true
	}, soon, 5*time.Millisecond, "something of %s is left on the server", name)
}
