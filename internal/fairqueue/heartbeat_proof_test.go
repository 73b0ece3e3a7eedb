package fairqueue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A waiter that cannot listen, or not any more, proves nothing; another one of the group does.
func TestProofIsAWaiterThatListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 10*time.Second)
		defer s.place.Leave()
		other := join(s.queues, theLock, "other")
		defer other.Leave()
		other.SetSubscribed(true)
		other.SetSubscribed(false)
		time.Sleep(period + 10*time.Second + time.Second)
		require.Equal(t, 1, count(s.Fake, "EVICT"))
	})
}

// Where turns are short the first of the group leaves between heartbeat and count.
func TestProofIsTheWaiterThatStaysLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 10*time.Second)
		last := join(s.queues, theLock, "last")
		defer last.Leave()
		last.SetSubscribed(true)
		s.set(func() { s.listeners["mine"], s.listeners["last"] = 0, 1 }) // has just got the lock
		defer s.place.Leave()
		time.Sleep(time.Minute)
		require.Equal(t, 1, count(s.Fake, "EVICT"))
		require.Zero(t, s.log.Count("cannot be distinguished from live ones"))
	})
}

func TestRepliesOfAnotherFormAreLoggedOnceUntilTheyAreRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 10*time.Second)
		defer s.place.Leave()
		for lines := 1; lines <= 2; lines++ {
			s.set(func() { s.garbled = true })
			time.Sleep(time.Minute)
			require.Equal(t, lines, s.log.Count("queue heartbeat failed"))
			s.set(func() { s.garbled = false })
			time.Sleep(time.Minute)
		}
		require.Equal(t, 1, count(s.Fake, "EVICT"))
	})
}

// A count may hang for as long as a command may, on a replica that stands still.
func TestCloseDoesNotWaitForACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 10*time.Second)
		s.set(func() { s.mute = true })
		time.Sleep(period + time.Second)
		began := time.Now()
		s.place.Leave()
		require.NoError(t, s.queues.engine.Close())
		require.Zero(t, time.Since(began))
	})
}

// A clock that is set during a long wait is noticed.
func TestHeartbeatsCompareTheClocksOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 10*time.Second)
		defer s.place.Leave()
		s.set(func() { s.garbled = true }) // which is no time either, and an answer
		time.Sleep(5*time.Minute + 10*time.Second)
		require.InDelta(t, 5, count(s.Fake, "TIME"), 1)
	})
}
