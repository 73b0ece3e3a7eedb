package localqueue

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/transport"
)

func emptyQueues() *queues { return newQueues(uuid.UUID{}, time.Minute) }

func transferOf(qs *queues) *acquire.Transfer { return acquire.NewTransfer(&qs.transfers, "owner") }

func enter(qs *queues) (*queue, *caller) {
	l, c := qs.join("plain", "lock"), &caller{}
	if l.enter(c) {
		return l, nil
	}
	return l, c
}

// withTurn returns queues and a queue in them, whose turn the caller holds until the test ends.
func withTurn(t *testing.T) (*queues, *queue) {
	t.Helper()
	qs := emptyQueues()
	l, _ := enter(qs)
	t.Cleanup(func() {
		l.Pass(true)
		require.Empty(t, qs.byID)
	})
	return qs, l
}

func isReady(p *caller) bool {
	select {
	case <-p.ready:
		return true
	default:
		return false
	}
}

func requireNoQueue(t *testing.T, qs *queues) {
	t.Helper()
	require.Empty(t, qs.byID)
}

func TestQueuesAreByKindAndKey(t *testing.T) {
	qs := emptyQueues()
	a, b, c := qs.join("plain", "a"), qs.join("plain", "b"), qs.join("fair", "a")
	for _, l := range []*queue{a, b, c} {
		require.True(t, l.enter(&caller{}))
	}
	for _, l := range []*queue{a, b, c} {
		l.Pass(false)
	}
	requireNoQueue(t, qs)
}

func TestQuitRemovesWaiterAtAnyPosition(t *testing.T) {
	for quits := range 3 {
		qs := emptyQueues()
		l, _ := enter(qs)
		var places []*caller
		for range 3 {
			_, p := enter(qs)
			places = append(places, p)
		}
		l.quit(places[quits])
		l.Pass(true)
		for i, p := range places {
			if i != quits {
				require.True(t, isReady(p), "first in, first out")
				l.Pass(true)
			}
		}
		require.False(t, isReady(places[quits]))
		require.Nil(t, places[quits].queue)
		requireNoQueue(t, qs)
	}
}

func TestQuitPassesTurnToNextWaiter(t *testing.T) {
	qs := emptyQueues()
	l, _ := enter(qs)
	_, leaver := enter(qs)
	_, stayer := enter(qs)
	l.Pass(true) // the turn belongs to the leaving waiter, which has not looked yet
	l.quit(leaver)
	require.True(t, isReady(stayer))
	l.Pass(false)
	requireNoQueue(t, qs)

	l, _ = enter(qs)
	_, last := enter(qs)
	l.Pass(true)
	l.quit(last) // no waiter is left
	requireNoQueue(t, qs)
	l, p := enter(qs)
	require.Nil(t, p, "the turn is to be had")
	l.Pass(false)
}

var otherOwner = codec.NewOwner(uuid.UUID{1}, 7)

func granted(l *queue)    { l.granted(otherOwner) }
func turnedAway(l *queue) { l.refused(otherOwner, 30*time.Second) }

func TestPassWithoutWaiterRemovesQueue(t *testing.T) {
	qs := emptyQueues()
	l, _ := enter(qs)
	granted(l)
	require.Equal(t, acquire.QueueState{Known: true, Held: true, Holder: otherOwner}, l.state)
	l.owed.turns = 1
	l.Pass(true)
	require.Zero(t, l.owed)
	requireNoQueue(t, qs)
	l, p := enter(qs)
	require.Nil(t, p)
	require.Equal(t, acquire.QueueState{}, l.state, "a new line knows nothing")
	l.Pass(false)
}

func TestAttemptOfWaitingCallerLeavesState(t *testing.T) {
	qs, l := withTurn(t)
	granted(l)
	held := l.state
	_, w := enter(qs)
	w.Refused(&acquire.Acquisition{}, acquire.Outcome{Holder: otherOwner, TTL: time.Second})
	w.Unanswered(errors.New("away"))
	require.Equal(t, held, l.state, "it could no longer poll")
	l.quit(w)
}

func TestTryEnterRefusesOnlyWhenCertain(t *testing.T) {
	away := errors.New("away")
	for _, c := range []struct {
		name    string
		state   func(*queue)
		waiter  bool
		refused bool
	}{
		{"first attempt in progress", func(*queue) {}, false, false},
		{"first attempt in progress, others wait", func(*queue) {}, true, false},
		{"held, no waiter: Redis may know better", granted, false, false},
		{"held, with a waiter", granted, true, true},
		{"the caller with the turn waits for another process", turnedAway, false, true},
		{"Redis is away", func(l *queue) { turnedAway(l); l.state.Away = away }, true, false},
		{"Redis is back", func(l *queue) { l.state.Away = away; turnedAway(l) }, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			qs := emptyQueues()
			l, _ := enter(qs)
			c.state(l)
			var p *caller
			if c.waiter {
				_, p = enter(qs)
			}
			want := l.state
			try := &caller{}
			refused, state := qs.join("plain", "lock").tryEnter(try)
			require.False(t, try.turn)
			require.Equal(t, c.refused, refused)
			require.Equal(t, want, state)
			if p != nil {
				l.quit(p)
			}
			l.Pass(true)
			requireNoQueue(t, qs)
		})
	}
	qs := emptyQueues()
	l := qs.join("plain", "lock")
	try := &caller{}
	refused, _ := l.tryEnter(try)
	require.True(t, try.turn)
	require.Same(t, l, try.queue)
	require.False(t, refused)
	_, p := enter(qs)
	require.NotNil(t, p, "it has the turn")
	l.quit(p)
	l.Pass(false)
	requireNoQueue(t, qs)
}

// turns passes the turn on n times, after a pause each time. It returns the yields that became due and the number of
// the turn before the first of them.
func turns(l *queue, qs *queues, n int, pause time.Duration, held bool) (asked []yield, first int) {
	for i := range n {
		_, p := enter(qs)
		time.Sleep(pause)
		l.Pass(held)
		<-p.ready
		if p.passed != held {
			panic("the turn says otherwise than how it was passed")
		}
		if l.owed.turns > 0 {
			if asked = append(asked, l.owed); len(asked) == 1 {
				first = i + 1
			}
			l.owed = yield{}
		}
	}
	return asked, first
}

func TestRemoteContendersGoFirstAfterBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, l := withTurn(t)
		asked, first := turns(l, qs, 10*burstMax, 0, true)
		require.Len(t, asked, 10)
		require.Equal(t, burstMax, first)
		require.Equal(t, yield{turns: burstMax, patience: yieldMin}, asked[0])
		asked, _ = turns(l, qs, 100, burstTime/4, true)
		require.Len(t, asked, 20, "long holds: by time")
		require.Equal(t, yield{turns: 5, most: burstTime, patience: yieldMax}, asked[1])
		asked, _ = turns(l, qs, 10*burstMax, 0, false)
		require.Empty(t, asked, "nothing was freed")
	})
}

func TestYieldPassesToTheNextWaiterUntilDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, l := withTurn(t)
		turns(l, qs, burstMax-1, 0, true)
		_, gone := enter(qs)
		_, leaver := enter(qs)
		_, stayer := enter(qs)
		l.Pass(true)
		owed := l.owed
		require.Equal(t, burstMax, owed.turns)
		l.quit(gone) // its turn came as it left
		require.True(t, isReady(leaver))
		require.Equal(t, owed, l.owed)
		l.Pass(false) // it left while others went first
		require.True(t, isReady(stayer))
		require.Equal(t, owed, l.owed)
		l.owed = yield{}
		_, next := enter(qs)
		l.Pass(true)
		require.True(t, isReady(next))
		require.Zero(t, l.owed)
	})
}

func TestRemoteTurnsOffsetLocalTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for others, refusals := range []int{10, 10, 20, 30} {
			qs := emptyQueues()
			l, _ := enter(qs)
			if others > 0 { // otherwise they were not counted
				l.count(others, true)
			}
			for range 10 {
				asked, _ := turns(l, qs, 10, 0, true)
				require.Empty(t, asked, "%d others", others)
				for range refusals {
					turnedAway(l)
				}
			}
			asked, first := turns(l, qs, burstMax, 0, true)
			require.Len(t, asked, 1)
			require.Equal(t, burstMax, first, "%d others: neither ahead nor behind", others)
			turns(l, qs, 10, 0, true)
			for range refusals / 2 {
				turnedAway(l)
			}
			_, first = turns(l, qs, burstMax, 0, true)
			require.Equal(t, burstMax-5, first, "%d others: half as many turns", others)
			l.Pass(true)
			requireNoQueue(t, qs)
			fresh := &queue{queues: l.queues, id: l.id, aheadSince: l.aheadSince, poll: l.poll, waiting: l.waiting}
			require.Equal(t, fresh, l, "reused caller")
		}
	})
}

func TestCoalescedMessagesCountAsTurns(t *testing.T) {
	c := &caller{yields: &yielding{yield: yield{turns: 3}, began: time.Now()}}
	ask, _ := c.OnEvent(transport.Event{})
	require.False(t, ask)
	ask, _ = c.OnEvent(transport.Event{Coalesced: 1})
	require.True(t, ask)
}

func TestYieldLastsMinimumTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &caller{yields: &yielding{yield: yield{turns: 1, least: time.Second}, began: time.Now()}}
		for range 3 {
			ask, _ := c.OnEvent(transport.Event{})
			require.False(t, ask)
		}
		time.Sleep(time.Second)
		ask, _ := c.OnEvent(transport.Event{})
		require.True(t, ask)
	})
}

// idle is a subscription that counts how often it is closed.
type idle struct {
	transport.Subscription
	closed int
}

func (s *idle) Close() { s.closed++ }

func TestSubscriptionLastsAsLongAsQueue(t *testing.T) {
	qs := emptyQueues()
	l, _ := enter(qs)
	_, next := enter(qs)
	sub := &idle{}
	l.keep(sub)
	granted(l)
	l.Pass(true)
	require.True(t, isReady(next))
	require.False(t, l.state.Held, "it is being freed")
	require.Same(t, sub, l.subscription())
	require.Zero(t, sub.closed)
	granted(l) // no waiter is left to use it
	require.Equal(t, 1, sub.closed)
	require.Nil(t, l.subscription())
	again := &idle{}
	l.keep(again)
	l.Pass(true)
	require.Equal(t, 1, again.closed)
	require.Equal(t, 1, sub.closed)
	requireNoQueue(t, qs)
}
