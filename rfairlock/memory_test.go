package rfairlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// A server without memory refuses what may need some. To give a hold up needs none. Not parallel:
// its parts share the server's memory.
func TestHoldsAreGivenUpOnAServerWithoutMemory(t *testing.T) {
	s := redistest.Start(t)
	l := rfairlock.New(connect(t, s.URL()), "job")
	full := func(bytes int) { s.Do(t, "CONFIG", "SET", "maxmemory", bytes) }
	giveUp := func(t *testing.T, inner, outer *rlock.Hold) {
		t.Helper()
		full(1)
		err := inner.Unlock()
		last := outer.Unlock()
		full(0)
		require.NoError(t, err, "the inner hold")
		require.NoError(t, last)
		require.EqualValues(t, 0, s.Do(t, "EXISTS", l.Name()))
	}
	t.Run("entered again", func(t *testing.T) {
		outer := take(t, l)
		inner, err := l.Lock(outer.Context(t.Context()))
		require.NoError(t, err)
		giveUp(t, inner, outer)
	})
	t.Run("of an owner that was given", func(t *testing.T) {
		owner, err := redlatch.ParseOwner("11111111-1111-4111-8111-111111111111:1")
		require.NoError(t, err)
		outer := take(t, l, rlock.WithOwner(owner), rlock.WithLease(time.Minute))
		giveUp(t, take(t, l, rlock.WithOwner(owner), rlock.WithLease(time.Minute)), outer)
	})
}
