package localqueue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

// native is an owner of a client of this library.
func native(t *testing.T) codec.Owner {
	t.Helper()
	id, err := uuid.NewV7()
	require.NoError(t, err)
	return codec.NewOwner(id, 1)
}

func TestLockIsTransferredOnlyToTheNextWaiter(t *testing.T) {
	qs, l := withTurn(t)
	l.Others(0, true)
	b := qs.Transfer("owner")
	require.False(t, l.PassLock(b), "there is no next waiter")
	_, p := enter(qs)
	_, last := enter(qs)
	granted(l)
	require.True(t, l.PassLock(b))
	require.True(t, isReady(p))
	require.False(t, isReady(last))
	require.Same(t, b, p.Transfer)
	require.True(t, p.Passed)
	require.Equal(t, Yield{}, p.Yield)
	require.False(t, l.State().Held, "it is on its way")
	l.Pass(true)
	require.True(t, isReady(last))
	require.Nil(t, last.Transfer)
}

func TestLockIsNotTransferredBeforeRemoteContendersWereCounted(t *testing.T) {
	qs := newQueues()
	l, _ := enter(qs)
	_, p := enter(qs)
	b := qs.Transfer("owner")
	require.False(t, l.PassLock(b))
	for range 4 {
		l.Refused(native(t), 30*time.Second)
	}
	l.Others(4, false)
	require.False(t, l.PassLock(b), "a guess")
	l.Others(0, true)
	require.True(t, l.PassLock(b))
	require.True(t, isReady(p))
	l.Pass(true)
	requireNoQueue(t, qs)
	l, _ = enter(qs)
	_, _ = enter(qs)
	require.False(t, l.PassLock(b), "a new line knows nothing")
	l.Pass(true)
	l.Pass(true)
	requireNoQueue(t, qs)
}

func TestLockIsFreedWhenABurstIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, l := withTurn(t)
		l.Others(0, true)
		round := func() bool {
			_, p := enter(qs)
			passed := l.PassLock(qs.Transfer("owner"))
			if !passed {
				l.Pass(true)
			}
			<-p.Ready
			require.Equal(t, !passed, p.Yield.Turns > 0, "that is the others' turn")
			if !passed {
				require.Equal(t, 1, p.Yield.Turns, "each frees the lock once for a burst")
			}
			return passed
		}
		for range 3 {
			for range burstMax - 1 {
				require.True(t, round())
			}
			require.False(t, round())
		}
		require.True(t, round())
		time.Sleep(burstTime - 1)
		require.True(t, round())
		time.Sleep(time.Nanosecond)
		require.False(t, round(), "long holds: by time")
	})
}

func TestPatienceIsForBurstsAmongContendersThatTransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for pause, patience := range map[time.Duration]time.Duration{
			0:                      burstMin,
			burstTime / burstMax:   burstTimes * (burstMax - 1) * (burstTime / burstMax),
			100 * time.Millisecond: burstTimes * burstTime,
		} {
			qs, l := withTurn(t)
			l.Others(0, true)
			asked, _ := turns(l, qs, burstMax, pause, true)
			require.NotEmpty(t, asked)
			require.Equal(t, 1, asked[0].Turns)
			require.Equal(t, patience, asked[0].Patience)
		}
	})
}

func TestYieldIsBoundByTimeUntilRemoteContendersAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, l := withTurn(t)
		asked, _ := turns(l, qs, 5, burstTime/4, true)
		require.Equal(t, burstTime, asked[0].Most)
		l.Refused(otherOwner, 30*time.Second)
		asked, _ = turns(l, qs, 6, burstTime/4, true)
		require.Zero(t, asked[0].Most, "Redisson's turns are what it is to have")
	})
}

func TestWhatWasNotUsedGoesToTheNextOrBack(t *testing.T) {
	qs := newQueues()
	l, _ := enter(qs)
	l.Others(0, true)
	_, leaver := enter(qs)
	_, stayer := enter(qs)
	b := qs.Transfer("owner")
	require.True(t, l.PassLock(b))
	l.Quit(leaver)
	require.True(t, isReady(stayer))
	require.Same(t, b, stayer.Transfer)
	l.Quit(stayer)
	require.ErrorIs(t, b.Wait(time.Second), transport.ErrNotSent)
	requireNoQueue(t, qs)

	l, _ = enter(qs)
	l.Others(0, true)
	_, leaver = enter(qs)
	require.True(t, l.PassLock(b))
	_, stayer = enter(qs)
	l.Others(1, true) // and their kind is not known
	l.Quit(leaver)
	require.True(t, isReady(stayer), "the turn, without the lock")
	require.Nil(t, stayer.Transfer)
	require.ErrorIs(t, b.Wait(time.Second), transport.ErrNotSent)
	l.Pass(true)
	requireNoQueue(t, qs)
}

func TestWaitForATransferIsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs := newQueues()
		b := qs.Transfer("owner")
		began := time.Now()
		require.ErrorIs(t, b.Wait(time.Second), transport.ErrUncertain)
		require.Equal(t, time.Second, time.Since(began))
		b.Settle(nil) // does not block
		b = qs.Transfer("owner")
		late := b
		require.ErrorIs(t, b.Wait(time.Minute), transport.ErrUncertain)
		defer late.Settle(engine.ErrLost) // and has no effect
		require.Equal(t, time.Second+time.Minute, time.Since(began))
		b = qs.Transfer("owner")
		b.Settle(engine.ErrLost)
		require.ErrorIs(t, b.Wait(time.Minute), engine.ErrLost)
		time.Sleep(time.Hour)
		b = qs.Transfer("owner") // the same, maybe: nothing is left of its timer
		b.Settle(nil)
		require.NoError(t, b.Wait(time.Hour))
	})
}

func TestRemoteContendersAreAlikeWhenEachWasSeenAMomentAgo(t *testing.T) {
	now := time.Now()
	one, two := native(t), native(t)
	var c contenders
	allRedlatch := func(n int, after time.Duration) bool { // with a count of just now
		c.counted = now.Add(after)
		return c.allRedlatch(n, now.Add(after))
	}
	require.False(t, c.allRedlatch(0, now), "they were not counted")
	require.True(t, allRedlatch(0, 0))
	require.True(t, c.allRedlatch(0, now.Add(countedFor-1)))
	require.False(t, c.allRedlatch(0, now.Add(countedFor)), "that was too long ago")
	require.False(t, allRedlatch(1, 0))
	c.met(one, now)
	c.met(codec.NewOwner(one.Client(), 2), now)
	require.True(t, allRedlatch(1, 0))
	require.False(t, allRedlatch(2, 0), "the same client twice")
	c.met(two, now.Add(seenFor/2))
	require.True(t, allRedlatch(2, seenFor-1))
	require.False(t, allRedlatch(2, seenFor), "one was seen too long ago")
	c.met(one, now.Add(seenFor))
	require.True(t, allRedlatch(2, seenFor))
	for _, foreign := range []codec.Owner{otherOwner, {}} {
		c.met(foreign, now.Add(seenFor))
		require.False(t, allRedlatch(0, seenFor+foreignFor-1), "there is one of another kind")
		require.True(t, allRedlatch(0, seenFor+foreignFor))
	}
	c.forget()
	require.False(t, c.allRedlatch(0, now.Add(time.Hour)))
	require.False(t, allRedlatch(1, seenFor))
}

func TestACallerRefusedByItsOwnClientHasSeenNoRemoteContender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		self := native(t)
		qs := NewQueues(self.Client(), time.Minute)
		l, _ := enter(qs)
		turns(l, qs, 5, 0, true)
		ahead := l.ahead
		l.Others(1, true)
		l.Refused(self, 30*time.Second)
		require.Equal(t, ahead, l.ahead)
		_, p := enter(qs)
		require.False(t, l.PassLock(qs.Transfer("owner")))
		l.Refused(native(t), 30*time.Second)
		require.Equal(t, ahead-1, l.ahead)
		require.True(t, l.PassLock(qs.Transfer("owner")))
		require.True(t, isReady(p))
		l.Pass(true)
		requireNoQueue(t, qs)
	})
}

func TestThePollingWaiterDoesNotTakeTheLockOver(t *testing.T) {
	qs, l := withTurn(t)
	l.Others(0, true)
	_, p := enter(qs)
	b := qs.Transfer("owner")
	l.Asks(p, true)
	require.False(t, l.PassLock(b), "it waits for a reply, which may take long")
	l.Asks(p, false)
	require.True(t, l.PassLock(b))
	require.True(t, isReady(p))
}

func TestRemoteContendersThatHaveGoneAreForgotten(t *testing.T) {
	var c contenders
	now := time.Now()
	for i := range 1000 {
		c.met(native(t), now.Add(time.Duration(i)*seenFor/10))
	}
	require.Len(t, c.seen, 10)
}
