package rmultilock_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

func TestMultiLockAcquiresAllOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		here, there := callers.InProcess(t, s), callers.InProcess(t, s)
		all := names(t, 4)
		l := rmultilock.New(here, all[2], all[0], all[1], all[0])
		require.Equal(t, []string{all[2], all[0], all[1]}, l.Names())

		h := take(t, l, rlock.WithLease(20*time.Second))
		for _, name := range all[:3] {
			held, err := rlock.New(there, name).IsLocked(within(t))
			require.NoError(t, err)
			require.True(t, held, name)
			ttl, err := rlock.New(there, name).TTL(within(t))
			require.NoError(t, err)
			require.InDelta(t, 20*time.Second, ttl, float64(2*time.Second), "the real lease")
			_, err = rlock.New(there, name).TryLock(within(t))
			require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		}
		require.Len(t, left(t, s, all), 3)
		require.NoError(t, h.Unlock())
		require.ErrorIs(t, h.Err(), redlatch.ErrNotHeld)
		require.NoError(t, h.Unlock(), "a second Unlock does nothing")
		free(t, s, all)

		one := takeOne(t, there, all[1])
		_, err := l.TryLock(within(t))
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		var refused *redlatch.LockError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, all[1], refused.Name)
		require.Equal(t, one.Owner(), refused.Holder)
		require.Len(t, left(t, s, all), 1, "no other lock was acquired")
		require.NoError(t, one.Unlock())
	})
}

func TestManyLocksTakeOneRoundTrip(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	all := names(t, 500)
	l := rmultilock.New(connect(t, s.URL()), all...)
	require.NoError(t, take(t, l).Unlock()) // the scripts are known
	before := s.CommandStats(t)["evalsha"]
	h := take(t, l)
	require.EqualValues(t, 1, s.CommandStats(t)["evalsha"]-before)
	require.Len(t, left(t, s, all), 500)
	require.NoError(t, h.Unlock())
	require.EqualValues(t, 2, s.CommandStats(t)["evalsha"]-before)
	free(t, s, all)
}

func TestWaiterAcquiresWhenLastLockIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		here, there := callers.InProcess(t, s, redlatch.WithPollCap(time.Hour)), callers.InProcess(t, s)
		all := names(t, 3)
		first, second := takeOne(t, there, all[0]), takeOne(t, there, all[2])
		came := later(within(t), rmultilock.New(here, all...))
		synctest.Wait()
		require.NoError(t, first.Unlock())
		synctest.Wait()
		require.Empty(t, came)
		require.Len(t, left(t, s, all), 1, "it holds none while it waits")
		require.NoError(t, second.Unlock())
		require.NoError(t, must(t, came).Unlock())
		free(t, s, all)
	})
}

func TestCanceledWaiterHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		here, there := callers.InProcess(t, s), callers.InProcess(t, s)
		all := names(t, 4)
		one := takeOne(t, there, all[3])
		l := rmultilock.Of(
			rlock.New(here, all[0]), rlock.New(here, all[1]), rfairlock.New(here, all[2]), rfairlock.New(here, all[3]+"x"))
		_, err := l.Lock(within(t), rlock.WithOwner(codec.NewOwner(here.ID(), 1)))
		require.ErrorIs(t, err, redlatch.ErrInvalid)

		fair, err := rfairlock.New(there, all[3]+"x").Lock(within(t))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		came := later(ctx, l)
		require.Eventually(t, func() bool { return len(left(t, s, all)) >= 7 }, soon, time.Millisecond, "three are held and one is queued")
		cancel()
		require.ErrorIs(t, (<-came).Err, context.Canceled)
		assert.Eventually(t, func() bool { return len(left(t, s, all)) == 2 }, soon, 5*time.Millisecond)

		began := time.Now()
		_, err = l.Lock(within(t), rlock.WithWait(300*time.Millisecond))
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.Less(t, time.Since(began), 5*time.Second)
		_, err = l.TryLock(within(t))
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		assert.Eventually(t, func() bool { return len(left(t, s, all)) == 2 }, soon, 5*time.Millisecond)
		require.NoError(t, fair.Unlock())
		require.NoError(t, one.Unlock())
		free(t, s, all)
	})
}

// In the callers' order they would deadlock.
func TestOppositeOrdersDoNotDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		all := names(t, 4)
		var inside [4]atomic.Int32
		var wg sync.WaitGroup
		ctx := within(t)
		for i := range 4 {
			c := callers.InProcess(t, s, redlatch.WithPollCap(time.Hour))
			given := slices.Clone(all)
			if i%2 == 1 {
				slices.Reverse(given)
			}
			var members []rmultilock.Member
			for _, name := range given {
				members = append(members, rfairlock.New(c, name)) // one script takes all plain locks
			}
			wg.Go(func() {
				l := rmultilock.Of(members...)
				for range testlevel.Rounds(8, 50) {
					err := l.Do(ctx, func(context.Context) error {
						for k := range inside {
							assert.EqualValues(t, 1, inside[k].Add(1))
						}
						for k := range inside {
							inside[k].Add(-1)
						}
						return nil
					})
					if !assert.NoError(t, err) {
						return
					}
				}
			})
		}
		wg.Wait()
		free(t, s, all)
	})
}

func unwrap(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

func TestMultiLockOfAllKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		c, there := callers.InProcess(t, s), callers.InProcess(t, s)
		all := names(t, 5)
		fenced, rw := rfencedlock.New(c, all[0]), rreadwritelock.New(c, all[1])
		l := rmultilock.Of(fenced, rw.Read(), rlock.New(c, all[2]), rfairlock.New(c, all[3]), rlock.New(c, all[4]))
		h := take(t, l)
		require.Positive(t, h.Token(fenced))
		require.Zero(t, h.Token(rw.Read()))
		require.Zero(t, h.Token(rw.Write()))
		reads, err := rreadwritelock.New(there, all[1]).Read().TryLock(within(t))
		require.NoError(t, err, "others can also read")
		require.NoError(t, reads.Unlock())
		for _, busy := range []interface {
			TryLock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error)
		}{rreadwritelock.New(there, all[1]).Write(), rlock.New(there, all[2]), rfairlock.New(there, all[3]), rlock.New(there, all[4])} {
			_, err := busy.TryLock(within(t))
			require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		}
		require.NoError(t, h.Unlock())
		s.Do(t, "DEL", "redisson_lock_token:{"+all[0]+"}")
		free(t, s, all)
	})
}

func TestContextAllowsReentryOfEachLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		c := callers.InProcess(t, s)
		all := names(t, 3)
		l := rmultilock.New(c, all[:2]...)
		h := take(t, l)
		ctx := h.Context(within(t))
		again, err := rlock.New(c, all[1]).Lock(ctx)
		require.NoError(t, err)
		require.NoError(t, again.Unlock())
		more, err := rmultilock.New(c, all...).Lock(ctx)
		require.NoError(t, err)
		require.NoError(t, h.Unlock())
		require.NoError(t, more.Err(), "an inner hold outlives the outer one")
		require.Len(t, left(t, s, all), 3)
		require.NoError(t, more.Unlock())
		free(t, s, all)
	})
}

func TestPanicReleasesAllLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		all := names(t, 2)
		c := callers.InProcess(t, s)
		l := rmultilock.Of(rfairlock.New(c, all[0]), rfairlock.New(c, all[1]))
		ctx := bad{within(t), func() bool { return s.Do(t, "EXISTS", all[0]) == int64(1) }}
		require.PanicsWithValue(t, "the context's", func() { _, _ = l.Lock(ctx) })
		free(t, s, all)
		both := rmultilock.New(c, all...)
		require.PanicsWithValue(t, "the caller's", func() {
			_ = both.Do(within(t), func(context.Context) error { panic("the caller's") })
		})
		free(t, s, all)
		require.ErrorIs(t, both.Do(within(t), func(context.Context) error { return context.DeadlineExceeded }), context.DeadlineExceeded)
		free(t, s, all)
	})
}

type bad struct {
	context.Context //nolint:containedctx // it is a context
	wrong           func() bool
}

func (b bad) Value(key any) any {
	if b.wrong() {
		panic("the context's")
	}
	return b.Context.Value(key)
}

func TestInvalidLockSetRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		c, other := callers.InProcess(t, s), callers.InProcess(t, s)
		rw := rreadwritelock.New(c, "rw")
		named := map[string]string{"empty name": "", "not UTF-8": "\xff", "two clients": "b", "two roles": "rw", "two kinds": "a"}
		for what, l := range map[string]*rmultilock.Lock{
			"none": rmultilock.New(c), "no locks": rmultilock.Of(), "empty name": rmultilock.New(c, "a", ""),
			"not UTF-8": rmultilock.New(c, "a", "\xff"), "nil": rmultilock.Of(nil), "two clients": rmultilock.Of(rlock.New(c, "a"), rlock.New(other, "b")),
			"two roles": rmultilock.Of(rw.Read(), rw.Write()), "two kinds": rmultilock.Of(rlock.New(c, "a"), rfairlock.New(c, "a")),
		} {
			_, err := l.Lock(within(t))
			require.ErrorIs(t, err, redlatch.ErrInvalid, what)
			_, err = l.TryLock(within(t))
			require.ErrorIs(t, err, redlatch.ErrInvalid, what)
			var failed *redlatch.LockError
			require.ErrorAs(t, err, &failed, what)
			require.Equal(t, "try-lock", failed.Op, what)
			require.Equal(t, named[what], failed.Name, what)
		}
		_, err := rmultilock.New(c, "a", "b").TryLock(within(t), rlock.WithWait(time.Second))
		require.ErrorIs(t, err, redlatch.ErrInvalid)

		all := names(t, 3)
		s.Do(t, "SET", all[1], "no lock")
		_, err = rmultilock.New(c, all...).Lock(within(t))
		require.ErrorIs(t, err, redlatch.ErrWrongType)
		require.ErrorContains(t, err, all[1])
		require.Len(t, left(t, s, all), 1)
		s.Do(t, "DEL", all[1])
	})
}

func TestClusterLocksOfOneSlotTakenTogether(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	c := connect(t, "redis-cluster://"+cluster.Addrs()[0])
	base := redistest.Key(t)
	all := []string{base + "a", base + "b", "{" + base + "}1", base + "c", "{" + base + "}2", "{" + base + "}3"}
	l := rmultilock.New(c, all...)
	for range 3 {
		h := take(t, l)
		for _, name := range all {
			require.EqualValues(t, 1, cluster.DoAt(t, name, "EXISTS", name))
		}
		_, err := rmultilock.New(c, all[5], all[0]).TryLock(within(t))
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.NoError(t, h.Unlock())
		for _, name := range all {
			require.Zero(t, cluster.DoAt(t, name, "EXISTS", name))
		}
	}
}

func TestNotAcquiredReportsInfiniteLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		all := names(t, 2)
		s.Do(t, "HSET", all[1], "a peer:1", 1)
		_, err := rmultilock.New(callers.InProcess(t, s), all...).TryLock(within(t))
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		var at *redlatch.LockError
		require.ErrorAs(t, err, &at)
		require.Equal(t, redlatch.NoTTL, at.TTL)
	})
}

func TestForeignKeyFailsImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		all := names(t, 3)
		s.Do(t, "HSET", all[1], "name", "bob")
		l := rmultilock.New(callers.InProcess(t, s), all...)
		_, err := l.Lock(within(t))
		require.ErrorIs(t, err, redlatch.ErrWrongType)
		require.ErrorContains(t, err, all[1])
		require.ErrorContains(t, err, `a hash with the field "name", which is not an owner`)
		_, err = l.TryLock(within(t))
		require.ErrorIs(t, err, redlatch.ErrWrongType)
		require.Len(t, left(t, s, all), 1)
		s.Do(t, "DEL", all[1])
	})
}
