package rreadwritelock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// millis is what a key has left on the server.
func millis(t *testing.T, s *redistest.Server, key string) int64 {
	t.Helper()
	ms, _ := s.Do(t, "PTTL", key).(int64)
	return ms
}

// D1: in Redisson the release of a nested read ends the renewal of the writer.
func TestANestedReadLeavesTheWritersRenewalAlone(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s, redlatch.WithWatchdogTimeout(6*time.Second))
	w := take(t, rw.Write())
	unlock(t, enter(t, rw.Read(), w))
	time.Sleep(8 * time.Second) // longer than a lease
	require.NoError(t, w.Err())
	refused(t, same(t, s, rw).Read())
	unlock(t, w)
	free(t, s, rw)
}

// D2 and D3: in Redisson the release of a nested read, and its renewals, cut the writer's lease.
func TestANestedReadDoesNotCutTheWritersLease(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s, redlatch.WithWatchdogTimeout(6*time.Second))
	w := take(t, rw.Write(), rlock.WithLease(2*time.Minute))
	r1 := enter(t, rw.Read(), w, rlock.WithLease(10*time.Second))
	r2 := enter(t, rw.Read(), w, rlock.WithLease(10*time.Second))
	unlock(t, r2)
	require.Greater(t, millis(t, s, rw.Name()), int64(50_000))
	unlock(t, r1)
	renewed := enter(t, rw.Read(), w)
	time.Sleep(4 * time.Second) // it is renewed
	require.Greater(t, millis(t, s, rw.Name()), int64(50_000))
	unlock(t, renewed)
	require.Greater(t, millis(t, s, rw.Name()), int64(50_000))
	unlock(t, w)
	free(t, s, rw)
}

// javaReader does what a reader of Redisson does that is renewed, as raw commands.
func javaReader(t *testing.T, s *redistest.Server, name string, lease int64) (renew, release func()) {
	t.Helper()
	owner := "11111111-1111-4111-8111-111111111111:1"
	s.Do(t, "HINCRBY", name, owner, 1)
	s.Do(t, "SET", codec.HoldKey(name, owner, 1), "1", "PX", lease)
	renew = func() {
		s.Do(t, "PEXPIRE", codec.HoldKey(name, owner, 1), lease)
		s.Do(t, "PEXPIRE", name, lease)
	}
	release = func() {
		s.Do(t, "HDEL", name, owner)
		s.Do(t, "DEL", codec.HoldKey(name, owner, 1))
	}
	return renew, release
}

// D4: the renewals of Redisson's readers shorten the lock. A reader that dies then takes the
// lock of all others with it, unless their clients mend it.
func TestARenewalOfAnotherReaderIsMended(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for name, opt := range map[string]rlock.Option{
		"fixed": rlock.WithLease(2 * time.Minute), "renewed": rlock.WithWatchdog(2 * time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rw := newLock(t, s, redlatch.WithWatchdogTimeout(6*time.Second))
			r := take(t, rw.Read(), opt)
			renew, _ := javaReader(t, s, rw.Name(), 6000)
			renew()
			require.LessOrEqual(t, millis(t, s, rw.Name()), int64(6000), "the other reader dies now")
			require.Eventually(t, func() bool { return millis(t, s, rw.Name()) > 50_000 }, soon, 10*time.Millisecond)
			time.Sleep(6500 * time.Millisecond) // the other reader's hold is over
			require.NoError(t, r.Err())
			refused(t, same(t, s, rw).Write())
			unlock(t, r)
			free(t, s, rw)
		})
	}
}

// A reader whose renewals do not arrive is told before the lock that was shortened is over.
func TestAReaderIsToldBeforeAShortenedLockIsOver(t *testing.T) {
	t.Parallel()
	redistest.UnlessTheMachineStalls(t, func() error {
		s := redistest.Start(t)
		rw := newLock(t, s, redlatch.WithWatchdogTimeout(3*time.Second))
		r := take(t, rw.Read(), rlock.WithLease(time.Minute))
		renew, _ := javaReader(t, s, rw.Name(), 3000)
		deadline, ok := r.Context(t.Context()).Deadline()
		require.True(t, ok)
		require.Greater(t, time.Until(deadline), 50*time.Second, "if all goes well")
		require.LessOrEqual(t, r.Remaining(), 3*time.Second)
		renew()
		at := time.Now()
		s.Do(t, "CLIENT", "PAUSE", 2900, "ALL")
		select {
		case <-r.Context(t.Context()).Done():
			require.ErrorIs(t, r.Err(), redlatch.ErrLost)
		case <-time.After(5 * time.Second):
		}
		if took := time.Since(at); took >= 3*time.Second {
			return fmt.Errorf("it is not told within %v", took)
		}
		return nil
	})
}

func TestAReaderWhoseHoldIsGoneIsTold(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	soonOver := redlatch.WithWatchdogTimeout(3 * time.Second)
	rw := newLock(t, s, soonOver)
	other := take(t, same(t, s, rw, soonOver).Read())
	for _, key := range []func(r *rlock.Hold) string{
		func(r *rlock.Hold) string { return codec.HoldKey(rw.Name(), r.Owner().String(), 1) },
		func(*rlock.Hold) string { return rw.Name() },
	} {
		r := take(t, rw.Read())
		s.Do(t, "DEL", key(r))
		select {
		case <-r.Context(t.Context()).Done():
			require.ErrorIs(t, r.Err(), redlatch.ErrLost)
		case <-time.After(5 * time.Second):
			require.Fail(t, "it is not told")
		}
	}
	require.Eventually(t, func() bool { return other.Unlock() != nil }, soon, time.Millisecond)
	free(t, s, rw)
}

// A reader that crashes is in the way of a writer until its lease is over, and no longer, also
// when others read on.
func TestACrashedReaderBlocksForItsLeaseOnly(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s, redlatch.WithWatchdogTimeout(5*time.Second))
	javaReader(t, s, rw.Name()+"x", 1)
	alive := take(t, rw.Read())
	began := time.Now()
	_, release := javaReader(t, s, rw.Name(), 6000)
	_ = release // it crashes
	w := later(within(t), same(t, s, rw).Write())
	time.Sleep(time.Second)
	unlock(t, alive)
	h := must(t, w, soon)
	require.Greater(t, time.Since(began), 5500*time.Millisecond)
	require.Less(t, time.Since(began), 9*time.Second) // a poll comes after ten
	unlock(t, h)
	s.Do(t, "DEL", rw.Name()+"x")
	free(t, s, rw)
}

func TestInnerHoldsLeaveWhatTheOthersAreOwed(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s)
	outer := take(t, rw.Read(), rlock.WithLease(20*time.Second))
	inner := enter(t, rw.Read(), outer, rlock.WithLease(2*time.Minute))
	require.Greater(t, millis(t, s, codec.HoldKey(rw.Name(), outer.Owner().String(), 1)), int64(100_000))
	unlock(t, inner)
	left := millis(t, s, rw.Name())
	require.InDelta(t, 17_000, left, 3500)
	require.InDelta(t, left, millis(t, s, codec.HoldKey(rw.Name(), outer.Owner().String(), 1)), 1000)
	unlock(t, outer)
	free(t, s, rw)
}
