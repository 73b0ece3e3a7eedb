package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Who cannot listen, or not any more, proves nothing; another one in the room does.
func TestProofIsAWaiterThatListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, e, _, s := kept(t, 10*time.Second)
		defer s.Leave()
		other := sit(e, "fair", "lock", "other")
		defer other.Leave()
		other.Hears(true)
		other.Hears(false)
		time.Sleep(heartbeat + 10*time.Second + time.Second)
		require.Equal(t, 1, th.count("EVICT"))
	})
}

// Where turns are short the first in the room leaves between heartbeat and count.
func TestProofIsTheOneThatStaysLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, e, log, s := kept(t, 10*time.Second)
		last := sit(e, "fair", "lock", "last")
		defer last.Leave()
		last.Hears(true)
		th.set(func() { th.listeners["mine"], th.listeners["last"] = 0, 1 }) // has just got the lock
		defer s.Leave()
		time.Sleep(time.Minute)
		require.Equal(t, 1, th.count("EVICT"))
		require.Zero(t, log.count("cannot be told from live ones"))
	})
}

func TestRepliesOfAnotherFormAreLoggedOnceUntilTheyAreRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _, log, s := kept(t, 10*time.Second)
		defer s.Leave()
		for told := 1; told <= 2; told++ {
			th.set(func() { th.garbled = true })
			time.Sleep(time.Minute)
			require.Equal(t, told, log.count("cannot be looked after"))
			th.set(func() { th.garbled = false })
			time.Sleep(time.Minute)
		}
		require.Equal(t, 1, th.count("EVICT"))
	})
}

// A count may hang for as long as a command may, on a replica that stands still.
func TestCloseDoesNotWaitForACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, e, _, s := kept(t, 10*time.Second)
		th.set(func() { th.mute = true })
		time.Sleep(heartbeat + time.Second)
		began := time.Now()
		s.Leave()
		require.NoError(t, e.Close())
		require.Zero(t, time.Since(began))
	})
}

// A clock that is set while somebody waits for long is noticed.
func TestKeepingComparesTheClocksOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _, _, s := kept(t, 10*time.Second)
		defer s.Leave()
		th.set(func() { th.garbled = true }) // which is no time either, and an answer
		time.Sleep(5*time.Minute + 10*time.Second)
		require.InDelta(t, 5, th.count("TIME"), 1)
	})
}
