package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/transport"
)

func answering(reply any, err error) func(*faketransport.SentCall) (any, error, bool) {
	return func(*faketransport.SentCall) (any, error, bool) { return reply, err, true }
}

// lostCall returns an attempt in doubt.
func lostCall(e *Engine, conn int64) *Attempt {
	a := e.Attempt()
	a.Call.Command = "ACQUIRE"
	a.Call.Claim(conn)
	return a
}

// undoing returns an in-doubt call that RELEASE undoes. The reply 1 means that it did.
func undoing(a *Attempt) *InDoubt {
	return &InDoubt{
		Name: "orders", Owner: "other:1", attempt: a, Lease: testLease,
		Undo: func(run Run) (bool, error) {
			reply, err := run(func(c *transport.Call) { c.Command = "RELEASE" })
			return reply == int64(1), err
		},
	}
}

func TestInDoubtWithoutPendingCallEndsOnAnswer(t *testing.T) {
	for name, reply := range map[string]any{"freed": int64(1), "was not held": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &faketransport.Fake{Answer: answering(reply, nil)}
				e, log := engineOver(t, f)
				e.Resolve(undoing(nil))
				time.Sleep(testLease)
				require.Len(t, f.Sent(), 1)
				require.Equal(t, "RELEASE", f.Sent()[0].Name)
				require.Contains(t, log.String(), "call resolved")
				require.Zero(t, e.inFlight.Load())
			})
		})
	}
}

func TestSupersededInDoubtIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fake{Answer: answering(int64(0), nil)}
		e, log := engineOver(t, f)
		d := undoing(lostCall(e, 0))
		began := time.Now()
		d.Superseded = func() bool { return time.Since(began) >= askSoonUntil }
		e.Resolve(d)
		e.work.Wait()
		require.GreaterOrEqual(t, time.Since(began), askSoonUntil)
		require.Less(t, time.Since(began), askSoonUntil+2*askSoon)
		for _, asked := range f.Sent() {
			require.Less(t, asked.At.Sub(began), askSoonUntil)
		}
		require.Contains(t, log.String(), "left to Unlock")
	})
}

// The call may arrive at any time, so "not held" proves nothing.
func TestInDoubtCallIsCheckedForOneLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fake{Answer: answering(nil, nil)}
		e, log := engineOver(t, f)
		began := time.Now()
		e.Resolve(undoing(lostCall(e, 0)))
		e.work.Wait()
		require.InDelta(t, testLease.Seconds(), time.Since(began).Seconds(), askLater.Seconds()*1.2)
		require.Contains(t, log.String(), "abandoned")

		asked := f.Sent()
		require.Zero(t, asked[0].At.Sub(began), "the first check is immediate")
		for i := 1; i < len(asked); i++ {
			pause, least := asked[i].At.Sub(asked[i-1].At), askLater
			if asked[i-1].At.Sub(began) < askSoonUntil {
				least = askSoon
			}
			require.GreaterOrEqual(t, pause, least)
			require.LessOrEqual(t, pause, least*6/5)
		}
	})
}

func TestInDoubtEndsAfterUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fake{}
		asked := 0
		f.Answer = func(*faketransport.SentCall) (any, error, bool) {
			if asked++; asked < 4 {
				return nil, nil, true
			}
			return int64(1), nil, true
		}
		e, log := engineOver(t, f)
		e.Resolve(undoing(lostCall(e, 0)))
		e.work.Wait()
		require.Len(t, f.Sent(), 4)
		require.Contains(t, log.String(), "was_held=true")
	})
}

func TestFencedCallIsCheckedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fencing{Fake: &faketransport.Fake{Answer: answering(nil, nil)}}
		f.Kill = func(context.Context) error {
			require.Empty(t, f.Sent(), "the answer counts only after the fence")
			time.Sleep(time.Second)
			return nil
		}
		e, _ := engineOver(t, f)
		e.Resolve(undoing(lostCall(e, 7)))
		e.work.Wait()
		require.Len(t, f.Sent(), 1)
		require.Len(t, f.Times(), 1)
	})
}

// refusing returns a Kill that fails for d.
func refusing(d time.Duration) func(context.Context) error {
	began := time.Now()
	return func(context.Context) error {
		if time.Since(began) < d {
			return errRefused
		}
		return nil
	}
}

func TestFailedFenceIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fencing{Fake: &faketransport.Fake{Answer: answering(nil, nil)}, Kill: refusing(3 * time.Second)}
		began := time.Now()
		e, _ := engineOver(t, f)
		e.Resolve(undoing(lostCall(e, 7)))
		e.work.Wait()
		took := time.Since(began)
		require.GreaterOrEqual(t, took, 3*time.Second)
		require.Less(t, took, 3*time.Second+fenceMemory+2*askSoon)
		require.Greater(t, len(f.Sent()), len(f.Times()), "a failure is remembered for a while")
	})
}

func TestFenceWaitsOneCommandTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fencing{Fake: &faketransport.Fake{Answer: answering(int64(1), nil)}}
		f.Kill = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		e, _ := engineOver(t, f)
		began := time.Now()
		e.Resolve(undoing(lostCall(e, 7)))
		e.work.Wait()
		require.Equal(t, testCommand, time.Since(began))
	})
}

func TestInDoubtCallsOnOneConnectionShareFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fencing{Fake: &faketransport.Fake{Answer: answering(nil, nil)}}
		f.Kill = func(context.Context) error {
			time.Sleep(time.Second)
			return nil
		}
		e, _ := engineOver(t, f)
		for range 50 {
			e.Resolve(undoing(lostCall(e, 7)))
		}
		e.Resolve(undoing(lostCall(e, 8)))
		e.work.Wait()
		require.Len(t, f.Sent(), 51)
		require.Len(t, f.Times(), 2)
	})
}

// An unreachable server may still run a call that it has not read: the lease counts only while it
// answers. A place in a queue outlasts the lease.
func TestInDoubtOutlastsOutage(t *testing.T) {
	const always = 100 * testLease
	for name, c := range map[string]struct {
		call        bool
		err         error
		away, lasts time.Duration
		ends        time.Duration
		givenUp     bool
	}{
		"call, unreachable":          {call: true, err: errNotSent, away: 10 * testLease, ends: 10 * testLease},
		"call, breaking":             {call: true, err: errBroken, away: 10 * testLease, ends: 10 * testLease},
		"call, loading":              {call: true, err: &transport.ServerError{Text: "LOADING Redis is loading the dataset in memory"}, away: 10 * testLease, ends: 10 * testLease},
		"no call: its lease":         {err: errNotSent, away: always, ends: testLease, givenUp: true},
		"no call: its place":         {err: errNotSent, away: 3 * testLease, lasts: 10 * testLease, ends: 3 * testLease},
		"no call: place and a lease": {err: errNotSent, away: always, lasts: 3 * testLease, ends: 4 * testLease, givenUp: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				f := &faketransport.Fake{Answer: func(*faketransport.SentCall) (any, error, bool) {
					if time.Since(began) < c.away {
						return nil, c.err, true
					}
					return int64(1), nil, true
				}}
				e, log := engineOver(t, f)
				d := undoing(nil)
				if d.Lasts = c.lasts; c.call {
					d.attempt = lostCall(e, 0)
				}
				e.Resolve(d)
				e.work.Wait()
				require.InDelta(t, c.ends.Seconds(), time.Since(began).Seconds(), 2*askLater.Seconds())
				require.Equal(t, "RELEASE", f.Last(t).Name)
				require.Equal(t, c.givenUp, log.Count("abandoned") == 1)
				require.Equal(t, !c.givenUp, log.Count("was_held=true") == 1)
			})
		})
	}
}

func TestRejectedUndoIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fake{Answer: answering(nil, errRefused)}
		e, log := engineOver(t, f)
		e.Resolve(undoing(lostCall(e, 0)))
		time.Sleep(testLease)
		synctest.Wait()
		require.Len(t, f.Sent(), 1)
		require.Contains(t, log.String(), "level=ERROR")
		require.Contains(t, log.String(), "cannot resolve call")
	})
}

func TestReconnectTriggersImmediateCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Reconnecting{Fake: &faketransport.Fake{Answer: answering(nil, nil)}, Back: make(chan struct{})}
		e, _ := engineOver(t, f)
		e.Resolve(undoing(lostCall(e, 0)))
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		before := len(f.Sent())
		old := f.Back
		f.Back = make(chan struct{})
		close(old)
		synctest.Wait()
		require.Len(t, f.Sent(), before+1)
	})
}

// overs records the arguments with which Done is called.
func overs(d *InDoubt) *[]bool {
	noted := &[]bool{}
	d.Done = func(over bool) { *noted = append(*noted, over) }
	return noted
}

func TestInDoubtWithoutUndoReportsFenceResult(t *testing.T) {
	for name, c := range map[string]struct {
		conn               int64
		refuses, lease     time.Duration
		closed, superseded bool
		over               bool
		fences             int
		cannot             bool // no connection can be killed
	}{
		"killed":               {conn: 7, over: true, fences: 1},
		"refused":              {conn: 7, refuses: testLease, fences: 1},
		"refused at first":     {conn: 7, refuses: 3 * fenceMemory, lease: testLease, over: true, fences: 4},
		"superseded":           {conn: 7, refuses: testLease, lease: testLease, superseded: true, fences: 1},
		"connection not known": {conn: 0, fences: 1},
		"client closed":        {conn: 7, closed: true},
		"cannot kill":          {conn: 7, cannot: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &faketransport.Fencing{Fake: &faketransport.Fake{}, Kill: refusing(c.refuses)}
				var tr transport.Transport = f
				if c.cannot {
					tr = f.Fake
				}
				e, _ := engineOver(t, tr)
				if c.closed {
					require.NoError(t, e.Close())
				}
				a := lostCall(e, c.conn)
				d := &InDoubt{attempt: a, Lease: c.lease, Superseded: func() bool { return c.superseded }}
				noted := overs(d)
				e.Resolve(d)
				e.work.Wait()
				require.Equal(t, []bool{c.over}, *noted)
				require.Len(t, f.Times(), c.fences)
				require.Empty(t, f.Sent(), "there is no check")
				requireFreedOnce(t, e, a)
			})
		})
	}
}

func TestDoneReportsFinalityOnce(t *testing.T) {
	for name, c := range map[string]struct {
		call    bool // InDoubt has a call
		outcome error
		reply   any
		err     error
		closed  bool
		over    bool
	}{
		"no call":              {reply: nil, over: true},
		"killed":               {call: true, over: true},
		"undone, not killed":   {call: true, outcome: errRefused, reply: int64(1)},
		"given up, not killed": {call: true, outcome: errRefused},
		"refused, killed":      {call: true, err: errRefused, over: true},
		"refused, not killed":  {call: true, outcome: errRefused, err: errRefused},
		"client closed":        {call: true, closed: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &faketransport.Fencing{Fake: &faketransport.Fake{Answer: answering(c.reply, c.err)}}
				f.Kill = func(context.Context) error { return c.outcome }
				e, _ := engineOver(t, f)
				if c.closed {
					require.NoError(t, e.Close())
				}
				d := undoing(nil)
				if c.call {
					d.attempt = lostCall(e, 7)
				}
				noted := overs(d)
				e.Resolve(d)
				e.work.Wait()
				require.Equal(t, []bool{c.over}, *noted)
				require.Zero(t, e.inFlight.Load())
			})
		})
	}
}

func TestFenceResultIsSharedPerConnection(t *testing.T) {
	for _, result := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var f fences
			var kills atomic.Int32
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					conn := int64(1 + i%2)
					require.Equal(t, result, f.do(conn, func() bool {
						kills.Add(1)
						time.Sleep(time.Second)
						return result
					}))
				})
			}
			began := time.Now()
			wg.Wait()
			require.Equal(t, time.Second, time.Since(began), "two connections do not wait for each other")
			require.Equal(t, int32(2), kills.Load())
		})
	}
}

func TestFenceResultIsCachedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fences
		kills := 0
		kill := func() bool { kills++; return kills > 1 }
		require.False(t, f.do(1, kill))
		require.False(t, f.do(1, kill))
		time.Sleep(fenceMemory)
		require.False(t, f.do(1, kill))
		require.Equal(t, 1, kills)
		time.Sleep(time.Millisecond)
		require.True(t, f.do(1, kill))
		require.Equal(t, 2, kills)
	})
}

func TestFenceCacheForgetsOldConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fences
		for conn := range int64(100) {
			f.do(conn, func() bool { return true })
			time.Sleep(fenceMemory + time.Millisecond)
		}
		require.Len(t, f.byID, 1)
	})
}
