package rsemaphore_test

import (
	"context"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
)

func TestPermitsAcquireAndRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, open := bubble(t, 3)
		sem, other := open(), open()
		made, err := other.TrySetPermits(within(t), 9)
		require.NoError(t, err)
		require.False(t, made)
		two := take(t, sem, 2)
		_, err = other.TryAcquire(within(t), 2)
		require.ErrorIs(t, err, redlatch.ErrNotAcquired, "one is left")
		one := take(t, other, 1)
		counts(t, sem, 0, 3)
		require.Len(t, two.IDs(), 2)
		for _, id := range append(two.IDs(), one.IDs()...) {
			raw, err := hex.DecodeString(id)
			require.NoError(t, err)
			require.NotNil(t, s.Do(t, "ZSCORE", protocol.PermitsKey(sem.Name()), raw), "as Redisson has it")
		}
		for _, full := range []*rsemaphore.Expirable{sem, other} {
			_, err = full.TryAcquire(within(t), 1)
			require.ErrorIs(t, err, redlatch.ErrNotAcquired)
			require.ErrorContains(t, err, "try-acquire")
			_, err = full.Acquire(within(t), 1, rlock.WithWait(10*time.Millisecond))
			require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		}
		ctx := two.Context(t.Context())
		require.NoError(t, two.Err())
		require.Positive(t, two.Remaining())
		require.NoError(t, two.Release())
		require.NoError(t, two.Release())
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrNotHeld)
		counts(t, other, 2, 3)
		release(t, one)
		whole(t, sem, 3)
	})
}

func TestDoReleasesOnPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, open := bubble(t, 2)
		sem := open(noPoll())
		fault := errors.New("fault")
		require.ErrorIs(t, sem.Do(within(t), 2, func(context.Context) error {
			counts(t, sem, 0, 2)
			return fault
		}), fault)
		require.Panics(t, func() {
			_ = sem.Do(within(t), 1, func(context.Context) error { panic("it fails") })
		})
		whole(t, sem, 2)
	})
}

func TestPermitIDReleasedOnceByAnyClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, open := bubble(t, 3)
		sem := open(noPoll())
		h := take(t, sem, 2)
		ids := h.IDs()
		require.NoError(t, h.LetExpire())
		counts(t, sem, 1, 3)
		n, err := open().Release(within(t), append(ids, ids...)...)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		_, err = sem.Release(within(t), ids...)
		require.ErrorIs(t, err, redlatch.ErrNotHeld)
		require.NoError(t, h.Release(), "it was already released")
		whole(t, sem, 3)
	})
}

func TestExtendLengthensLeasesOfAllPermitsOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, open := bubble(t, 3)
		sem, other := open(noPoll()), open(noPoll())
		h, rest := take(t, sem, 2, rlock.WithLease(time.Minute)), take(t, sem, 1, rlock.WithLease(time.Hour))
		ids := h.IDs()
		require.NoError(t, h.LetExpire())
		left := func(want time.Duration, ids ...string) {
			t.Helper()
			in, err := sem.Inspect(within(t))
			require.NoError(t, err)
			for _, p := range in.Permits {
				if slices.Contains(ids, p.ID) {
					require.Equal(t, want, p.Left)
				}
			}
		}
		require.NoError(t, other.Extend(within(t), 2*time.Minute, ids...))
		left(2*time.Minute, ids...)
		require.NoError(t, other.Extend(within(t), time.Second, ids...), "a lease is never shortened")
		left(2*time.Minute, ids...)
		left(time.Hour, rest.IDs()...)
		time.Sleep(90 * time.Second)
		counts(t, sem, 0, 3)
		_, err := other.Release(within(t), ids[0])
		require.NoError(t, err)
		require.ErrorIs(t, other.Extend(within(t), time.Hour, ids...), redlatch.ErrNotHeld)
		left(30*time.Second, ids[1])
		for _, lease := range []time.Duration{-time.Second, 0, time.Microsecond, math.MaxInt64} {
			require.ErrorIs(t, other.Extend(within(t), lease, ids[1]), redlatch.ErrInvalid)
		}
		require.ErrorIs(t, other.Extend(within(t), time.Second), redlatch.ErrInvalid)
		require.ErrorIs(t, other.Extend(within(t), time.Second, "xyz"), redlatch.ErrInvalid)
		s.Do(t, "DEL", protocol.PermitsKey(sem.Name()))
		require.ErrorIs(t, other.Extend(within(t), time.Hour, ids[1]), redlatch.ErrNotHeld)
		_ = rest.LetExpire()
	})
}

func TestPermitTotalChangesWhilePermitsAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, open := bubble(t, 3)
		sem := open(noPoll())
		h := take(t, sem, 3)
		require.NoError(t, sem.SetPermits(within(t), 2))
		counts(t, sem, -1, 2)
		waiter := later(within(t), sem, 1)
		waits(t, waiter)
		require.NoError(t, sem.AddPermits(within(t), 1))
		counts(t, sem, 0, 3)
		require.NoError(t, sem.SetPermits(within(t), 3)) // it may be repeated
		require.NoError(t, sem.SetPermits(within(t), 3))
		waits(t, waiter)
		require.NoError(t, sem.SetPermits(within(t), 4))
		release(t, must(t, waiter), h)
		require.NoError(t, sem.AddPermits(within(t), -4))
		counts(t, sem, 0, 0)
		_, err := sem.TryAcquire(within(t), 1)
		require.ErrorIs(t, err, redlatch.ErrNotAcquired, "callers wait for a semaphore without permits")
	})
}

func TestWaitersWaitForUnsetSemaphore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, open := bubble(t, 0)
		sem := open(noPoll())
		srv.Do(t, "DEL", "job")
		counts(t, sem, 0, 0)
		_, err := sem.TryAcquire(t.Context(), 1)
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		waiter := later(t.Context(), sem, 2)
		made, err := open().TrySetPermits(t.Context(), 2)
		require.NoError(t, err)
		require.True(t, made)
		release(t, must(t, waiter))
		whole(t, sem, 2)
	})
}

func TestInvalidInputRejectedBeforeAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, open := bubble(t, 3)
		sem := open(noPoll())
		for _, n := range []int{math.MinInt, -1, 0, 1001, math.MaxInt} {
			_, err := sem.Acquire(within(t), n)
			require.ErrorIs(t, err, redlatch.ErrInvalid)
			_, err = sem.TryAcquire(within(t), n)
			require.ErrorIs(t, err, redlatch.ErrInvalid)
		}
		for _, n := range []int{math.MinInt, -1, math.MaxInt32 + 1, math.MaxInt} {
			_, err := sem.TrySetPermits(within(t), n)
			require.ErrorIs(t, err, redlatch.ErrInvalid)
			require.ErrorIs(t, sem.SetPermits(within(t), n), redlatch.ErrInvalid)
		}
		require.ErrorIs(t, sem.AddPermits(within(t), math.MaxInt), redlatch.ErrInvalid)
		_, err := sem.Acquire(within(t), 4)
		require.ErrorIs(t, err, rsemaphore.ErrTooMany)
		require.ErrorIs(t, err, redlatch.ErrInvalid)
		require.ErrorContains(t, err, "4 of 3")
		for _, ids := range [][]string{nil, {""}, {"ab"}, {"xyz"}, {string(make([]byte, 32))}} {
			_, err = sem.Release(within(t), ids...)
			require.ErrorIs(t, err, redlatch.ErrInvalid)
		}
		_, err = sem.TryAcquire(within(t), 1, rlock.WithWait(time.Second))
		require.ErrorIs(t, err, redlatch.ErrInvalid)
		for _, o := range []rlock.Option{
			rlock.WithLease(-time.Second), rlock.WithOwner(codec.NewOwner(uuid.UUID{1}, 1)), rlock.WithPolling(time.Second),
		} {
			_, err = sem.Acquire(within(t), 1, o)
			require.ErrorIs(t, err, redlatch.ErrInvalid)
		}
		whole(t, sem, 3)
	})
}

func TestWrongKeyTypeIsReported(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for what, spoil := range map[string]func(name string){
		"a hash":            func(name string) { s.Do(t, "HSET", name, "a", "1") },
		"no number":         func(name string) { s.Do(t, "SET", name, "seven") },
		"a list of permits": func(name string) { s.Do(t, "SET", name, "7"); s.Do(t, "RPUSH", protocol.PermitsKey(name), "a") },
	} {
		sem := rsemaphore.NewExpirable(connect(t, s.URL()), redistest.Key(t)+what)
		spoil(sem.Name())
		before := s.Do(t, "DUMP", sem.Name())
		_, err := sem.Acquire(within(t), 1)
		require.ErrorIs(t, err, redlatch.ErrWrongType, what)
		require.ErrorIs(t, sem.SetPermits(within(t), 3), redlatch.ErrWrongType, what)
		_, err = sem.Available(within(t))
		require.ErrorIs(t, err, redlatch.ErrWrongType, what)
		_, err = sem.Release(within(t), "00112233445566778899aabbccddeeff")
		require.ErrorIs(t, err, redlatch.ErrWrongType, what)
		require.ErrorIs(t, sem.Extend(within(t), time.Minute, "00112233445566778899aabbccddeeff"), redlatch.ErrNotHeld, what)
		if what != "a list of permits" {
			counter := rsemaphore.New(connect(t, s.URL()), sem.Name())
			require.ErrorIs(t, counter.Acquire(within(t), 1), redlatch.ErrWrongType, what)
			require.ErrorIs(t, counter.Release(within(t), 1), redlatch.ErrWrongType, what)
			_, err = counter.ReleaseIfExists(within(t), 1)
			require.ErrorIs(t, err, redlatch.ErrWrongType, what)
			_, err = counter.Drain(within(t))
			require.ErrorIs(t, err, redlatch.ErrWrongType, what)
		}
		require.Equal(t, before, s.Do(t, "DUMP", sem.Name()), what)
	}
}

func TestInspectReportsSemaphore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, open := bubble(t, 0)
		s.Do(t, "DEL", "job")
		sem := open()
		in, err := sem.Inspect(within(t))
		require.NoError(t, err)
		require.Equal(t, &rsemaphore.Inspection{}, in)
		require.NoError(t, sem.SetPermits(within(t), 5))
		short, long := take(t, sem, 1, rlock.WithLease(time.Minute)), take(t, sem, 1, rlock.WithLease(time.Hour))
		s.Do(t, "ZADD", protocol.PermitsKey(sem.Name()), protocol.PermitForever, "0123456789abcdef", 1, "fedcba9876543210")
		in, err = sem.Inspect(within(t))
		require.NoError(t, err)
		require.True(t, in.Exists)
		require.Equal(t, 3, in.Available)
		require.Equal(t, 4, in.Acquired)
		require.Equal(t, redlatch.NoTTL, in.TTL)
		require.Len(t, in.Permits, 4)
		require.Equal(t, rsemaphore.Permit{ID: "66656463626139383736353433323130"}, in.Permits[0], "it has expired")
		require.Equal(t, short.IDs()[0], in.Permits[1].ID)
		require.Equal(t, time.Minute, in.Permits[1].Left)
		require.Equal(t, long.IDs()[0], in.Permits[2].ID)
		require.Equal(t, rsemaphore.Permit{ID: "30313233343536373839616263646566", Left: redlatch.NoTTL}, in.Permits[3])
		release(t, short, long)
		s.Do(t, "SET", sem.Name(), "seven")
		_, err = sem.Inspect(within(t))
		require.ErrorIs(t, err, redlatch.ErrWrongType)
	})
}
