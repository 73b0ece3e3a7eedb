package rfencedlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const soon = callers.Soon

// What the tests of all kinds share.
var (
	connect = callers.Connect
	within  = callers.Within
)

// maker is New or NewFair.
type maker func(c *redlatch.Client, name string, opts ...rfencedlock.Option) *rfencedlock.Lock

// both runs a test for the plain and the fair kind, on the shared server.
func both(t *testing.T, test func(t *testing.T, s *redistest.Server, newLock maker)) {
	t.Helper()
	s := redistest.Shared(t)
	for name, newLock := range map[string]maker{"plain": rfencedlock.New, "fair": rfencedlock.NewFair} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s, newLock)
		})
	}
}

// take takes a lock that is free soon.
func take(t *testing.T, l *rfencedlock.Lock, opts ...rlock.Option) *rfencedlock.Hold {
	t.Helper()
	hold, err := l.Lock(within(t), opts...)
	require.NoError(t, err)
	return hold
}

// lastToken is what the server's counter holds.
func lastToken(t *testing.T, l *rfencedlock.Lock) int64 {
	t.Helper()
	token, err := l.Token(t.Context())
	require.NoError(t, err)
	return token
}

// nothingHeld checks that the lock is free and that its queue is empty.
func nothingHeld(t *testing.T, s interface {
	Do(tb testing.TB, cmd string, args ...any) any
}, name string,
) {
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
