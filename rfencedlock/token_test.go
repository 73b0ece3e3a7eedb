package rfencedlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestFencedLocksPassSuite(t *testing.T) {
	for _, kind := range locksuite.Fenced {
		locksuite.RunInMemory(t, kind)
	}
}

func TestTokenIncreasesAfterEveryRelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, newLock func(...rfencedlock.Option) *rfencedlock.Lock) {
		t.Helper()
		one, two := newLock(), newLock()
		require.Zero(t, lastToken(t, one))

		hold := take(t, one)
		require.EqualValues(t, 1, hold.Token())
		require.NoError(t, hold.Unlock())

		hold = take(t, two)
		require.EqualValues(t, 2, hold.Token())
		forced, err := one.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, forced)

		hold = take(t, one, rlock.WithLease(5*time.Second))
		ttl, err := one.TTL(t.Context())
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, ttl)
		require.EqualValues(t, 3, hold.Token())
		next := take(t, two) // after the lease
		require.EqualValues(t, 4, next.Token())
		require.EqualValues(t, 3, hold.Token(), "an ended hold keeps its token")
		require.EqualValues(t, 4, lastToken(t, one))

		_, err = one.TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.EqualValues(t, 4, lastToken(t, one), "a refusal uses no token")
		require.NoError(t, next.Unlock())
		require.EqualValues(t, -1, s.Do(t, "PTTL", protocol.TokenKey("lock")), "the counter does not expire")
		nothingHeld(t, s)
	})
}

func TestOuterHoldReportsReentryToken(t *testing.T) {
	bubble(t, func(t *testing.T, _ *redistest.MiniServer, newLock func(...rfencedlock.Option) *rfencedlock.Lock) {
		t.Helper()
		lock := newLock()
		outer := take(t, lock)
		require.EqualValues(t, 1, outer.Token())
		inner, err := lock.Lock(outer.Context(t.Context()))
		require.NoError(t, err)
		require.EqualValues(t, 2, inner.Token())
		require.EqualValues(t, 2, outer.Token())
		require.NoError(t, inner.Unlock())
		require.EqualValues(t, 2, outer.Token())
		require.NoError(t, outer.Unlock())
		require.EqualValues(t, 2, lastToken(t, lock))
	})
}

func TestResumedLockGetsNewToken(t *testing.T) {
	bubble(t, func(t *testing.T, _ *redistest.MiniServer, newLock func(...rfencedlock.Option) *rfencedlock.Lock) {
		t.Helper()
		here, there := newLock(), newLock()
		hold := take(t, here)
		owner, err := hold.HandOver()
		require.NoError(t, err)
		resumed, err := there.Resume(t.Context(), owner)
		require.NoError(t, err)
		require.Greater(t, resumed.Token(), hold.Token())
		count, err := there.HoldCount(t.Context(), owner)
		require.NoError(t, err)
		require.EqualValues(t, 1, count)
		require.NoError(t, resumed.Unlock())
		_, err = there.Resume(t.Context(), owner)
		require.ErrorIs(t, err, redlatch.ErrNotHeld)
		require.EqualValues(t, 2, lastToken(t, here))
	})
}

func TestGivenOwnerGetsTokenPerAcquisition(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, newLock func(...rfencedlock.Option) *rfencedlock.Lock) {
		t.Helper()
		lock, owner := newLock(), codec.NewOwner(uuid.New(), 77)
		first := take(t, lock, rlock.WithOwner(owner))
		second := take(t, lock, rlock.WithOwner(owner))
		require.EqualValues(t, 2, second.Token())
		require.EqualValues(t, 2, first.Token(), "both holds have one owner")
		require.NoError(t, errors.Join(second.Unlock(), first.Unlock()))
		nothingHeld(t, s)
	})
}

// Redisson takes the reply for such a lock, [-1, -1], to mean success with token -1.
func TestLockWithoutTTLIsNotAcquired(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, newLock func(...rfencedlock.Option) *rfencedlock.Lock) {
		t.Helper()
		lock := newLock()
		s.Do(t, "HSET", "lock", "11111111-1111-1111-1111-111111111111:1", 1)
		_, err := lock.TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		_, err = lock.Lock(t.Context(), rlock.WithWait(3*time.Second))
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.Zero(t, lastToken(t, lock))
		require.EqualValues(t, 1, s.Do(t, "DEL", "lock"))
		nothingHeld(t, s)
	})
}

func TestLostReplyUsesOneToken(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, newLock func(...rfencedlock.Option) *rfencedlock.Lock) {
		t.Helper()
		lock := newLock()
		require.NoError(t, take(t, lock).Unlock()) // the server knows the scripts
		synctest.Wait()
		s.LoseReplies(1)
		_, err := lock.Lock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		nothingHeld(t, s)
		hold := take(t, lock)
		require.EqualValues(t, 3, hold.Token())
		other := newLock()
		_, err = other.Lock(t.Context(), rlock.WithWait(time.Second)) // the server knows the scripts
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		synctest.Wait()
		s.LoseReplies(1)
		_, err = other.Lock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		require.NoError(t, hold.Unlock())
		nothingHeld(t, s)
	})
}

// The server queues the owner of an attempt when its caller has already left.
func TestLateAttemptLeavesQueueEmpty(t *testing.T) {
	for name, newLock := range makers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := redistest.Mini(t, embedded.WithInProcess())
				tr, near := callers.Stalling(t, s)
				hold := take(t, newLock(callers.InProcess(t, s), "lock"), rlock.WithLease(time.Hour))
				tr.Stall(true)
				ctx, cancel := context.WithCancel(t.Context())
				came := callers.Later(func() (*rfencedlock.Hold, error) { return newLock(near, "lock").Lock(ctx) })
				synctest.Wait()
				cancel()
				require.ErrorIs(t, (<-came).Err, redlatch.ErrUncertain)
				tr.Stall(false)
				time.Sleep(time.Minute)
				require.Equal(t, hold.Token(), lastToken(t, newLock(near, "lock")), "the attempt was refused")
				require.NoError(t, hold.Unlock())
				nothingHeld(t, s)
			})
		})
	}
}

func TestFairLockOfSameNameSharesQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		lock, without := rfencedlock.NewFair(callers.InProcess(t, s), "lock"), rfairlock.New(callers.InProcess(t, s), "lock")
		hold := take(t, lock)
		_, err := without.TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		came := callers.Later(func() (*rlock.Hold, error) { return without.Lock(t.Context()) })
		synctest.Wait()
		require.EqualValues(t, 1, s.Do(t, "LLEN", codec.QueueKey("lock")))
		require.NoError(t, hold.Unlock())
		next := callers.Must(t, came, time.Second)
		_, err = lock.TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.NoError(t, next.Unlock())
		hold = take(t, lock)
		require.EqualValues(t, 2, hold.Token(), "the lock without tokens issued none")
		require.NoError(t, hold.Unlock())
	})
}

func TestFairDeadlineUsesCallersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		lock := rfencedlock.NewFair(callers.InProcess(t, s), "lock")
		hold := take(t, lock, rlock.WithLease(time.Minute))
		came := callers.Later(func() (*rfencedlock.Hold, error) { return lock.Lock(t.Context(), rlock.WithWait(10*time.Second)) })
		synctest.Wait()
		due := time.Now().Add(time.Minute + 10*time.Second).UnixMilli()
		require.EqualValues(t, 1, s.Do(t, "ZCOUNT", codec.TimeoutKey("lock"), due, due))
		require.NoError(t, hold.Unlock())
		require.NoError(t, callers.Must(t, came, time.Second).Unlock())
	})
}

// The lock is transferred between callers, or released.
func TestTokensIncreaseInHoldOrder(t *testing.T) {
	t.Parallel()
	for name, newLock := range makers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t) // for its statistics
			lock := newLock(connect(t, s.URL()), "lock")
			const workers = 8
			turns := testlevel.Rounds(30, 100)
			var mu sync.Mutex // guards last for the race detector
			var last int64
			var all sync.WaitGroup
			failed := make(chan error, workers*turns)
			for range workers {
				all.Go(func() {
					for range turns {
						failed <- lock.Do(within(t), func(_ context.Context, hold *rfencedlock.Hold) error {
							mu.Lock()
							defer mu.Unlock()
							if hold.Token() != last+1 {
								return errors.New("a token is not the next")
							}
							last++
							return nil
						})
					}
				})
			}
			all.Wait()
			for range workers * turns {
				require.NoError(t, <-failed)
			}
			require.EqualValues(t, workers*turns, lastToken(t, lock))
			if name == "plain" {
				stats := s.CommandStats(t)
				require.Less(t, stats["publish"], int64(workers*turns), "some were transferred, not published")
			}
		})
	}
}
