package rreadwritelock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// A server without memory refuses what may need some. To give a hold up needs none. Not parallel:
// its parts share the server's memory.
func TestHoldsAreGivenUpOnAServerWithoutMemory(t *testing.T) {
	s := redistest.Start(t)
	c := connect(t, s.URL())
	full := func(bytes int) { s.Do(t, "CONFIG", "SET", "maxmemory", bytes) }
	for what, l := range map[string]*rlock.Lock{
		"plain": rlock.New(c, "plain"),
		"read":  rreadwritelock.New(c, "read").Read(),
		"write": rreadwritelock.New(c, "write").Write(),
	} {
		t.Run(what, func(t *testing.T) {
			outer := take(t, l)
			inner := enter(t, l, outer)
			full(1)
			err := inner.Unlock()
			require.NoError(t, outer.Unlock())
			full(0)
			require.NoError(t, err, "the inner hold")
		})
		t.Run(what+" of an owner that was given", func(t *testing.T) {
			owner, err := redlatch.ParseOwner("11111111-1111-4111-8111-111111111111:1")
			require.NoError(t, err)
			h := take(t, l, rlock.WithOwner(owner), rlock.WithLease(time.Minute))
			full(1)
			err = h.Unlock()
			full(0)
			require.NoError(t, err)
			require.EqualValues(t, 0, s.Do(t, "EXISTS", l.Name()))
		})
	}
}

// A release of what is not held any more says so, as on any server.
func TestReleasesOfNothingOnAServerWithoutMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := connect(t, s.URL())
	owner, err := redlatch.ParseOwner("11111111-1111-4111-8111-111111111111:1")
	require.NoError(t, err)
	s.Do(t, "CONFIG", "SET", "maxmemory", 1)
	for what, l := range map[string]*rlock.Lock{
		"read":  rreadwritelock.New(c, "read").Read(),
		"write": rreadwritelock.New(c, "write").Write(),
	} {
		require.ErrorIs(t, l.UnlockAs(t.Context(), owner), redlatch.ErrNotHeld, what)
	}
}
