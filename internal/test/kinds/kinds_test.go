// Package kinds_test tests the behavior that all kinds of locks, semaphores and latches have in common.
package kinds_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// enter acquires an object and returns the call that releases it.
type enter func(ctx context.Context) (leave func() error, err error)

// object is a kind of lock, semaphore or latch. After one client has acquired it with hold, the wait of another client
// blocks.
type object struct {
	kind       string // as in error messages
	hold, wait func(c *redlatch.Client, name string) enter
}

func errOf[T any](_ T, err error) error { return err }

const (
	lockKind, readWriteKind, numberKind = "a plain, fair or fenced lock", "a read/write lock", "a semaphore or a count-down latch"
)

// locking converts a call that returns a hold to an enter.
func locking[H interface{ Unlock() error }](call func(context.Context, ...rlock.Option) (H, error), opts ...rlock.Option) enter {
	return func(ctx context.Context) (func() error, error) {
		h, err := call(ctx, opts...)
		if err != nil {
			return nil, err
		}
		return h.Unlock, nil
	}
}

func plain(c *redlatch.Client, name string) enter { return locking(rlock.New(c, name).Lock) }
func fair(c *redlatch.Client, name string) enter  { return locking(rfairlock.New(c, name).Lock) }
func fenced(c *redlatch.Client, name string) enter {
	return locking(rfencedlock.New(c, name).Lock)
}

func fencedFair(c *redlatch.Client, name string) enter {
	return locking(rfencedlock.NewFair(c, name).Lock)
}

func read(c *redlatch.Client, name string) enter {
	return locking(rreadwritelock.New(c, name).Read().Lock)
}

func write(c *redlatch.Client, name string) enter {
	return locking(rreadwritelock.New(c, name).Write().Lock)
}

func givenOwner(c *redlatch.Client, name string) enter {
	return locking(rlock.New(c, name).Lock, rlock.WithOwner(codec.NewOwner(c.ID(), 1)))
}

func multi(c *redlatch.Client, name string) enter {
	return locking(rmultilock.New(c, "j", name).Lock)
}

func counter(c *redlatch.Client, name string) enter {
	return func(ctx context.Context) (func() error, error) {
		s := rsemaphore.New(c, name)
		return func() error { return s.Release(context.WithoutCancel(ctx), 1) }, s.Acquire(ctx, 1)
	}
}

func permits(c *redlatch.Client, name string) enter {
	return func(ctx context.Context) (func() error, error) {
		hold, err := rsemaphore.NewExpirable(c, name).Acquire(ctx, 1)
		if err != nil {
			return nil, err
		}
		return hold.Release, nil
	}
}

var objects = map[string]object{
	"plain":       {lockKind, plain, plain},
	"given owner": {lockKind, plain, givenOwner},
	"fair":        {lockKind, fair, fair},
	"fenced":      {lockKind, fenced, fenced},
	"fenced fair": {lockKind, fencedFair, fencedFair},
	"multi":       {lockKind, plain, multi},
	"read":        {readWriteKind, write, read},
	"write":       {readWriteKind, read, write},
	"counter": {numberKind, func(c *redlatch.Client, name string) enter {
		return func(ctx context.Context) (func() error, error) {
			if _, err := rsemaphore.New(c, name).TrySetPermits(ctx, 1, 0); err != nil {
				return nil, err
			}
			return counter(c, name)(ctx)
		}
	}, counter},
	"permits": {numberKind, func(c *redlatch.Client, name string) enter {
		return func(ctx context.Context) (func() error, error) {
			if _, err := rsemaphore.NewExpirable(c, name).TrySetPermits(ctx, 1); err != nil {
				return nil, err
			}
			return permits(c, name)(ctx)
		}
	}, permits},
	"latch": {numberKind, func(c *redlatch.Client, name string) enter {
		return func(ctx context.Context) (func() error, error) {
			l := rlatch.New(c, name)
			return func() error { return l.CountDown(context.WithoutCancel(ctx)) }, errOf(l.TrySetCount(ctx, 1))
		}
	}, func(c *redlatch.Client, name string) enter {
		return func(ctx context.Context) (func() error, error) {
			return func() error { return nil }, rlatch.New(c, name).Wait(ctx)
		}
	}},
}

// pairs returns all pairs of a key of a and a key of b. With `make test`, it returns every fourth pair.
func pairs[A, B any](t *testing.T, a map[string]A, b map[string]B) (all [][2]string) {
	t.Helper()
	for _, first := range slices.Sorted(maps.Keys(a)) {
		for _, second := range slices.Sorted(maps.Keys(b)) {
			all = append(all, [2]string{first, second})
		}
	}
	return testlevel.Part(all, 4, t.Name())
}

// All renewals are due at the same time.
func TestKindsRenewTogether(t *testing.T) {
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

// The subtests are not parallel because they share the server's memory.
func TestUnlockSucceedsOnOutOfMemoryServer(t *testing.T) {
	s := redistest.Start(t)
	c := callers.Connect(t, s.URL())
	full := func(bytes int) { s.Do(t, "CONFIG", "SET", "maxmemory", bytes) }
	owner, err := codec.ParseOwner("11111111-1111-4111-8111-111111111111:1")
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
