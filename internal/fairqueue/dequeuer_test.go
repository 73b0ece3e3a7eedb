package fairqueue

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/faketransport"
)

func departureOf(id lockID, owner string, place int64) *departure {
	return &departure{
		kind: kindOf(id), name: id.key, place: place,
		request: acquire.Request{Owner: owner, Lease: testLease.Milliseconds()},
	}
}

type ending struct {
	times int
	after time.Duration
}

// leave removes an owner from the queue, and records when that is done.
func leave(qs *Queues) *ending {
	began := time.Now()
	end := &ending{}
	d := departureOf(theLock, "x", 1)
	d.done = func() { end.times, end.after = end.times+1, time.Since(began) }
	qs.dequeuer.leave(d)
	return end
}

func TestDequeueIsOneAsynchronousCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fake{}
		qs, log := queuesOver(t, f)
		end := leave(qs)
		require.Equal(t, []string{"GIVEUP"}, names(f))
		require.Zero(t, end.times)
		f.Last(t).Ends(nil, nil)
		require.Equal(t, 1, end.times)
		time.Sleep(testLease)
		require.Len(t, f.Sent(), 1)
		require.Empty(t, log.String())
		f.Answer = answering(nil, nil)
		qs.Leave(kindOf(theLock), "lock", &acquire.Request{Owner: "y", Lease: int64(1)})
		require.Equal(t, []any{"y"}, f.Last(t).Call.Args)
		requireNothingOpen(t, qs)
	})
}

// Other departures of the same call are retried.
func TestDequeueReportsResultPerCall(t *testing.T) {
	for name, want := range map[string]error{"left": nil, "not sent": errNotSent, "reply lost": errBroken} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				qs, f, _, free := busyQueues(t)
				ended := make(chan error, 1)
				go func() {
					ended <- qs.Dequeue(kindOf(theLock), "lock", &acquire.Request{Owner: "once", Lease: int64(1)})
				}()
				synctest.Wait()
				leave(qs)
				free()
				shared := f.Last(t)
				require.ElementsMatch(t, []any{"once", "x"}, shared.Call.Args)
				f.Answer = answering(nil, nil)
				shared.Ends(nil, want)
				require.Equal(t, want, <-ended)
				time.Sleep(testLease)
				if want == nil {
					require.Same(t, shared, f.Last(t))
				} else {
					require.Equal(t, []any{"x"}, f.Last(t).Call.Args)
				}
				requireNothingOpen(t, qs)
			})
		})
	}
}

// The call gets no reply, or is not sent.
func TestDequeueWaitsAtMostCommandTimeout(t *testing.T) {
	for _, busy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := &faketransport.Fake{}
			qs, _ := queuesOver(t, f)
			free := func() {}
			if busy {
				free = keepBusy(qs, f)
			}
			began := time.Now()
			err := qs.Dequeue(kindOf(theLock), "lock", &acquire.Request{Owner: "x", Lease: int64(1)})
			require.ErrorIs(t, err, engine.ErrUncertain)
			require.Equal(t, qs.engine.Command, time.Since(began))
			free()
			require.Equal(t, []any{"x"}, f.Last(t).Call.Args)
			f.Last(t).Ends(nil, nil)
			requireNothingOpen(t, qs)
		})
	}
}

func TestFailedDequeueIsRetried(t *testing.T) {
	for name, err := range map[string]error{"not sent": errNotSent, "reply lost": errBroken, "loading": errLoading} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				f := &faketransport.Fake{Answer: func(*faketransport.SentCall) (any, error, bool) {
					if time.Since(began) < 10*time.Second {
						return nil, err, true
					}
					return nil, nil, true
				}}
				qs, log := queuesOver(t, f)
				end := leave(qs)
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, 1, end.times)
				require.InDelta(t, 10, end.after.Seconds(), askLater.Seconds()*1.2)
				for _, name := range names(f) {
					require.Equal(t, "GIVEUP", name)
				}
				require.Equal(t, 1, log.Count("call resolved"))
				requireNothingOpen(t, qs)
			})
		})
	}
}

func TestCloseWaitsForDequeues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fake{}
		qs, _ := queuesOver(t, f)
		leave(qs)
		began := time.Now()
		time.AfterFunc(testCommand/2, func() { f.Last(t).Ends(nil, nil) })
		require.NoError(t, qs.engine.Close())
		require.Equal(t, testCommand/2, time.Since(began))
	})
}

func TestDequeueAfterCloseReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, log := queuesOver(t, &faketransport.Fake{})
		require.NoError(t, qs.engine.Close())
		require.Equal(t, 1, leave(qs).times)
		require.Equal(t, 1, log.Count("client closed with an unresolved call"))
	})
}

func TestDequeueRetriesStopWhenEntryExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, log := queuesOver(t, &faketransport.Fake{Answer: answering(nil, errNotSent)})
		qs.engine.FairWait = 5 * testLease
		end := leave(qs)
		time.Sleep(2 * qs.engine.FairWait)
		synctest.Wait()
		require.Equal(t, 1, end.times)
		require.InDelta(t, qs.engine.FairWait.Seconds(), end.after.Seconds(), 2*askLater.Seconds())
		require.Equal(t, 1, log.Count("abandoned"))
		requireNothingOpen(t, qs)
	})
}

// refusing rejects the first call, which the engine then resolves, and fails later calls with err until the given time
// has passed.
func refusing(err error, until time.Duration) *faketransport.Fake {
	began, first := time.Now(), true
	return &faketransport.Fake{Answer: func(*faketransport.SentCall) (any, error, bool) {
		switch {
		case first:
			first = false
			return nil, errRefused, true
		case time.Since(began) < until:
			return nil, err, true
		}
		return nil, nil, true
	}}
}

// A rejected departure is resolved by the engine, and outlasts an outage longer than the lease: a place lasts
// longer.
func TestRejectedDequeueIsResolvedOrReported(t *testing.T) {
	for name, c := range map[string]struct {
		err         error // of the calls after the first
		until       time.Duration
		least, most int // calls
		logs        []string
	}{
		"always": {errRefused, time.Hour, 2, 2, []string{"level=ERROR", "cannot resolve call"}},
		"once":   {nil, 0, 2, 2, []string{"unresolved call resolved", "owner=x was_held=false"}},
		"outage": {errNotSent, 3 * testLease, 3, 1000, []string{"unresolved call resolved"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := refusing(c.err, c.until)
				qs, log := queuesOver(t, f)
				qs.engine.FairWait = 10 * testLease
				end := leave(qs)
				time.Sleep(qs.engine.FairWait)
				synctest.Wait()
				require.Equal(t, 1, end.times)
				require.GreaterOrEqual(t, len(f.Sent()), c.least)
				require.LessOrEqual(t, len(f.Sent()), c.most, "it frees nothing, and one reply is enough")
				if errors.Is(c.err, errNotSent) {
					require.InDelta(t, c.until.Seconds(), end.after.Seconds(), 2*askLater.Seconds())
				}
				for _, line := range c.logs {
					require.Equal(t, 1, log.Count(line), line)
				}
				require.NotContains(t, log.String(), "abandoned")
				requireNothingOpen(t, qs)
			})
		})
	}
}
