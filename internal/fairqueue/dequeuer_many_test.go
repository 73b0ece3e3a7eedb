package fairqueue

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/faketransport"
)

// leaveAll makes n owners leave a queue, and returns a counter of the owners that have left. The owner at place 1 is
// called queue1, if queue is the name of the queue.
func leaveAll(qs *Queues, queue string, n int64) *atomic.Int64 {
	left := new(atomic.Int64)
	for place := range n {
		d := departureOf(lockID{"fair", queue}, fmt.Sprint(queue, place+1), place+1)
		d.done = func() { left.Add(1) }
		qs.dequeuer.leave(d)
	}
	return left
}

// busyQueues returns Queues that have the maximum number of calls in flight until free is called.
func busyQueues(t *testing.T) (qs *Queues, f *faketransport.Fake, log *faketransport.Log, free func()) {
	t.Helper()
	f = &faketransport.Fake{}
	qs, log = queuesOver(t, f)
	return qs, f, log, keepBusy(qs, f)
}

// keepBusy starts as many calls as may be in flight, and returns a function that ends them.
func keepBusy(qs *Queues, f *faketransport.Fake) (free func()) {
	for range dequeuing {
		qs.dequeuer.leave(departureOf(lockID{"fair", "busy"}, "busy", 0))
	}
	return func() {
		for _, c := range f.Sent()[:dequeuing] {
			c.Ends(nil, nil)
		}
	}
}

// With one call for each owner, many would take longer than Close waits.
func TestOwnersLeavingOneQueueShareCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 2000
		qs, f, _, free := busyQueues(t)
		left := leaveAll(qs, "q", many)
		require.Len(t, f.Sent(), dequeuing)
		free()
		var all []any
		for n := dequeuing; n < len(f.Sent()); n++ {
			c := f.Sent()[n]
			require.LessOrEqual(t, len(c.Call.Args), batch)
			require.LessOrEqual(t, len(f.Sent())-n, dequeuing, "in flight")
			all = append(all, c.Call.Args...)
			c.Ends(nil, nil)
		}
		require.LessOrEqual(t, len(f.Sent()), many/50)
		require.Len(t, slices.Compact(slices.SortedFunc(slices.Values(all), byText)), many, "each leaves")
		require.Len(t, all, many, "once")
		require.EqualValues(t, many, left.Load())
		requireNothingOpen(t, qs)
	})
}

func byText(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }

func TestOwnersLeaveLongQueueFromEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, f, _, free := busyQueues(t)
		leaveAll(qs, "q", 20*batch)
		free()
		for n := dequeuing; n < dequeuing+fromFront; n++ {
			f.Sent()[n].Ends(nil, nil)
		}
		calls := f.Sent()[dequeuing:]
		require.Equal(t, []any{"q2000", "q1999"}, calls[0].Call.Args[:2])
		require.Equal(t, []any{"q1", "q2"}, calls[fromFront-1].Call.Args[:2], "owners in front get their turn")
		require.Equal(t, []any{"q1300", "q1299"}, calls[fromFront].Call.Args[:2])
	})
}

func TestOwnersLeavingSeveralQueuesAlternate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, f, _, free := busyQueues(t)
		leaveAll(qs, "many", 3*batch)
		leaveAll(qs, "pair", 2)
		leaveAll(qs, "one", 1)
		free()
		var shares []string
		for n := dequeuing; n < len(f.Sent()); n++ {
			c := f.Sent()[n]
			shares = append(shares, fmt.Sprint(c.Call.Args[0], " and ", len(c.Call.Args)-1))
			c.Ends(nil, nil)
		}
		require.Equal(t, []string{
			"many300 and 99", "pair2 and 1", "one1 and 0", "many200 and 99", "many100 and 99",
		}, shares)
	})
}

// A call may carry owners of one lock only.
func TestLockKindsWithOneKeyShareNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, f, _, free := busyQueues(t)
		for _, kind := range []string{"fair", "other"} {
			qs.dequeuer.leave(departureOf(lockID{kind, "q"}, kind+"1", 1))
			qs.dequeuer.leave(departureOf(lockID{kind, "q"}, kind+"2", 2))
		}
		free()
		calls := f.Sent()[dequeuing:]
		require.Len(t, calls, 2)
		require.Equal(t, []any{"fair2", "fair1"}, calls[0].Call.Args)
		require.Equal(t, []any{"other2", "other1"}, calls[1].Call.Args)
		for _, c := range calls {
			c.Ends(nil, nil)
		}
	})
}

// A single owner may be the reason.
func TestRejectedBatchIsRetriedPerOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, f, log, free := busyQueues(t)
		left := leaveAll(qs, "q", 3)
		free()
		call := f.Last(t)
		f.Answer = func(c *faketransport.SentCall) (any, error, bool) {
			if slices.Contains(c.Call.Args, any("q2")) {
				return nil, errRefused, true
			}
			return nil, nil, true
		}
		call.Ends(nil, errRefused)
		synctest.Wait()
		require.EqualValues(t, 3, left.Load())
		require.Len(t, f.Sent(), dequeuing+1+3)
		require.Equal(t, 2, log.Count("call resolved\""))
		require.Equal(t, 1, log.Count("cannot resolve call"))
		requireNothingOpen(t, qs)
	})
}

func TestBatchedDequeuesAreRetriedAfterOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 2000
		const away = 10 * time.Second
		began := time.Now()
		f := &faketransport.Fake{Answer: func(*faketransport.SentCall) (any, error, bool) {
			if time.Since(began) < away {
				return nil, errNotSent, true
			}
			return nil, nil, true
		}}
		qs, _ := queuesOver(t, f)
		left := leaveAll(qs, "q", many)
		require.LessOrEqual(t, len(f.Sent()), dequeuing, "no other tries for a moment")
		time.Sleep(away)
		vain := len(f.Sent())
		require.LessOrEqual(t, vain, dequeuing*int(2*away/askSoon), "retried repeatedly without success")
		time.Sleep(askLater * 6 / 5)
		synctest.Wait()
		require.EqualValues(t, many, left.Load(), "each has left, once")
		require.LessOrEqual(t, len(f.Sent())-vain, many/batch+dequeuing)
		qs.dequeuer.leave(departureOf(theLock, "x", 1))
		require.Len(t, f.Last(t).Call.Args, 1, "it goes on as before")
		requireNothingOpen(t, qs)
	})
}

func TestCloseStopsFailingDequeues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 1000
		qs, _ := queuesOver(t, &faketransport.Fake{Answer: answering(nil, errNotSent)})
		left := leaveAll(qs, "q", many)
		began := time.Now()
		require.NoError(t, qs.engine.Close())
		require.Equal(t, testCommand, time.Since(began))
		require.EqualValues(t, many, left.Load())
	})
}
