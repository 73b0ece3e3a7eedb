// Package kinds_test tests what all kinds of locks, semaphores and latches have in common.
package kinds_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// The renewals are due at the same time.
func TestKindsOfOneClientAreRenewedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		c := callers.InProcess(t, srv)
		permits := rsemaphore.NewExpirable(c, "permits")
		_, err := permits.TrySetPermits(t.Context(), 1)
		require.NoError(t, err)
		permit, err := permits.TryAcquire(t.Context(), 1)
		require.NoError(t, err)
		var holds []*rlock.Hold
		for _, l := range []*rlock.Lock{
			rlock.New(c, "plain"), rfairlock.New(c, "fair"), rreadwritelock.New(c, "read").Read(), rreadwritelock.New(c, "write").Write(),
		} {
			hold, err := l.TryLock(t.Context())
			require.NoError(t, err)
			holds = append(holds, hold)
		}
		time.Sleep(5 * time.Minute)
		for _, hold := range holds {
			require.NoError(t, hold.Unlock())
		}
		require.NoError(t, permit.Release())
	})
}

// Not parallel: the subtests share the server's memory.
func TestHoldsAreGivenUpOnAServerWithoutMemory(t *testing.T) {
	s := redistest.Start(t)
	c := callers.Connect(t, s.URL())
	full := func(bytes int) { s.Do(t, "CONFIG", "SET", "maxmemory", bytes) }
	owner, err := redlatch.ParseOwner("11111111-1111-4111-8111-111111111111:1")
	require.NoError(t, err)
	for kind, l := range map[string]*rlock.Lock{
		"plain": rlock.New(c, "plain"),
		"fair":  rfairlock.New(c, "fair"),
		"read":  rreadwritelock.New(c, "read").Read(),
		"write": rreadwritelock.New(c, "write").Write(),
	} {
		for name, opts := range map[string][]rlock.Option{"": nil, " of a given owner": {rlock.WithOwner(owner), rlock.WithLease(time.Minute)}} {
			t.Run(kind+name, func(t *testing.T) {
				outer, err := l.TryLock(t.Context(), opts...)
				require.NoError(t, err)
				ctx := t.Context()
				if opts == nil {
					ctx = outer.Context(ctx)
				}
				inner, err := l.TryLock(ctx, opts...)
				require.NoError(t, err)
				full(1)
				first, second, third := inner.Unlock(), outer.Unlock(), l.UnlockAs(t.Context(), owner)
				full(0)
				require.NoError(t, first)
				require.NoError(t, second)
				require.ErrorIs(t, third, redlatch.ErrNotHeld)
				require.EqualValues(t, 0, s.Do(t, "EXISTS", l.Name()))
			})
		}
	}
}
