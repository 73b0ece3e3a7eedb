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

// native is an owner from a client of this library.
func native(t *testing.T) codec.Owner {
	t.Helper()
	id, err := uuid.NewV7()
	require.NoError(t, err)
	return codec.NewOwner(id, 1)
}

func TestLockTransfersOnlyToNextWaiter(t *testing.T) {
	qs, l := withTurn(t)
	l.count(0, true)
	b := transferOf(qs)
	require.False(t, l.passLock(b), "no next waiter")
	_, p := enter(qs)
	_, last := enter(qs)
	granted(l)
	require.True(t, l.passLock(b))
	require.True(t, isReady(p))
	require.False(t, isReady(last))
	require.Same(t, b, p.transfer)
	require.True(t, p.passed)
	require.Equal(t, yield{}, l.owed)
	require.False(t, l.state.Held, "it is in flight")
	l.Pass(true)
	require.True(t, isReady(last))
	require.Nil(t, last.transfer)
}

func TestTransferRequiresRemoteContenderCount(t *testing.T) {
	qs := emptyQueues()
	l, _ := enter(qs)
	_, p := enter(qs)
	b := transferOf(qs)
	require.False(t, l.passLock(b))
	for range 4 {
		l.refused(native(t), 30*time.Second)
	}
	l.count(4, false)
	require.False(t, l.passLock(b), "a guess")
	l.count(0, true)
	require.True(t, l.passLock(b))
	require.True(t, isReady(p))
	l.Pass(true)
	requireNoQueue(t, qs)
	l, _ = enter(qs)
	_, _ = enter(qs)
	require.False(t, l.passLock(b), "a new line knows nothing")
	l.Pass(true)
	l.Pass(true)
	requireNoQueue(t, qs)
}

func TestLockIsReleasedAfterBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, l := withTurn(t)
		l.count(0, true)
		round := func() bool {
			_, p := enter(qs)
			passed := l.passLock(transferOf(qs))
			if !passed {
				l.Pass(true)
			}
			<-p.ready
			require.Equal(t, !passed, l.owed.turns > 0, "the other processes' turn")
			if !passed {
				require.Equal(t, 1, l.owed.turns, "each frees the lock once for a burst")
				l.owed = yield{}
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

func TestYieldAppliesToTransferringContenders(t *testing.T) {
	const short = (burstMax - 1) * (burstTime / burstMax)
	synctest.Test(t, func(t *testing.T) {
		for pause, c := range map[time.Duration]struct{ took, patience time.Duration }{
			0:                      {0, burstMin},
			burstTime / burstMax:   {short, burstTimes * short},
			100 * time.Millisecond: {100 * time.Millisecond, burstTimes * burstTime},
		} {
			qs, l := withTurn(t)
			l.count(0, true)
			asked, _ := turns(l, qs, burstMax, pause, true)
			require.NotEmpty(t, asked)
			require.Equal(t, 1, asked[0].turns)
			require.Equal(t, c.patience, asked[0].patience)
			require.InDelta(t, c.took/burstTimes, asked[0].least, float64(time.Microsecond))
		}
	})
}

func TestYieldIsTimeBoundWithoutRemoteContenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, l := withTurn(t)
		asked, _ := turns(l, qs, 5, burstTime/4, true)
		require.Equal(t, burstTime, asked[0].most)
		l.refused(otherOwner, 30*time.Second)
		asked, _ = turns(l, qs, 6, burstTime/4, true)
		require.Zero(t, asked[0].most, "the turns left for Redisson")
	})
}

func TestUnusedTransferIsPassedOnOrReleased(t *testing.T) {
	qs := emptyQueues()
	l, _ := enter(qs)
	l.count(0, true)
	_, leaver := enter(qs)
	_, stayer := enter(qs)
	b := transferOf(qs)
	require.True(t, l.passLock(b))
	l.quit(leaver)
	require.True(t, isReady(stayer))
	require.Same(t, b, stayer.transfer)
	l.quit(stayer)
	require.ErrorIs(t, b.Wait(time.Second), transport.ErrNotSent)
	requireNoQueue(t, qs)

	l, _ = enter(qs)
	l.count(0, true)
	_, leaver = enter(qs)
	require.True(t, l.passLock(b))
	_, stayer = enter(qs)
	l.count(1, true) // and their kind is not known
	l.quit(leaver)
	require.True(t, isReady(stayer), "the turn, without the lock")
	require.Nil(t, stayer.transfer)
	require.ErrorIs(t, b.Wait(time.Second), transport.ErrNotSent)
	l.Pass(true)
	requireNoQueue(t, qs)
}

func TestWaitForTransferIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs := emptyQueues()
		b := transferOf(qs)
		began := time.Now()
		require.ErrorIs(t, b.Wait(time.Second), transport.ErrUncertain)
		require.Equal(t, time.Second, time.Since(began))
		b.Settle(nil) // does not block
		b = transferOf(qs)
		late := b
		require.ErrorIs(t, b.Wait(time.Minute), transport.ErrUncertain)
		defer late.Settle(engine.ErrLost) // and has no effect
		require.Equal(t, time.Second+time.Minute, time.Since(began))
		b = transferOf(qs)
		b.Settle(engine.ErrLost)
		require.ErrorIs(t, b.Wait(time.Minute), engine.ErrLost)
		time.Sleep(time.Hour)
		b = transferOf(qs) // the same, perhaps: its timer has fired
		b.Settle(nil)
		require.NoError(t, b.Wait(time.Hour))
	})
}

func TestAllRedlatchRequiresRecentSightings(t *testing.T) {
	now := time.Now()
	one, two := native(t), native(t)
	var c contenders
	allRedlatch := func(n int, after time.Duration) bool { // with a count made just now
		c.counted = now.Add(after)
		return c.allRedlatch(n, now.Add(after))
	}
	require.False(t, c.allRedlatch(0, now), "not counted")
	require.True(t, allRedlatch(0, 0))
	require.True(t, c.allRedlatch(0, now.Add(countedFor-1)))
	require.False(t, c.allRedlatch(0, now.Add(countedFor)), "too long ago")
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
		require.False(t, allRedlatch(0, seenFor+foreignFor-1), "another kind of client contends")
		require.True(t, allRedlatch(0, seenFor+foreignFor))
	}
	c.forget()
	require.False(t, c.allRedlatch(0, now.Add(time.Hour)))
	require.False(t, allRedlatch(1, seenFor))
}

func TestLocalRefusalIsNotRemoteContention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		self := native(t)
		qs := newQueues(self.Client(), time.Minute)
		l, _ := enter(qs)
		turns(l, qs, 5, 0, true)
		ahead := l.ahead
		l.count(1, true)
		l.refused(self, 30*time.Second)
		require.Equal(t, ahead, l.ahead)
		_, p := enter(qs)
		require.False(t, l.passLock(transferOf(qs)))
		l.refused(native(t), 30*time.Second)
		require.Equal(t, ahead-1, l.ahead)
		require.True(t, l.passLock(transferOf(qs)))
		require.True(t, isReady(p))
		l.Pass(true)
		requireNoQueue(t, qs)
	})
}

func TestPollingWaiterGetsNoTransfer(t *testing.T) {
	qs, l := withTurn(t)
	l.count(0, true)
	_, p := enter(qs)
	b := transferOf(qs)
	p.asks = true
	require.False(t, l.passLock(b), "it waits for a reply, which may take long")
	p.asks = false
	require.True(t, l.passLock(b))
	require.True(t, isReady(p))
}

func TestDepartedRemoteContendersAreForgotten(t *testing.T) {
	var c contenders
	now := time.Now()
	for i := range 1000 {
		c.met(native(t), now.Add(time.Duration(i)*seenFor/10))
	}
	require.Len(t, c.seen, 10)
}
