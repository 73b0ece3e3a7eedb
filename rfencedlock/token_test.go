package rfencedlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestTokensGrowThroughUnlockForceAndExpiry(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *redistest.Server, newLock maker) {
		t.Helper()
		name := redistest.Key(t)
		one, two := newLock(connect(t, s.URL()), name), newLock(connect(t, s.URL()), name)
		require.Zero(t, lastToken(t, one), "nothing has been given")

		hold := take(t, one)
		require.EqualValues(t, 1, hold.Token())
		require.NoError(t, hold.Unlock())

		hold = take(t, two)
		require.EqualValues(t, 2, hold.Token())
		forced, err := one.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, forced)

		hold = take(t, one, rlock.WithLease(2*time.Second))
		require.EqualValues(t, 3, hold.Token())
		next := take(t, two) // the lease ends
		require.EqualValues(t, 4, next.Token())
		require.EqualValues(t, 3, hold.Token(), "a hold that is over keeps its token")
		require.EqualValues(t, 4, lastToken(t, one))

		_, err = one.TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.EqualValues(t, 4, lastToken(t, one), "a refusal uses up no token")
		require.NoError(t, next.Unlock())
		require.EqualValues(t, -1, s.Do(t, "PTTL", codec.TokenKey(name)), "the counter does not expire")
		nothingHeld(t, s, name)
	})
}

func TestAReentryHasATokenThatItsOuterHoldTells(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *redistest.Server, newLock maker) {
		t.Helper()
		lock := newLock(connect(t, s.URL()), redistest.Key(t))
		outer := take(t, lock)
		require.EqualValues(t, 1, outer.Token())
		inner, err := lock.Lock(outer.Context(t.Context()))
		require.NoError(t, err)
		require.EqualValues(t, 2, inner.Token())
		require.EqualValues(t, 2, outer.Token(), "the outer hold is not late behind its own re-entry")
		require.NoError(t, inner.Unlock())
		require.EqualValues(t, 2, outer.Token())
		require.NoError(t, outer.Unlock())
		require.EqualValues(t, 2, lastToken(t, lock))
	})
}

func TestALockThatWasHandedOverHasANewToken(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *redistest.Server, newLock maker) {
		t.Helper()
		name := redistest.Key(t)
		here, there := newLock(connect(t, s.URL()), name), newLock(connect(t, s.URL()), name)
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

func TestAGivenOwnerHasATokenForEachAcquisition(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *redistest.Server, newLock maker) {
		t.Helper()
		client := connect(t, s.URL())
		lock := newLock(client, redistest.Key(t))
		owner := redlatch.NewOwner(client.ID(), 77)
		first := take(t, lock, rlock.WithOwner(owner))
		second := take(t, lock, rlock.WithOwner(owner))
		require.EqualValues(t, 2, second.Token())
		require.EqualValues(t, 2, first.Token(), "they are one owner")
		require.NoError(t, errors.Join(second.Unlock(), first.Unlock()))
		nothingHeld(t, s, lock.Name())
	})
}

func TestTheLeaseThatWasAskedForIsTheLease(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *redistest.Server, newLock maker) {
		t.Helper()
		lock := newLock(connect(t, s.URL()), redistest.Key(t))
		hold := take(t, lock, rlock.WithLease(5*time.Second))
		ttl, err := lock.TTL(t.Context())
		require.NoError(t, err)
		require.InDelta(t, 5, ttl.Seconds(), 2)
		require.NoError(t, hold.Unlock())
	})
}

// Redisson takes the answer for such a lock, [-1, -1], for success with token -1.
func TestALockWithoutTimeToLiveIsNotAcquired(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *redistest.Server, newLock maker) {
		t.Helper()
		name := redistest.Key(t)
		lock := newLock(connect(t, s.URL()), name)
		s.Do(t, "HSET", name, "11111111-1111-1111-1111-111111111111:1", 1)
		_, err := lock.TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		_, err = lock.Lock(t.Context(), rlock.WithWait(3*time.Second))
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.Zero(t, lastToken(t, lock))
		require.EqualValues(t, 1, s.Do(t, "DEL", name))
		nothingHeld(t, s, name)
	})
}

// The callers of a process exclude each other, so each of them sees the next token, whether the
// lock was transferred to it or freed.
func TestTokensGrowInTheOrderOfTheHolds(t *testing.T) {
	t.Parallel()
	for name, newLock := range map[string]maker{"plain": rfencedlock.New, "fair": rfencedlock.NewFair} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t) // its statistics are those of the test
			lock := newLock(connect(t, s.URL()), "lock")
			const callers = 8
			turns := testlevel.Rounds(30, 100)
			var mu sync.Mutex // guards last, beside the lock, for the race detector
			var last int64
			var all sync.WaitGroup
			failed := make(chan error, callers*turns)
			for range callers {
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
			for range callers * turns {
				require.NoError(t, <-failed)
			}
			require.EqualValues(t, callers*turns, lastToken(t, lock))
			if name == "plain" {
				stats := s.CommandStats(t)
				require.Less(t, stats["publish"], int64(callers*turns), "some were transferred: each that is freed is published")
			}
		})
	}
}

func TestAFairLockOfTheSameNameUsesTheSameQueue(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	lock := rfencedlock.NewFair(connect(t, s.URL()), name)
	hold := take(t, lock)
	without := rfairlock.New(connect(t, s.URL()), name)
	_, err := without.TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	ended := make(chan error, 1)
	go func() {
		h, err := without.Lock(within(t))
		if err == nil {
			err = h.Unlock()
		}
		ended <- err
	}()
	require.Eventually(t, func() bool { return s.Do(t, "LLEN", codec.QueueKey(name)) == any(int64(1)) }, soon, time.Millisecond)
	_, err = lock.TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	require.NoError(t, hold.Unlock())
	require.NoError(t, <-ended)
	next := take(t, lock)
	require.EqualValues(t, 2, next.Token(), "the fair lock without tokens gave none")
	require.NoError(t, next.Unlock())
}

func TestALostReplyCostsATokenAndNothingElse(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *redistest.Server, newLock maker) {
		t.Helper()
		p := redistest.NewProxy(t, s.Addr())
		lock := newLock(connect(t, p.URL(), redlatch.WithCommandTimeout(time.Second), redlatch.WithWatchdogTimeout(time.Hour)), redistest.Key(t))
		require.NoError(t, take(t, lock).Unlock()) // the server knows the scripts then
		p.Blackhole(redistest.ToClient)
		_, err := lock.Lock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		p.Heal(redistest.ToClient)
		p.Reset()
		nothingHeld(t, s, lock.Name())
		hold := take(t, lock)
		require.EqualValues(t, 3, hold.Token())
		require.NoError(t, hold.Unlock())
	})
}
