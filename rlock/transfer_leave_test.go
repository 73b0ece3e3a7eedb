package rlock_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// leaving runs a function before its end is first seen.
type leaving struct {
	context.Context //nolint:containedctx // it is a context
	first           func()
}

func (l *leaving) Err() error {
	if l.Context.Err() != nil && l.first != nil {
		first := l.first
		l.first = nil
		first()
	}
	return l.Context.Err()
}

// The wait ends at four moments around the transfer. The next waiter always gets the lock.
func TestWaiterThatLeavesTransfersALockThatWasGivenToIt(t *testing.T) {
	const before, given, unsent, sent = "before", "given", "unsent", "sent"
	for _, when := range []string{before, given, unsent, sent} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				woken := func() {}
				srv, p, client := atPasses(t, noPoll(), redlatch.WithObserver(redlatch.Observer{
					Woken: func(context.Context, redlatch.Woken) { woken() },
				}))
				l := rlock.New(client, "lock")
				hold := alone(t, p, l)
				passed := p.count("pass")
				end := &leaving{Context: ctx}
				leaver := await(end, l)
				synctest.Wait()
				stayer := await(t.Context(), l)
				synctest.Wait()

				unlocked := make(chan error, 1)
				unlock := func() { unlocked <- hold.Unlock() }
				switch when {
				case before:
					cancel()
					synctest.Wait()
					unlock()
				case given:
					end.first = func() { go unlock(); synctest.Wait() }
					cancel()
				case unsent:
					woken = func() { woken = func() {}; cancel() }
					p.next(func(call *transport.Call, done transport.Done) {
						time.AfterFunc(time.Second, func() { p.Transport.Start(call, done) })
					})
					unlock()
				case sent:
					p.next(func(call *transport.Call, done transport.Done) {
						p.Transport.Start(call, func(reply any, err error) {
							cancel()
							time.AfterFunc(time.Second, func() { done(reply, err) })
						})
					})
					unlock()
				}
				requireOnly(t, leaver.failed(t, atOnce), "lock", "lock", redlatch.ErrNotAcquired, context.Canceled)
				require.NoError(t, <-unlocked)
				next := stayer.acquired(t, 2*time.Second)
				require.Equal(t, passed+1, p.count("pass"))
				require.NoError(t, next.Unlock())
				synctest.Wait()
				require.False(t, locked(t, srv, "lock"))
			})
		})
	}
}

func TestProcessesTransferTheLockInBursts(t *testing.T) {
	testlevel.All(t, "5 s of load")
	t.Parallel()
	onceOfThree(t, func() error {
		s := redistest.Start(t)
		counts := turnsOf(t, s, 16, 16, 16, 16)
		total := 0
		for _, n := range counts {
			total += n
		}
		requests := float64(s.CommandStats(t)["evalsha"]) / float64(total)
		t.Logf("%.2f requests each", requests)
		require.Less(t, requests, 1.9, "two for each that is freed")
		return evenly(t, counts)
	})
}

// A client with a single caller frees the lock after each turn.
func TestASingleCallerGetsItsShareBesideMany(t *testing.T) {
	testlevel.All(t, "5 s of load")
	t.Parallel()
	onceOfThree(t, func() error {
		counts := turnsOf(t, redistest.Start(t), 16, 1)
		t.Logf("%v", counts)
		if share := float64(counts[1]) / float64(counts[0]+counts[1]); share <= 0.1 {
			return fmt.Errorf("a share of %.3f", share)
		}
		return nil
	})
}

// onceOfThree measures up to three times: other load may spoil a result, an unfair queue spoils
// all.
func onceOfThree(t *testing.T, measure func() error) {
	t.Helper()
	var err error
	for range 3 {
		if err = measure(); err == nil {
			return
		}
		t.Log(err)
	}
	require.NoError(t, err)
}

// evenly checks that the shares differ by at most 0.15 from the mean.
func evenly(t *testing.T, counts []int) error {
	t.Helper()
	total := 0
	for _, n := range counts {
		total += n
	}
	t.Logf("%v of %d", counts, total)
	for _, n := range counts {
		if math.Abs(float64(n)/float64(total)-1/float64(len(counts))) > 0.15 {
			return fmt.Errorf("%d of %d", n, total)
		}
	}
	return nil
}

// turnsOf runs clients with that many goroutines for five seconds, and counts their turns.
func turnsOf(t *testing.T, s *redistest.Server, goroutines ...int) []int {
	t.Helper()
	name := redistest.Key(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	counts := make([]int, len(goroutines))
	var wg sync.WaitGroup
	for i, n := range goroutines {
		l := rlock.New(connect(t, s.URL()), name)
		for range n {
			wg.Go(func() {
				for ctx.Err() == nil {
					hold, err := l.Lock(ctx)
					if err != nil {
						return
					}
					counts[i]++ // the lock guards it
					if err := hold.Unlock(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	// Abandoned attempts are released when their replies arrive.
	until(t, soon, "the lock is free", func() bool { return !locked(t, s, name) })
	return counts
}
