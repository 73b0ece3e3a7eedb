package localqueue

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

func newLines() *Lines { return NewLines(uuid.UUID{}) }

func enter(e *Lines) (*Line, *Place) {
	l := e.Line("plain", "lock")
	return l, l.Enter()
}

func isReady(p *Place) bool {
	select {
	case <-p.Ready:
		return true
	default:
		return false
	}
}

// requireNoLine holds that every reference was given up.
func requireNoLine(t *testing.T, e *Lines) {
	t.Helper()
	require.Empty(t, e.byID)
}

func TestTurnGoesRoundInOrder(t *testing.T) {
	e := newLines()
	first, place := enter(e)
	require.Nil(t, place, "nobody has the turn")
	var places []*Place
	var lines []*Line
	for range 5 {
		l, p := enter(e)
		require.NotNil(t, p)
		require.Same(t, first, l, "one line for one lock")
		places, lines = append(places, p), append(lines, l)
	}
	require.True(t, first.IsNext(places[0]))
	first.Pass(true)
	for i, p := range places {
		require.True(t, isReady(p))
		for _, later := range places[i+1:] {
			require.False(t, isReady(later))
		}
		lines[i].Pass(true)
	}
	requireNoLine(t, e)
}

func TestLinesAreByKindAndKey(t *testing.T) {
	e := newLines()
	a, b, c := e.Line("plain", "a"), e.Line("plain", "b"), e.Line("fair", "a")
	for _, l := range []*Line{a, b, c} {
		require.Nil(t, l.Enter())
	}
	for _, l := range []*Line{a, b, c} {
		l.Pass(false)
	}
	requireNoLine(t, e)
}

func TestQuitLeavesTheLineFromAnyPlace(t *testing.T) {
	for quits := range 3 {
		e := newLines()
		l, _ := enter(e)
		var places []*Place
		for range 3 {
			_, p := enter(e)
			places = append(places, p)
		}
		l.Quit(places[quits])
		l.Pass(true)
		for i, p := range places {
			if i != quits {
				require.True(t, isReady(p))
				l.Pass(true)
			}
		}
		require.False(t, isReady(places[quits]))
		requireNoLine(t, e)
	}
}

func TestQuitWithTheTurnPassesItOn(t *testing.T) {
	e := newLines()
	l, _ := enter(e)
	_, leaver := enter(e)
	_, stayer := enter(e)
	l.Pass(true) // the turn is the leaver's, who has not looked yet
	l.Quit(leaver)
	require.True(t, isReady(stayer))
	l.Pass(false)
	requireNoLine(t, e)

	l, _ = enter(e)
	_, last := enter(e)
	l.Pass(true)
	l.Quit(last) // nobody is left
	requireNoLine(t, e)
	l, p := enter(e)
	require.Nil(t, p, "the turn is to be had")
	l.Pass(false)
}

var somebody = codec.NewOwner(uuid.UUID{1}, 7)

func granted(l *Line)    { l.Granted(somebody) }
func turnedAway(l *Line) { l.Refused(somebody, 30*time.Second) }

func TestPassToNobodyForgetsTheLine(t *testing.T) {
	e := newLines()
	l, _ := enter(e)
	granted(l)
	require.Equal(t, LineState{Known: true, Held: true, Holder: somebody}, l.State())
	l.Pass(true)
	requireNoLine(t, e)
	l, p := enter(e)
	require.Nil(t, p)
	require.Equal(t, LineState{}, l.State(), "a new line knows nothing")
	l.Pass(false)
}

func TestTryEnterRefusesOnlyWhatIsSure(t *testing.T) {
	away := errors.New("away")
	for _, c := range []struct {
		name    string
		state   func(*Line)
		waiter  bool
		refused bool
	}{
		{"first attempt under way", func(*Line) {}, false, false},
		{"first attempt under way, others wait", func(*Line) {}, true, false},
		{"held, nobody waits: Redis may know better", granted, false, false},
		{"held, somebody waits", granted, true, true},
		{"who has the turn waits for another process", turnedAway, false, true},
		{"Redis is away", func(l *Line) { turnedAway(l); l.Away(away) }, true, false},
		{"Redis is back", func(l *Line) { l.Away(away); turnedAway(l) }, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newLines()
			l, _ := enter(e)
			c.state(l)
			var p *Place
			if c.waiter {
				_, p = enter(e)
			}
			want := l.State()
			has, refused, state := e.Line("plain", "lock").TryEnter()
			require.False(t, has)
			require.Equal(t, c.refused, refused)
			require.Equal(t, want, state)
			if p != nil {
				l.Quit(p)
			}
			l.Pass(true)
			requireNoLine(t, e)
		})
	}
	e := newLines()
	l := e.Line("plain", "lock")
	has, refused, _ := l.TryEnter()
	require.True(t, has)
	require.False(t, refused)
	_, p := enter(e)
	require.NotNil(t, p, "it has the turn")
	l.Quit(p)
	l.Pass(false)
	requireNoLine(t, e)
}

// handOvers passes the turn on so many times, each after pause, and returns what
// courtesies that asked for, and when the first came.
func handOvers(l *Line, e *Lines, n int, pause time.Duration, held bool) (asked []Courtesy, first int) {
	for i := range n {
		_, p := enter(e)
		time.Sleep(pause)
		l.Pass(held)
		<-p.Ready
		if p.Passed != held {
			panic("the turn says otherwise than how it was passed")
		}
		if p.Courtesy.Turns > 0 {
			if asked = append(asked, p.Courtesy); len(asked) == 1 {
				first = i + 1
			}
		}
	}
	return asked, first
}

func TestOthersGoFirstAfterABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newLines()
		l, _ := enter(e)
		asked, first := handOvers(l, e, 10*burstMax, 0, true)
		require.Len(t, asked, 10)
		require.Equal(t, burstMax, first)
		require.Equal(t, Courtesy{Turns: burstMax, Patience: courtesyMin}, asked[0])
		asked, _ = handOvers(l, e, 100, burstTime/4, true)
		require.Len(t, asked, 20, "long holds: by time")
		require.Equal(t, Courtesy{Turns: 5, Most: burstTime, Patience: courtesyMax}, asked[1])
		asked, _ = handOvers(l, e, 10*burstMax, 0, false)
		require.Empty(t, asked, "nothing was freed")
		l.Pass(true)
		requireNoLine(t, e)
	})
}

func TestTurnsOfOthersMakeUpForTurnsHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for others, refusals := range []int{10, 10, 20, 30} {
			e := newLines()
			l, _ := enter(e)
			if others > 0 { // else nobody has counted them
				l.Others(others, true)
			}
			for range 10 {
				asked, _ := handOvers(l, e, 10, 0, true)
				require.Empty(t, asked, "%d others", others)
				for range refusals {
					turnedAway(l)
				}
			}
			asked, first := handOvers(l, e, burstMax, 0, true)
			require.Len(t, asked, 1)
			require.Equal(t, burstMax, first, "%d others: neither ahead nor behind", others)
			handOvers(l, e, 10, 0, true)
			for range refusals / 2 {
				turnedAway(l)
			}
			_, first = handOvers(l, e, burstMax, 0, true)
			require.Equal(t, burstMax-5, first, "%d others: half as many turns", others)
			l.Pass(true)
			requireNoLine(t, e)
			fresh := &Line{lines: l.lines, id: l.id, aheadSince: l.aheadSince}
			require.Equal(t, fresh, l, "what is used again")
		}
	})
}

// idle is a subscription that counts how often it is closed.
type idle struct {
	transport.Subscription
	closed int
}

func (s *idle) Close() { s.closed++ }

func TestSubscriptionStaysWhileThereIsALine(t *testing.T) {
	e := newLines()
	l, _ := enter(e)
	_, next := enter(e)
	sub := &idle{}
	l.Keep(sub)
	l.Rest()
	l.Pass(true)
	require.True(t, isReady(next))
	require.Same(t, sub, l.Subscription())
	require.Zero(t, sub.closed)
	l.Rest() // nobody is left to use it
	require.Equal(t, 1, sub.closed)
	require.Nil(t, l.Subscription())
	again := &idle{}
	l.Keep(again)
	l.Pass(true)
	require.Equal(t, 1, again.closed)
	require.Equal(t, 1, sub.closed)
	requireNoLine(t, e)
}

func TestManyGoroutinesPassOneTurn(t *testing.T) {
	t.Parallel()
	e := newLines()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	inside := 0 // the turn guards it
	var wg sync.WaitGroup
	for g := range 20 {
		wg.Go(func() {
			for i := range 500 {
				l, p := enter(e)
				if p != nil && (g+i)%3 == 0 {
					l.Quit(p)
					continue
				}
				if p != nil {
					select {
					case <-p.Ready:
					case <-ctx.Done():
						t.Error("the turn was lost")
						return
					}
				}
				inside++
				if inside != 1 {
					t.Error("two have the turn")
				}
				inside--
				l.Pass(i%2 == 0)
			}
		})
	}
	wg.Wait()
	requireNoLine(t, e)
}
