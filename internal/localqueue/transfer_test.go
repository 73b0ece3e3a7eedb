package localqueue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/core"
	"github.com/redlatch/redlatch/transport"
)

// native is an owner of a client of this library.
func native(t *testing.T) codec.Owner {
	t.Helper()
	id, err := uuid.NewV7()
	require.NoError(t, err)
	return codec.NewOwner(id, 1)
}

func TestLockIsPassedOnOnlyToTheNextInLine(t *testing.T) {
	e := newLines()
	l, _ := enter(e)
	l.Others(0, true)
	b := e.Baton("owner")
	require.False(t, l.PassWith(b), "nobody is next")
	_, p := enter(e)
	_, last := enter(e)
	granted(l)
	require.True(t, l.PassWith(b))
	require.True(t, isReady(p))
	require.False(t, isReady(last))
	require.Same(t, b, p.Baton)
	require.True(t, p.Passed)
	require.Equal(t, Courtesy{}, p.Courtesy)
	require.False(t, l.State().Held, "it is on its way")
	l.Pass(true)
	require.True(t, isReady(last))
	require.Nil(t, last.Baton)
	l.Pass(true)
	requireNoLine(t, e)
}

func TestLockIsNotPassedOnBeforeOthersWereCounted(t *testing.T) {
	e := newLines()
	l, _ := enter(e)
	_, p := enter(e)
	b := e.Baton("owner")
	require.False(t, l.PassWith(b))
	for range 4 {
		l.Refused(native(t), 30*time.Second)
	}
	l.Others(4, false)
	require.False(t, l.PassWith(b), "a guess")
	l.Others(0, true)
	require.True(t, l.PassWith(b))
	require.True(t, isReady(p))
	l.Pass(true)
	requireNoLine(t, e)
	l, _ = enter(e)
	_, _ = enter(e)
	require.False(t, l.PassWith(b), "a new line knows nothing")
	l.Pass(true)
	l.Pass(true)
	requireNoLine(t, e)
}

func TestLockIsFreedWhenABurstIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newLines()
		l, _ := enter(e)
		l.Others(0, true)
		round := func() bool {
			_, p := enter(e)
			passed := l.PassWith(e.Baton("owner"))
			if !passed {
				l.Pass(true)
			}
			<-p.Ready
			require.Equal(t, !passed, p.Courtesy.Turns > 0, "that is the others' turn")
			if !passed {
				require.Equal(t, 1, p.Courtesy.Turns, "each frees the lock once for a burst")
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
		l.Pass(true)
		requireNoLine(t, e)
	})
}

func TestPatienceIsForBurstsAmongThoseWhoPassOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for pause, patience := range map[time.Duration]time.Duration{
			0:                      burstMin,
			burstTime / burstMax:   burstTimes * (burstMax - 1) * (burstTime / burstMax),
			100 * time.Millisecond: burstTimes * burstTime,
		} {
			e := newLines()
			l, _ := enter(e)
			l.Others(0, true)
			asked, _ := handOvers(l, e, burstMax, pause, true)
			require.NotEmpty(t, asked)
			require.Equal(t, 1, asked[0].Turns)
			require.Equal(t, patience, asked[0].Patience)
			l.Pass(true)
			requireNoLine(t, e)
		}
	})
}

func TestCourtesyIsBoundByTimeUntilStrangersAreMet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newLines()
		l, _ := enter(e)
		asked, _ := handOvers(l, e, 5, burstTime/4, true)
		require.Equal(t, burstTime, asked[0].Most)
		l.Refused(somebody, 30*time.Second)
		asked, _ = handOvers(l, e, 6, burstTime/4, true)
		require.Zero(t, asked[0].Most, "Redisson's turns are what it is to have")
		l.Pass(true)
		requireNoLine(t, e)
	})
}

func TestWhatWasNotUsedGoesToTheNextOrBack(t *testing.T) {
	e := newLines()
	l, _ := enter(e)
	l.Others(0, true)
	_, leaver := enter(e)
	_, stayer := enter(e)
	b := e.Baton("owner")
	require.True(t, l.PassWith(b))
	l.Quit(leaver)
	require.True(t, isReady(stayer))
	require.Same(t, b, stayer.Baton)
	l.Quit(stayer)
	require.ErrorIs(t, b.Wait(time.Second), transport.ErrNotSent)
	requireNoLine(t, e)

	l, _ = enter(e)
	l.Others(0, true)
	_, leaver = enter(e)
	require.True(t, l.PassWith(b))
	_, stayer = enter(e)
	l.Others(1, true) // and nobody knows of which kind
	l.Quit(leaver)
	require.True(t, isReady(stayer), "the turn, without the lock")
	require.Nil(t, stayer.Baton)
	require.ErrorIs(t, b.Wait(time.Second), transport.ErrNotSent)
	l.Pass(true)
	requireNoLine(t, e)
}

func TestWaitForABatonIsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newLines()
		b := e.Baton("owner")
		began := time.Now()
		require.ErrorIs(t, b.Wait(time.Second), transport.ErrUncertain)
		require.Equal(t, time.Second, time.Since(began))
		b.Settle(nil) // blocks nobody
		b = e.Baton("owner")
		late := b
		require.ErrorIs(t, b.Wait(time.Minute), transport.ErrUncertain)
		defer late.Settle(core.ErrLost) // and harms nobody
		require.Equal(t, time.Second+time.Minute, time.Since(began))
		b = e.Baton("owner")
		b.Settle(core.ErrLost)
		require.ErrorIs(t, b.Wait(time.Minute), core.ErrLost)
		time.Sleep(time.Hour)
		b = e.Baton("owner") // the same, maybe: nothing is left of its timer
		b.Settle(nil)
		require.NoError(t, b.Wait(time.Hour))
	})
}

func TestCrowdIsAlikeWhenEachWasSeenAMomentAgo(t *testing.T) {
	now := time.Now()
	one, two := native(t), native(t)
	var c crowd
	alike := func(n int, after time.Duration) bool { // with a count of just now
		c.counted = now.Add(after)
		return c.alike(n, now.Add(after))
	}
	require.False(t, c.alike(0, now), "nobody has counted them")
	require.True(t, alike(0, 0))
	require.True(t, c.alike(0, now.Add(countedFor-1)))
	require.False(t, c.alike(0, now.Add(countedFor)), "that was too long ago")
	require.False(t, alike(1, 0))
	c.saw(one, now)
	c.saw(codec.NewOwner(one.Client(), 2), now)
	require.True(t, alike(1, 0))
	require.False(t, alike(2, 0), "the same client twice")
	c.saw(two, now.Add(seenFor/2))
	require.True(t, alike(2, seenFor-1))
	require.False(t, alike(2, seenFor), "one was seen too long ago")
	c.saw(one, now.Add(seenFor))
	require.True(t, alike(2, seenFor))
	for _, stranger := range []codec.Owner{somebody, {}} {
		c.saw(stranger, now.Add(seenFor))
		require.False(t, alike(0, seenFor+strangeFor-1), "there is one of another kind")
		require.True(t, alike(0, seenFor+strangeFor))
	}
	c.forget()
	require.False(t, c.alike(0, now.Add(time.Hour)))
	require.False(t, alike(1, seenFor))
}

func TestWhoIsRefusedByItsOwnClientHasSeenNobody(t *testing.T) {
	self := native(t)
	e := NewLines(self.Client())
	l, _ := enter(e)
	handOvers(l, e, 5, 0, true)
	ahead := l.ahead
	l.Others(1, true)
	l.Refused(self, 30*time.Second)
	require.Equal(t, ahead, l.ahead)
	_, p := enter(e)
	require.False(t, l.PassWith(e.Baton("owner")))
	l.Refused(native(t), 30*time.Second)
	require.Equal(t, ahead-1, l.ahead)
	require.True(t, l.PassWith(e.Baton("owner")))
	require.True(t, isReady(p))
	l.Pass(true)
	requireNoLine(t, e)
}

func TestWhoAsksDoesNotTakeTheLockOver(t *testing.T) {
	e := newLines()
	l, _ := enter(e)
	l.Others(0, true)
	_, p := enter(e)
	b := e.Baton("owner")
	l.Asks(p, true)
	require.False(t, l.PassWith(b), "it waits for a reply, which may take long")
	l.Asks(p, false)
	require.True(t, l.PassWith(b))
	require.True(t, isReady(p))
	l.Pass(true)
	requireNoLine(t, e)
}

func TestCrowdForgetsThoseWhoHaveGone(t *testing.T) {
	var c crowd
	now := time.Now()
	for i := range 1000 {
		c.saw(native(t), now.Add(time.Duration(i)*seenFor/10))
	}
	require.Len(t, c.seen, 10)
}
