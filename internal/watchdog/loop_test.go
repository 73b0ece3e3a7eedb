package watchdog

import (
	"container/heap"
	"errors"
	"log/slog"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// server answers renewals.
type server struct {
	answer  func(n int, l *Lease) (bool, error)
	latency time.Duration
	silent  bool // never answers
	calls   int
	sizes   []int
	at      []time.Time
}

func (s *server) renew(leases []*Lease, done func([]bool, error)) {
	s.calls++
	s.sizes = append(s.sizes, len(leases))
	s.at = append(s.at, time.Now())
	if s.silent {
		return
	}
	n := s.calls
	go func() {
		time.Sleep(s.latency)
		held := make([]bool, len(leases))
		for i, l := range leases {
			ok, err := s.answer(n, l)
			if err != nil {
				done(nil, err)
				return
			}
			held[i] = ok
		}
		done(held, nil)
	}()
}

func alwaysHeld(int, *Lease) (bool, error) { return true, nil }

func margin(lease time.Duration) time.Duration { return min(lease/10, time.Second) }

func newLoop(s *server) *Loop {
	return New(Config{Renew: s.renew, Margin: margin, Logger: slog.New(slog.DiscardHandler)})
}

func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// holder records how its lease ended.
type holder struct {
	Holder
	lease Lease
	end   End
	at    time.Time
	times int
}

func (h *holder) LeaseLost(end End) { h.end, h.at, h.times = end, time.Now(), h.times+1 }

func always(d time.Duration) func(time.Duration) time.Duration {
	return func(time.Duration) time.Duration { return d }
}

func hold(w *Loop, ttl time.Duration, fixed bool) *holder {
	h := &holder{}
	h.lease = Lease{Key: "k", Owner: "o", TTL: ttl, TTLArg: ttl.Milliseconds(), Fixed: fixed, Holder: h}
	h.lease.Hold(time.Now(), margin)
	w.Add(&h.lease)
	return h
}

func TestLeaseRenewedEveryThird(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: alwaysHeld, latency: 5 * time.Millisecond}
		w := newLoop(s)
		defer w.Close()
		start := time.Now()
		h := hold(w, 30*time.Second, false)
		sleep(time.Hour + time.Second)
		require.Zero(t, h.times)
		require.InDelta(t, 360, s.calls, 15, "about one renewal every ten seconds")
		require.LessOrEqual(t, s.at[0].Sub(start), 10*time.Second)
		for i := 1; i < len(s.at); i++ {
			require.LessOrEqual(t, s.at[i].Sub(s.at[i-1]), 10*time.Second+time.Millisecond)
		}
	})
}

func TestU1LossDeclaredBeforeLeaseExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{latency: 800 * time.Millisecond}
		var acked time.Time
		s.answer = func(n int, _ *Lease) (bool, error) {
			if n <= 3 {
				acked = s.at[n-1]
				return true, nil
			}
			return false, errors.New("unreachable")
		}
		w := newLoop(s)
		defer w.Close()
		h := hold(w, 30*time.Second, false)
		sleep(5 * time.Minute)
		require.Equal(t, 1, h.times)
		require.Equal(t, EndLease, h.end)
		require.Equal(t, 29*time.Second, h.at.Sub(acked))
		require.Greater(t, s.calls, 10, "it kept trying")
	})
}

func TestU2LossDeclaredInTimeWithoutReplies(t *testing.T) {
	for _, ttl := range []time.Duration{2 * time.Second, 5 * time.Second, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := newLoop(&server{silent: true})
			defer w.Close()
			start := time.Now()
			h := hold(w, ttl, false)
			sleep(2 * ttl)
			require.Equal(t, EndLease, h.end)
			require.Equal(t, ttl-margin(ttl), h.at.Sub(start))
		})
	}
}

func TestU7RenewalResumesAfterShortOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := &server{answer: func(int, *Lease) (bool, error) {
			if d := time.Since(start); d > 12*time.Second && d < 22*time.Second {
				return false, errors.New("down")
			}
			return true, nil
		}}
		w := newLoop(s)
		defer w.Close()
		h := hold(w, 30*time.Second, false)
		sleep(10 * time.Minute)
		require.Zero(t, h.times, "a ten second outage must not cost a thirty second lease")
		require.Less(t, s.calls, 90, "retries pause")
	})
}

func TestU7LossFiresOnceAfterLongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(int, *Lease) (bool, error) { return false, errors.New("down") }}
		w := newLoop(s)
		defer w.Close()
		h := hold(w, 3*time.Second, false)
		sleep(time.Minute)
		require.Equal(t, 1, h.times)
		require.Zero(t, w.Len())
	})
}

func TestU43LossDeclaredWhenLockIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(n int, _ *Lease) (bool, error) { return n < 3, nil }}
		w := newLoop(s)
		defer w.Close()
		start := time.Now()
		h := hold(w, 30*time.Second, false)
		sleep(time.Minute)
		require.Equal(t, EndTaken, h.end)
		require.LessOrEqual(t, h.at.Sub(start), 30*time.Second+time.Millisecond)
		require.Equal(t, 3, s.calls)
	})
}

func TestFixedLeaseEndsAtDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: alwaysHeld}
		w := newLoop(s)
		defer w.Close()
		start := time.Now()
		h := hold(w, 20*time.Second, true)
		sleep(time.Minute)
		require.Equal(t, EndLease, h.end)
		require.Equal(t, 19*time.Second, h.at.Sub(start))
		require.Zero(t, s.calls)
	})
}

func TestFixedLeaseIsExcludedFromRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: alwaysHeld}
		w := newLoop(s)
		defer w.Close()
		hold(w, 30*time.Second, false)
		fixed := hold(w, 11*time.Second+200*time.Millisecond, true) // lost after 10.2 s
		sleep(10*time.Second + 100*time.Millisecond)
		require.Equal(t, []int{1}, s.sizes)
		sleep(time.Second)
		require.Equal(t, 1, fixed.times)
	})
}

func TestU6NoRenewalStartsAfterRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: alwaysHeld, latency: 50 * time.Millisecond}
		w := newLoop(s)
		defer w.Close()
		h := hold(w, 3*time.Second, false)
		time.Sleep(time.Second + 10*time.Millisecond) // a renewal is in flight
		synctest.Wait()
		require.Equal(t, 1, s.calls)
		require.True(t, w.Remove(&h.lease))
		require.False(t, w.Remove(&h.lease))
		sleep(time.Minute)
		require.Equal(t, 1, s.calls)
		require.Zero(t, h.times, "the answer to the renewal in flight is ignored")
	})
}

func TestRenewalsAreBatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: alwaysHeld}
		w := newLoop(s)
		defer w.Close()
		for range 1050 {
			hold(w, 30*time.Second, false)
		}
		sleep(10*time.Second + time.Millisecond)
		require.Equal(t, 11, s.calls)
		require.Equal(t, BatchSize, slices.Max(s.sizes))
	})
}

func TestGroupsUseSeparateScripts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: alwaysHeld}
		w := newLoop(s)
		w.cfg.Group = func(l *Lease) int { return len(l.Key.(string)) }
		defer w.Close()
		for i := range 6 {
			h := hold(w, 30*time.Second, false)
			w.Remove(&h.lease)
			h.lease.Key = []string{"a", "bb", "ccc"}[i%3]
			w.Add(&h.lease)
		}
		sleep(10*time.Second + time.Millisecond)
		require.Equal(t, []int{2, 2, 2}, s.sizes)
	})
}

func TestOneGoroutineRenewsManyLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: alwaysHeld, latency: time.Millisecond}
		w := newLoop(s)
		defer w.Close()
		var holders []*holder
		for i := range testlevel.Rounds(1_000, 10_000) {
			holders = append(holders, hold(w, 30*time.Second, false))
			if i%100 == 0 {
				time.Sleep(50 * time.Millisecond)
			}
		}
		sleep(5 * time.Minute)
		for _, h := range holders {
			require.Zero(t, h.times)
		}
	})
}

func TestCloseNotifiesEveryHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoop(&server{answer: alwaysHeld})
		a, b := hold(w, time.Minute, false), hold(w, time.Minute, true)
		w.Close()
		w.Close()
		require.Equal(t, EndClosed, a.end)
		require.Equal(t, EndClosed, b.end)
		require.False(t, w.Add(&a.lease))
	})
}

func TestCloseOfUnstartedLoopReturns(t *testing.T) {
	synctest.Test(t, func(*testing.T) { newLoop(&server{}).Close() })
}

func TestHoldRejectsExpiredLease(t *testing.T) {
	var l Lease
	l.TTL = 10 * time.Millisecond
	require.False(t, l.Hold(time.Now().Add(-time.Second), always(time.Millisecond)))
	l.TTL = math.MaxInt64
	require.True(t, l.Hold(time.Now(), always(time.Second)))
}

func TestConfirmationHasSeparateMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Lease{TTL: 20 * time.Second, Trust: time.Second, Fixed: true}
		tenth := func(d time.Duration) time.Duration { return d / 10 }
		sent := time.Now()
		require.True(t, l.Hold(sent, tenth))
		require.Equal(t, 900*time.Millisecond, l.Deadline().Time().Sub(sent))
		require.Equal(t, 18*time.Second, l.Final().Sub(sent))
		later := sent.Add(300 * time.Millisecond)
		l.renewed(later, tenth)
		require.Equal(t, 900*time.Millisecond, l.Deadline().Time().Sub(later))
	})
}

func TestU3WallClockJumpIsDetected(t *testing.T) {
	require.True(t, ranAhead(time.Minute, time.Second))
	require.False(t, ranAhead(time.Second, time.Second))
	require.False(t, ranAhead(-time.Hour, time.Second), "set back: the monotonic clock decides")
}

func TestU3SweepMovesEndedLeasesToFront(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoop(&server{answer: alwaysHeld})
		h := &holder{lease: Lease{TTL: time.Minute, Fixed: true}}
		h.lease.Holder = h
		h.lease.Hold(time.Now(), always(0))
		h.lease.next = time.Now().Add(2 * time.Hour) // by the stalled clock, time remains
		other := &holder{lease: Lease{TTL: time.Hour, Fixed: true}}
		other.lease.Hold(time.Now(), always(0))
		for _, l := range []*Lease{&other.lease, &h.lease} {
			l.watched = true
			heap.Push(&w.sched, l)
		}
		later := time.Now().Add(2 * time.Minute)
		w.sweep(later)
		lost, due := w.collect(later)
		require.Equal(t, []*Lease{&h.lease}, lost)
		require.Empty(t, due)
	})
}

func TestSimultaneousRemovalsDoNotWakeLoopEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoop(&server{answer: alwaysHeld})
		defer w.Close()
		ticks := map[time.Time]bool{}
		begin := time.Now()
		for range 30_000 {
			h := hold(w, 30*time.Second, false)
			synctest.Wait()
			ticks[w.last] = true
			require.True(t, w.Remove(&h.lease))
			time.Sleep(time.Millisecond)
		}
		require.LessOrEqual(t, len(ticks), 2+int(time.Since(begin)/lookout), "once a second")
		sleep(2 * lookout)
		last := w.last
		sleep(time.Hour)
		require.Equal(t, last, w.last, "and not at all when no more come")

		h := hold(w, 30*time.Second, true)
		sleep(30 * time.Second)
		require.Equal(t, EndLease, h.end, "the next one is watched")
	})
}
