package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// answering makes every call end with one outcome, at once.
func answering(reply any, err error) func(*sentCall) (any, error, bool) {
	return func(*sentCall) (any, error, bool) { return reply, err, true }
}

// doubtful returns an attempt whose outcome was lost.
func doubtful(e *Engine, conn int64) *Attempt {
	a := e.Attempt()
	a.Call.Command = "ACQUIRE"
	a.Call.Claim(conn)
	return a
}

func doubtAbout(a *Attempt) *Doubt {
	return &Doubt{
		Name: "orders", Owner: "somebody:1", Attempt: a, Lease: testLease,
		Release: func(c *transport.Call) { c.Command = "RELEASE" },
	}
}

func TestADoubtWithoutAnAttemptEndsWithTheFirstAnswer(t *testing.T) {
	for name, reply := range map[string]any{"freed": int64(1), "was not held": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answer: answering(reply, nil)}
				e, log := engineOver(t, f)
				e.Settle(doubtAbout(nil))
				time.Sleep(testLease)
				require.Len(t, f.sent(), 1)
				require.Equal(t, "RELEASE", f.sent()[0].name)
				require.Contains(t, log.String(), "settled")
				require.Zero(t, e.ghosts.n.Load())
			})
		})
	}
}

func TestADoubtThatBecomesMootIsNotAskedAboutAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: answering(int64(0), nil)}
		e, log := engineOver(t, f)
		d := doubtAbout(doubtful(e, 0))
		began := time.Now()
		d.Moot = func() bool { return time.Since(began) >= askSoonUntil }
		e.Settle(d)
		e.work.Wait()
		require.GreaterOrEqual(t, time.Since(began), askSoonUntil)
		require.Less(t, time.Since(began), askSoonUntil+2*askSoon)
		for _, asked := range f.sent() {
			require.Less(t, asked.at.Sub(began), askSoonUntil)
		}
		require.Contains(t, log.String(), "left to whoever frees the lock")
	})
}

// Nobody can tell when the network delivers what it holds back, so "not held" is
// no answer, and the question is asked for a whole lease.
func TestADoubtAboutACallThatMayStillRunIsAskedAboutForOneLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: answering(nil, nil)}
		e, log := engineOver(t, f)
		began := time.Now()
		e.Settle(doubtAbout(doubtful(e, 0)))
		e.work.Wait()
		require.InDelta(t, testLease.Seconds(), time.Since(began).Seconds(), askLater.Seconds()*1.2)
		require.Contains(t, log.String(), "given up")

		asked := f.sent()
		require.Zero(t, asked[0].at.Sub(began), "the first question is asked at once")
		for i := 1; i < len(asked); i++ {
			pause, least := asked[i].at.Sub(asked[i-1].at), askLater
			if asked[i-1].at.Sub(began) < askSoonUntil {
				least = askSoon
			}
			require.GreaterOrEqual(t, pause, least)
			require.LessOrEqual(t, pause, least*6/5)
		}
	})
}

func TestADoubtEndsWhenTheGhostIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		asked := 0
		f.answer = func(*sentCall) (any, error, bool) {
			if asked++; asked < 4 {
				return nil, nil, true
			}
			return int64(1), nil, true
		}
		e, log := engineOver(t, f)
		e.Settle(doubtAbout(doubtful(e, 0)))
		e.work.Wait()
		require.Len(t, f.sent(), 4)
		require.Contains(t, log.String(), "was_held=true")
	})
}

func TestADoubtWhoseConnectionWasKilledIsAskedAboutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fencing{fake: &fake{answer: answering(nil, nil)}}
		f.fence = func(context.Context) error {
			require.Empty(t, f.sent(), "the answer counts only after the fence")
			time.Sleep(time.Second)
			return nil
		}
		e, _ := engineOver(t, f)
		e.Settle(doubtAbout(doubtful(e, 7)))
		e.work.Wait()
		require.Len(t, f.sent(), 1)
		require.Len(t, f.times(), 1)
	})
}

// Where it cannot be killed at first it may be later, and until then the
// question is asked.
func TestAFenceThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fencing{fake: &fake{answer: answering(nil, nil)}}
		began := time.Now()
		f.fence = func(context.Context) error {
			if time.Since(began) < 3*time.Second {
				return errRefused
			}
			return nil
		}
		e, _ := engineOver(t, f)
		e.Settle(doubtAbout(doubtful(e, 7)))
		e.work.Wait()
		took := time.Since(began)
		require.GreaterOrEqual(t, took, 3*time.Second)
		require.Less(t, took, 3*time.Second+fenceMemory+2*askSoon)
		require.Greater(t, len(f.sent()), len(f.times()), "a failure is remembered for a while")
	})
}

func TestAFenceWaitsForTheServerOneCommandTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fencing{fake: &fake{answer: answering(int64(1), nil)}}
		f.fence = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		e, _ := engineOver(t, f)
		began := time.Now()
		e.Settle(doubtAbout(doubtful(e, 7)))
		e.work.Wait()
		require.Equal(t, testCommand, time.Since(began))
	})
}

func TestDoubtsAboutOneConnectionShareAFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fencing{fake: &fake{answer: answering(nil, nil)}}
		f.fence = func(context.Context) error {
			time.Sleep(time.Second)
			return nil
		}
		e, _ := engineOver(t, f)
		for range 50 {
			e.Settle(doubtAbout(doubtful(e, 7)))
		}
		e.Settle(doubtAbout(doubtful(e, 8)))
		e.work.Wait()
		require.Len(t, f.sent(), 51)
		require.Len(t, f.times(), 2)
	})
}

// A server that is away may still run what it has not read: the lease of the
// doubt counts while it answers.
func TestADoubtOutlastsAServerThatIsAwayForLongerThanTheLease(t *testing.T) {
	for name, err := range map[string]error{
		"unreachable": errNotSent,
		"breaking":    errBroken,
		"loading":     &transport.ServerError{Text: "LOADING Redis is loading the dataset in memory"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{}
				began := time.Now()
				away := 10 * testLease
				f.answer = func(*sentCall) (any, error, bool) {
					if time.Since(began) < away {
						return nil, err, true
					}
					return int64(1), nil, true
				}
				e, log := engineOver(t, f)
				e.Settle(doubtAbout(doubtful(e, 0)))
				e.work.Wait()
				require.InDelta(t, away.Seconds(), time.Since(began).Seconds(), 2*askLater.Seconds())
				require.Contains(t, log.String(), "was_held=true")
			})
		})
	}
}

// What is certain to have run ends with its lease, whether or not anybody can
// see it.
func TestADoubtWithoutAnAttemptEndsWithItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, log := engineOver(t, &fake{answer: answering(nil, errNotSent)})
		began := time.Now()
		e.Settle(doubtAbout(nil))
		e.work.Wait()
		require.InDelta(t, testLease.Seconds(), time.Since(began).Seconds(), 2*askLater.Seconds())
		require.Contains(t, log.String(), "given up")
	})
}

// A place in a queue outlasts the lease: it would stand in the others' way.
func TestADoubtAboutAPlaceOutlastsAnOutageLongerThanTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		const away = 3 * testLease
		f := &fake{answer: func(*sentCall) (any, error, bool) {
			if time.Since(began) < away {
				return nil, errNotSent, true
			}
			return nil, nil, true
		}}
		e, log := engineOver(t, f)
		e.FairWait = 10 * testLease
		d := doubtAbout(nil)
		d.GiveUp = func(c *transport.Call) { c.Command = "GIVE-UP" }
		e.Settle(d)
		e.work.Wait()
		require.InDelta(t, away.Seconds(), time.Since(began).Seconds(), 2*askLater.Seconds())
		require.Equal(t, "GIVE-UP", f.last(t).name)
		require.NotContains(t, log.String(), "given up")
	})
}

func TestADoubtThatTheServerRefusesToSettleIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: answering(nil, errRefused)}
		e, log := engineOver(t, f)
		e.Settle(doubtAbout(doubtful(e, 0)))
		time.Sleep(testLease)
		synctest.Wait()
		require.Len(t, f.sent(), 1)
		require.Contains(t, log.String(), "level=ERROR")
		require.Contains(t, log.String(), "cannot be settled")
	})
}

func TestANewConnectionIsAReasonToAskAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &reconnecting{fake: &fake{answer: answering(nil, nil)}, back: make(chan struct{})}
		e, _ := engineOver(t, f)
		e.Settle(doubtAbout(doubtful(e, 0)))
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		before := len(f.sent())
		old := f.back
		f.back = make(chan struct{})
		close(old)
		synctest.Wait()
		require.Len(t, f.sent(), before+1)
	})
}
