package rfencedlock_test

import (
	"math"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/transport"
)

// spoilt are counters that cannot be incremented.
var spoilt = map[string]string{
	"a text": "seven", "empty": "", "a fraction": "1.5", "the last number": strconv.FormatInt(math.MaxInt64, 10),
}

func TestInvalidTokenCounterIsReported(t *testing.T) {
	key := protocol.TokenKey("lock")
	bubble(t, func(t *testing.T, s *redistest.MiniServer, newLock func(...rfencedlock.Option) *rfencedlock.Lock) {
		t.Helper()
		for what, value := range spoilt {
			lock := newLock()
			s.Do(t, "SET", key, value)
			_, err := lock.Lock(within(t))
			require.ErrorIs(t, err, rfencedlock.ErrCounter, what)
			require.ErrorContains(t, err, strconv.Quote(key), what)
			_, err = lock.TryLock(within(t))
			require.ErrorIs(t, err, rfencedlock.ErrCounter, what)
			_, err = newLock(rfencedlock.WithEpoch(3)).TryLock(within(t))
			require.ErrorIs(t, err, rfencedlock.ErrCounter, "%s, with an epoch", what)
			nothingHeld(t, s)
			require.Equal(t, []byte(value), s.Do(t, "GET", key), what)

			s.Do(t, "SET", key, 41)
			hold := take(t, lock)
			require.EqualValues(t, 42, hold.Token(), what)
			// The hold continues; a reentry fails.
			s.Do(t, "SET", key, value)
			_, err = lock.Lock(hold.Context(within(t)))
			require.ErrorIs(t, err, rfencedlock.ErrCounter, what)
			require.NoError(t, hold.Err(), what)
			count, err := lock.HoldCount(t.Context(), hold.Owner())
			require.NoError(t, err)
			require.EqualValues(t, 1, count, what)
			require.NoError(t, hold.Unlock(), what)
			nothingHeld(t, s)
		}
	})
}

func TestWaiterFailsCleanlyOnInvalidCounter(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, newLock func(...rfencedlock.Option) *rfencedlock.Lock) {
		t.Helper()
		lock := newLock()
		hold := take(t, lock)
		const waiters = 5
		ended := make(chan error, waiters)
		for range waiters {
			go func() {
				_, err := lock.Lock(within(t))
				ended <- err
			}()
		}
		synctest.Wait()
		s.Do(t, "SET", protocol.TokenKey("lock"), "no number")
		require.NoError(t, hold.Unlock(), "the holder's release succeeds despite the failed transfer")
		for range waiters {
			require.ErrorIs(t, <-ended, rfencedlock.ErrCounter)
		}
		nothingHeld(t, s)
	})
}

func TestWrongKeyTypesReported(t *testing.T) {
	key := protocol.TokenKey("lock")
	bubble(t, func(t *testing.T, s *redistest.MiniServer, newLock func(...rfencedlock.Option) *rfencedlock.Lock) {
		t.Helper()
		lock := newLock()
		for _, other := range [][]any{{"SET", "lock", "no lock"}, {"HSET", "lock", "name", "bob"}} {
			s.Do(t, other[0].(string), other[1:]...)
			_, err := lock.Lock(within(t))
			require.ErrorIs(t, err, redlatch.ErrWrongType)
			_, err = lock.TryLock(within(t))
			require.ErrorIs(t, err, redlatch.ErrWrongType)
			require.EqualValues(t, 1, s.Do(t, "EXISTS", "lock"), "it is unchanged")
			require.Zero(t, s.Do(t, "EXISTS", key), "no token was used")
			s.Do(t, "DEL", "lock")
		}
		s.Do(t, "RPUSH", key, "no counter")
		_, err := lock.TryLock(within(t))
		require.ErrorIs(t, err, redlatch.ErrWrongType)
		require.ErrorContains(t, err, strconv.Quote(key))
		_, err = lock.Token(within(t))
		require.ErrorIs(t, err, redlatch.ErrWrongType)
		nothingHeld(t, s)
		require.EqualValues(t, 1, s.Do(t, "LLEN", key))
	})
}

// Numbers in scripts have 53 bits. Redisson rounds higher tokens.
func TestTokensExactUpToMaximum(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, newLock := range makers {
		for _, last := range []int64{1<<53 - 3, 1<<53 - 1, 1<<60 + 1, math.MaxInt64 - 3} {
			lock := newLock(connect(t, s.URL()), redistest.Key(t))
			s.Do(t, "SET", protocol.TokenKey(lock.Name()), last)
			for i := range int64(3) {
				hold := take(t, lock)
				require.Equal(t, last+1+i, hold.Token())
				require.NoError(t, hold.Unlock())
			}
			require.Equal(t, last+3, lastToken(t, lock))
		}
	}
}

func TestNegativeCounterRejected(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, newLock func(...rfencedlock.Option) *rfencedlock.Lock) {
		t.Helper()
		s.Do(t, "SET", protocol.TokenKey("lock"), -10)
		_, err := newLock().Lock(within(t))
		require.ErrorIs(t, err, transport.ErrBadReply)
		nothingHeld(t, s)
	})
}

func TestMissingEpochRejectsLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, newLock func(...rfencedlock.Option) *rfencedlock.Lock) {
		t.Helper()
		lock := newLock(rfencedlock.WithEpoch(3))
		_, err := lock.Lock(within(t))
		require.ErrorIs(t, err, rfencedlock.ErrEpoch)
		nothingHeld(t, s)
		require.Zero(t, lastToken(t, lock))

		for _, want := range []bool{true, false} {
			raised, err := lock.BeginEpoch(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, raised)
		}
		hold := take(t, lock)
		require.EqualValues(t, 3<<40+1, hold.Token())

		s.Do(t, "DEL", protocol.TokenKey("lock"))
		_, err = lock.Lock(hold.Context(within(t)))
		require.ErrorIs(t, err, rfencedlock.ErrEpoch, "a re-entry")
		require.NoError(t, hold.Unlock())
		_, err = lock.TryLock(within(t))
		require.ErrorIs(t, err, rfencedlock.ErrEpoch)

		// A lock without an epoch, as in Java, gets a low token.
		without := take(t, newLock())
		require.EqualValues(t, 1, without.Token())
		require.NoError(t, without.Unlock())

		next := newLock(rfencedlock.WithEpoch(4))
		_, err = next.BeginEpoch(t.Context())
		require.NoError(t, err)
		higher := take(t, next)
		require.Greater(t, higher.Token(), hold.Token())
		require.NoError(t, higher.Unlock())
		old := take(t, lock)
		require.Greater(t, old.Token(), higher.Token(), "locks of the previous epoch still work")
		require.NoError(t, old.Unlock())
		nothingHeld(t, s)
	})
}

func TestInvalidEpochRejected(t *testing.T) {
	bubble(t, func(t *testing.T, _ *redistest.MiniServer, newLock func(...rfencedlock.Option) *rfencedlock.Lock) {
		t.Helper()
		for _, n := range []int{-1, 0, 8192} {
			lock := newLock(rfencedlock.WithEpoch(n))
			_, err := lock.Lock(t.Context())
			require.ErrorIs(t, err, redlatch.ErrInvalid)
			_, err = lock.BeginEpoch(t.Context())
			require.ErrorIs(t, err, redlatch.ErrInvalid)
		}
		_, err := newLock().BeginEpoch(t.Context())
		require.ErrorIs(t, err, redlatch.ErrInvalid)
		last := newLock(rfencedlock.WithEpoch(8191))
		_, err = last.BeginEpoch(t.Context())
		require.NoError(t, err)
		hold := take(t, last)
		require.Less(t, hold.Token(), int64(1<<53))
		require.NoError(t, hold.Unlock())
	})
}
