package rreadwritelock_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// In Redisson the release of one hold deletes the key of the newest, whichever ends. When the
// older one's is over, that frees the lock.
func TestASharedReadersReleaseLeavesTheHoldThatIsAlive(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s)
	other := same(t, s, rw)
	owner := redlatch.NewOwner(uuid.New(), 7)
	short := take(t, rw.Read(), rlock.WithOwner(owner), rlock.WithLease(3*time.Second))
	long := take(t, other.Read(), rlock.WithOwner(owner), rlock.WithLease(2*time.Minute))
	time.Sleep(3500 * time.Millisecond) // the first hold is over, and so is its key
	require.ErrorIs(t, short.Err(), redlatch.ErrLost)
	require.NoError(t, same(t, s, rw).Read().UnlockAs(within(t), owner))
	refused(t, rw.Write())
	require.NoError(t, long.Err())
	require.Greater(t, millis(t, s, rw.Name()), int64(50_000))
	unlock(t, long)
	free(t, s, rw)
}

// In Redisson a downgrade leaves the lock the writer's lease, however short that of its read is.
func TestADowngradeLeavesTheLockForTheReadersLease(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s)
	w := take(t, rw.Write(), rlock.WithLease(time.Minute))
	r := enter(t, rw.Read(), w, rlock.WithLease(5*time.Second))
	unlock(t, w)
	require.LessOrEqual(t, millis(t, s, rw.Name()), int64(5000))
	refused(t, same(t, s, rw).Write())
	require.NoError(t, r.LetExpire())
	unlock(t, must(t, later(within(t), same(t, s, rw).Write()), 20*time.Second))
	free(t, s, rw)
}

// In Redisson the release of one hold sets the lock to that client's own lease.
func TestASharedWritersReleaseLeavesTheOthersTheirLease(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s)
	other := same(t, s, rw)
	owner := redlatch.NewOwner(uuid.New(), 7)
	long := take(t, rw.Write(), rlock.WithOwner(owner), rlock.WithLease(time.Minute))
	for range 3 { // however often: nor may the leases add up
		unlock(t, take(t, other.Write(), rlock.WithOwner(owner), rlock.WithLease(3*time.Second)))
		left := millis(t, s, rw.Name())
		require.Greater(t, left, int64(50_000))
		require.LessOrEqual(t, left, int64(60_000))
	}
	require.NoError(t, long.Err())
	unlock(t, long)
	free(t, s, rw)
}

// A lock that something took its time to live from gets none that is shorter than what those
// that hold it are owed.
func TestALockWithoutTTLKeepsWhatItsHoldersAreOwed(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s)
	long := take(t, rw.Read(), rlock.WithLease(time.Minute))
	s.Do(t, "PERSIST", rw.Name())
	short := take(t, same(t, s, rw).Read(), rlock.WithLease(10*time.Second))
	require.Greater(t, millis(t, s, rw.Name()), int64(50_000))
	unlock(t, short, long)
	w := take(t, rw.Write(), rlock.WithLease(time.Minute))
	s.Do(t, "PERSIST", rw.Name())
	r := enter(t, rw.Read(), w, rlock.WithLease(10*time.Second))
	travels := take(t, same(t, s, rw).Read(), rlock.WithOwner(w.Owner()), rlock.WithLease(10*time.Second))
	require.EqualValues(t, -1, millis(t, s, rw.Name()), "what the writer is owed is not known")
	unlock(t, travels, r, w)
	free(t, s, rw)
}

func TestARenewalOfALockWithoutTTLKeepsWhatItsHoldersAreOwed(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s)
	long := take(t, rw.Read(), rlock.WithLease(2*time.Minute))
	short := take(t, same(t, s, rw, redlatch.WithWatchdogTimeout(6*time.Second)).Read())
	s.Do(t, "PERSIST", rw.Name())
	require.Eventually(t, func() bool { return millis(t, s, rw.Name()) > 0 }, soon, 10*time.Millisecond, "it is renewed")
	require.Greater(t, millis(t, s, rw.Name()), int64(50_000))
	unlock(t, short, long)
	free(t, s, rw)
}
