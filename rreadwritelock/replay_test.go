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

// The client gives up a hold whose lease ends. That release comes late, when the key of the hold
// is gone, and the newest key is another hold's.
func TestASharedReadersOwnReleaseThatComesLateLeavesTheOtherHold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rw := newLock(t, s)
	owner := rlock.WithOwner(redlatch.NewOwner(uuid.New(), 7))
	short := take(t, rw.Read(), owner, rlock.WithLease(time.Second))
	long := take(t, rw.Read(), owner, rlock.WithLease(25*time.Second))
	time.Sleep(700 * time.Millisecond)
	s.Pause()
	select {
	case <-short.Context(t.Context()).Done():
	case <-time.After(soon):
		require.FailNow(t, "the lease does not end")
	}
	time.Sleep(700 * time.Millisecond)
	s.Resume()
	time.Sleep(time.Second) // the client's release comes
	require.NoError(t, long.Err())
	refused(t, same(t, s, rw).Write())
	require.Greater(t, millis(t, s, rw.Name()), int64(15_000))
	unlock(t, long)
	free(t, s, rw)
}

// A process that wrote, reads on, and dies: the next writer waits for its lease as a reader.
func TestAReaderThatWroteAndDiesBlocksForItsLeaseAsAReader(t *testing.T) {
	t.Parallel()
	s, proxy, rw := behind(t)
	w := take(t, rw.Write(), rlock.WithLease(time.Minute))
	enter(t, rw.Read(), w, rlock.WithLease(2*time.Second))
	unlock(t, w)
	proxy.Refuse(true)
	proxy.Reset()
	unlock(t, must(t, later(within(t), same(t, s, rw).Write()), 20*time.Second))
	proxy.Refuse(false)
	free(t, s, rw)
}

// D4, of a hold that no client has: nothing raises the lock until it is resumed.
func TestAReaderThatIsHandedOverIsResumedInTimeOrLost(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for name, inTime := range map[string]bool{"in time": true, "too late": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rw := newLock(t, s)
			owner, err := take(t, rw.Read(), rlock.WithLease(time.Minute)).HandOver()
			require.NoError(t, err)
			renew, _ := javaReader(t, s, rw.Name(), 4000)
			renew() // and it dies
			other := same(t, s, rw)
			if inTime {
				r, err := other.Read().Resume(within(t), owner, rlock.WithLease(time.Minute))
				require.NoError(t, err)
				time.Sleep(5 * time.Second)
				require.NoError(t, r.Err())
				refused(t, rw.Write())
				unlock(t, r)
				return
			}
			w := must(t, later(within(t), rw.Write()), soon)
			_, err = other.Read().Resume(within(t), owner)
			require.ErrorIs(t, err, redlatch.ErrNotHeld)
			unlock(t, w)
		})
	}
}

// A lock without a time to live, as after a PERSIST, stays until it is released.
func TestARefusalTellsALeaseThatNeverEnds(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s)
	other := same(t, s, rw)
	for _, held := range []*rlock.Lock{rw.Read(), rw.Write()} {
		h := take(t, held, rlock.WithLease(time.Minute))
		s.Do(t, "PERSIST", rw.Name())
		_, err := other.Write().TryLock(within(t))
		var refusal *redlatch.LockError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, redlatch.NoTTL, refusal.TTL)
		require.ErrorContains(t, err, "never ends")
		unlock(t, h)
	}
	free(t, s, rw)
}
