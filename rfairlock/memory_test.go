package rfairlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// filled makes a server refuse what may need memory, until it is called again with 0.
func filled(t *testing.T, s *redistest.Server) func(bytes int) {
	t.Helper()
	return func(bytes int) { s.Do(t, "CONFIG", "SET", "maxmemory", bytes) }
}

// Not parallel: its parts share the server's memory.
func TestFairHoldsAreGivenUpOnAServerWithoutMemory(t *testing.T) {
	s := redistest.Start(t)
	c := connect(t, s.URL())
	full := filled(t, s)
	t.Run("an inner hold", func(t *testing.T) {
		l := rfairlock.New(c, "nested")
		outer := take(t, l)
		inner, err := l.Lock(outer.Context(t.Context()))
		require.NoError(t, err)
		full(1)
		err = inner.Unlock()
		require.NoError(t, outer.Unlock())
		full(0)
		require.NoError(t, err)
	})
	owner, err := redlatch.ParseOwner("11111111-1111-4111-8111-111111111111:1")
	require.NoError(t, err)
	t.Run("a hold of an owner that was given", func(t *testing.T) {
		l := rfairlock.New(c, "given")
		outer := take(t, l, rlock.WithOwner(owner), rlock.WithLease(forever))
		inner := take(t, l, rlock.WithOwner(owner), rlock.WithLease(forever))
		full(1)
		first, second := inner.Unlock(), outer.Unlock()
		full(0)
		require.NoError(t, first)
		require.NoError(t, second)
		require.False(t, locked(t, s, l.Name()))
	})
	t.Run("a hold that is gone", func(t *testing.T) {
		l := rfairlock.New(c, "gone")
		full(1)
		err := l.UnlockAs(t.Context(), owner)
		full(0)
		require.ErrorIs(t, err, redlatch.ErrNotHeld)
	})
}

func TestAPlaceIsGivenUpOnAServerWithoutMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l := rfairlock.New(connect(t, s.URL(), noPoll()), "queued")
	hold := take(t, l)
	ctx, cancel := context.WithCancel(t.Context())
	leaves := queueUp(ctx, t, s, l, 1)[0]
	stays := queueUp(t.Context(), t, s, l, 1)[0]
	full := filled(t, s)
	full(1)
	cancel()
	require.ErrorIs(t, leaves.failed(t, soon), context.Canceled)
	awaitQueue(t, s, l.Name(), 1)
	require.NoError(t, hold.Unlock())
	require.NoError(t, stays.acquired(t, promptly).Unlock())
	full(0)
	requireNoTrace(t, s, l.Name())
}

// A heartbeat comes every five seconds, and puts a deadline off to fifteen from then.
func TestAPlaceIsKeptOnAServerWithoutMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l := rfairlock.New(connect(t, s.URL(), noPoll()), "kept")
	hold := take(t, l)
	waits := queueUp(t.Context(), t, s, l, 1)[0]
	owner := queueOf(t, s, l.Name())[0]
	due := time.Now().Add(6 * time.Second)
	s.Do(t, "ZADD", codec.TimeoutKey(l.Name()), due.UnixMilli(), owner)
	full := filled(t, s)
	full(1)
	until(t, soon, "the heartbeat", func() bool { return deadlinesOf(t, s, l.Name())[owner] > due.Add(3*time.Second).UnixMilli() })
	full(0)
	require.NoError(t, hold.Unlock())
	require.NoError(t, waits.acquired(t, promptly).Unlock())
}
