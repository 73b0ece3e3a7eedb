package engine

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// leaving is a doubt about who stands at a place of a queue.
func leaving(queue string, place int64) *Doubt {
	d := placed(nil)
	d.Release, d.Queue, d.Place = nil, queue, place
	d.GiveUp = func(c *transport.Call) {
		c.Command = "GIVEUP"
		c.Args = append(c.Args, fmt.Sprint(queue, place))
	}
	return d
}

// exodusOf makes n leave a queue, after those who keep all calls busy. It returns
// how many have left.
func exodusOf(e *Engine, queue string, n int64) *atomic.Int64 {
	left := new(atomic.Int64)
	for place := range n {
		d := leaving(queue, place+1)
		d.Done = func() { left.Add(1) }
		e.Depart(d)
	}
	return left
}

// busy keeps all calls that may be in flight busy, and returns what ends them.
func busy(e *Engine, f *fake) func() {
	for range departing {
		e.Depart(leaving("busy", 0))
	}
	return func() {
		for _, c := range f.sent()[:departing] {
			c.ends(nil, nil)
		}
	}
}

// TestManyWhoLeaveOneQueueShareCalls: by one call for each, each of which walks the
// queue, a crowd takes longer than Close waits.
func TestManyWhoLeaveOneQueueShareCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd = 5000
		f := &fake{}
		e, _ := engineOver(t, f)
		free := busy(e, f)
		left := exodusOf(e, "q", crowd)
		require.Len(t, f.sent(), departing)
		free()
		var all []any
		for n := departing; n < len(f.sent()); n++ {
			c := f.sent()[n]
			require.LessOrEqual(t, len(c.call.Args), together)
			require.LessOrEqual(t, len(f.sent())-n, departing, "in flight")
			all = append(all, c.call.Args...)
			c.ends(nil, nil)
		}
		require.LessOrEqual(t, len(f.sent()), crowd/50)
		require.Len(t, slices.Compact(slices.SortedFunc(slices.Values(all), byText)), crowd, "each leaves, once")
		require.EqualValues(t, crowd, left.Load())
		require.Zero(t, e.ghosts.n.Load())
	})
}

func byText(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }

func TestWhoLeavesACrowdedQueueGoesFromItsEndMostly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		e, _ := engineOver(t, f)
		free := busy(e, f)
		exodusOf(e, "q", 20*together)
		free()
		for n := departing; n < departing+fromFront; n++ {
			f.sent()[n].ends(nil, nil)
		}
		calls := f.sent()[departing:]
		require.Equal(t, []any{"q2000", "q1999"}, calls[0].call.Args[:2])
		require.Equal(t, []any{"q1", "q2"}, calls[fromFront-1].call.Args[:2], "those in front get their turn")
		require.Equal(t, []any{"q1300", "q1299"}, calls[fromFront].call.Args[:2])
	})
}

func TestThoseWhoLeaveSeveralQueuesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		e, _ := engineOver(t, f)
		free := busy(e, f)
		exodusOf(e, "crowd", 3*together)
		exodusOf(e, "pair", 2)
		exodusOf(e, "one", 1)
		free()
		var shares []string
		for n := departing; n < len(f.sent()); n++ {
			c := f.sent()[n]
			shares = append(shares, fmt.Sprint(c.call.Args[0], " and ", len(c.call.Args)-1))
			c.ends(nil, nil)
		}
		require.Equal(t, []string{
			"crowd300 and 99", "pair2 and 1", "one1 and 0", "crowd200 and 99", "crowd100 and 99",
		}, shares)
	})
}

// A call that failed is tried again for all of them.
func TestThoseWhoLeaveTogetherInVainAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		e, _ := engineOver(t, f)
		free := busy(e, f)
		left := exodusOf(e, "q", 3)
		free()
		call := f.last(t)
		require.Len(t, call.call.Args, 3)
		f.answer = answering(nil, nil)
		call.ends(nil, errBroken)
		e.work.Wait()
		require.EqualValues(t, 3, left.Load())
		require.Zero(t, e.ghosts.n.Load())
		require.Len(t, f.sent(), departing+1+1)
		again := f.last(t)
		require.Equal(t, "GIVEUP", again.name)
		require.ElementsMatch(t, call.call.Args, again.call.Args)
	})
}

// Redis is away for a while: whatever is tried meanwhile fails at once. One call for
// each afterwards, each of which walks the queue, would take long.
func TestCrowdThatLeavesWhileRedisIsAwayIsTriedAgainTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd = 5000
		const away = 10 * time.Second
		began := time.Now()
		f := &fake{answer: func(*sentCall) (any, error, bool) {
			if time.Since(began) < away {
				return nil, errNotSent, true
			}
			return nil, nil, true
		}}
		e, _ := engineOver(t, f)
		left := exodusOf(e, "q", crowd)
		require.LessOrEqual(t, len(f.sent()), departing, "nobody tries for a moment")
		time.Sleep(away)
		vain := len(f.sent())
		require.LessOrEqual(t, vain, departing*int(2*away/askSoon), "asked again and again in vain")
		e.work.Wait()
		require.LessOrEqual(t, time.Since(began), away+askLater*6/5)
		require.EqualValues(t, crowd, left.Load(), "each has left, once")
		require.Zero(t, e.ghosts.n.Load())
		require.LessOrEqual(t, len(f.sent())-vain, crowd/together+departing)
		e.Depart(leaving("q", 1))
		require.Len(t, f.last(t).call.Args, 1, "it goes on as before")
		require.Zero(t, e.ghosts.n.Load())
	})
}

// One that fails for ever is given up when the place does not last any longer, and
// Close waits for it no longer than for others.
func TestDepartureThatFailsForAsLongAsAPlaceLastsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: answering(nil, errNotSent)}
		e, log := engineOver(t, f)
		e.FairWait = 5 * testLease
		began := time.Now()
		d := leaving("q", 1)
		d.Lease = testLease
		over := time.Duration(0)
		d.Done = func() { over = time.Since(began) }
		e.Depart(d)
		e.work.Wait()
		require.InDelta(t, e.FairWait.Seconds(), over.Seconds(), 2*askLater.Seconds())
		require.Equal(t, 1, log.count("given up"))
		require.Zero(t, e.ghosts.n.Load())
	})
}

func TestCloseEndsDeparturesThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd = 1000
		f := &fake{answer: func(*sentCall) (any, error, bool) { return nil, errNotSent, true }}
		e, _ := engineOver(t, f)
		left := exodusOf(e, "q", crowd)
		began := time.Now()
		require.NoError(t, e.Close())
		require.Equal(t, testCommand, time.Since(began))
		require.EqualValues(t, crowd, left.Load())
		require.Zero(t, e.ghosts.n.Load())
	})
}
