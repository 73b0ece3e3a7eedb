package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/observed"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// losses are ways to cut off a server that remembers its locks; each returns a repair.
var losses = map[string]func(s *redistest.Server, p *redistest.Proxy) (repair func()){
	"frozen": func(s *redistest.Server, _ *redistest.Proxy) func() {
		s.Pause()
		return s.Resume
	},
	"black hole to the server": func(_ *redistest.Server, p *redistest.Proxy) func() {
		p.Blackhole(redistest.ToServer)
		return func() { p.Heal() }
	},
	"black hole to the client": func(_ *redistest.Server, p *redistest.Proxy) func() {
		p.Blackhole(redistest.ToClient)
		return func() { p.Heal() }
	},
	"reset and refused": func(_ *redistest.Server, p *redistest.Proxy) func() {
		p.Refuse(true)
		p.Reset()
		return func() { p.Refuse(false) }
	},
	"killed": func(s *redistest.Server, _ *redistest.Proxy) func() {
		s.Kill()
		return s.Restart
	},
}

type exposed struct {
	way    string
	server *redistest.Server
	proxy  *redistest.Proxy
	holds  []*exposedHold
}

// exposedHold is a hold with the times when it was last seen held and first seen ended.
type exposedHold struct {
	*rlock.Hold
	client          *redlatch.Client
	way             string
	valid, reported time.Time
}

// expose starts a server behind a slow network, with clients that will hold locks.
func expose(t *testing.T, way string, clients, each int) *exposed {
	t.Helper()
	s := redistest.Start(t, redistest.WithAppendOnly())
	e := &exposed{way: way, server: s, proxy: redistest.NewProxy(t, s.Addr())}
	for range clients {
		client := connect(t, e.proxy.URL(), redlatch.WithWatchdogTimeout(reportedLease))
		loadScripts(t, client)
		for range each {
			e.holds = append(e.holds, &exposedHold{client: client, way: way})
		}
	}
	e.proxy.Latency(redistest.ToClient, reportedLease/8)
	return e
}

// holdAtRandom acquires a lock for each hold at a random time within a renewal period, and returns
// when the second renewals begin.
func holdAtRandom(t *testing.T, all []*exposedHold, period time.Duration) {
	t.Helper()
	errs := make([]error, len(all))
	key, ctx := redistest.Key(t), t.Context()
	var taking sync.WaitGroup
	for i, e := range all {
		moment := time.After(rand.N(period))
		taking.Go(func() {
			<-moment
			// A slow reply counts as lost. The next lock is another.
			for try := range 5 {
				e.Hold, errs[i] = rlock.New(e.client, fmt.Sprint(key, "-", i, "-", try)).TryLock(ctx)
				if !errors.Is(errs[i], redlatch.ErrUncertain) {
					return
				}
			}
		})
	}
	due := time.After(2*period + rand.N(period))
	taking.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	<-due
}

// sample polls all holds until the last has ended.
func sample(t *testing.T, all []*exposedHold, within time.Duration) {
	t.Helper()
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for began := time.Now(); len(all) > 0; <-tick.C {
		var left []*exposedHold
		for _, e := range all {
			at := time.Now()
			if e.Err() != nil {
				e.reported = time.Now()
				continue
			}
			e.valid = at
			left = append(left, e)
		}
		all = left
		require.Less(t, time.Since(began), within, "%d holds are not over", len(left))
	}
}

// The server logs its expiries, even if it is frozen or killed. Replies are slower than the loss
// margin, so it matters whether the lease counts from the sending.
func TestU1U2HoldersAreNotifiedBeforeAnotherOwnerCanAcquire(t *testing.T) {
	testlevel.All(t, "a real lease, 20 s")
	t.Parallel()
	const clients, each = 4, 5
	// starved is a gap between samples after which the time of the loss is unknown.
	const starved = 500 * time.Millisecond
	var servers []*exposed
	var all []*exposedHold
	for way := range losses {
		e := expose(t, way, clients, each)
		servers, all = append(servers, e), append(all, e.holds...)
	}
	holdAtRandom(t, all, reportedLease/3)
	for _, e := range all {
		require.NoError(t, e.Err(), "%s: lost before anything was broken", e.way)
	}
	for _, e := range servers {
		repair := losses[e.way](e.server, e.proxy)
		t.Cleanup(func() {
			e.proxy.Latency(redistest.ToClient, 0)
			repair()
		})
	}
	sample(t, all, reportedLease+slack)

	seen := 0
	for _, e := range servers {
		expiries := e.server.Expiries(t)
		for _, hold := range e.holds {
			expiry, known := expiries[hold.Name()]
			require.True(t, known, "%s: the server never let it expire", e.way)
			require.True(t, hold.valid.Before(expiry), "%s: held %v after another could acquire", e.way, hold.valid.Sub(expiry))
			if hold.reported.Sub(hold.valid) < starved {
				seen++
				require.True(t, hold.reported.Before(expiry), "%s: notified %v too late", e.way, hold.reported.Sub(expiry))
			}
		}
	}
	require.Greater(t, seen, len(all)/4, "the machine was too busy to see anything")
}

// checkLoss checks that an error is a loss for this reason only.
func checkLoss(t *testing.T, want redlatch.Loss, err error) {
	t.Helper()
	require.ErrorIs(t, err, redlatch.ErrLost)
	require.ErrorIs(t, err, want)
	var why redlatch.Loss
	require.ErrorAs(t, err, &why)
	require.Equal(t, want, why)
	require.ErrorContains(t, err, string(want))
}

func checkLost(ctx context.Context, t *testing.T, want redlatch.Loss, l *rlock.Lock, h *rlock.Hold) {
	t.Helper()
	checkLoss(t, want, h.Err())
	checkLoss(t, want, context.Cause(ctx))
	_, err := l.Lock(context.WithoutCancel(ctx))
	checkLoss(t, want, err)
	_, err = h.HandOver()
	checkLoss(t, want, err)
	checkLoss(t, want, h.LetExpire())
	checkLoss(t, want, h.Unlock())
}

func TestALossOfAFixedLeaseSaysThatItWasOver(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		hold := take(t, s.l, rlock.WithLease(10*time.Second))
		ctx := hold.Context(t.Context())
		time.Sleep(9 * time.Second)
		synctest.Wait()
		checkLost(ctx, t, redlatch.LossLeaseOver, s.l, hold)
	})
}

func TestALossOfALockThatWasTakenOrDeletedSaysSo(t *testing.T) {
	for how, take2 := range map[string]func(t *testing.T, s *scene){
		"deleted": func(t *testing.T, s *scene) { t.Helper(); s.srv.Do(t, "DEL", "lock") },
		"taken": func(t *testing.T, s *scene) {
			t.Helper()
			forced, err := s.other.ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, forced)
		},
		"replaced": func(t *testing.T, s *scene) { t.Helper(); s.srv.Do(t, "SET", "lock", "no lock") },
	} {
		t.Run(how, func(t *testing.T) {
			eachKind(t, func(t *testing.T, s *scene) {
				t.Helper()
				hold := take(t, s.l)
				ctx := hold.Context(t.Context())
				take2(t, s)
				time.Sleep(11 * time.Second)
				synctest.Wait()
				checkLost(ctx, t, redlatch.LossTaken, s.l, hold)
				s.srv.Do(t, "DEL", "lock")

				hold = take(t, s.l)
				take2(t, s)
				checkLoss(t, redlatch.LossTaken, hold.Unlock())
				s.srv.Do(t, "DEL", "lock")
				if how == "replaced" {
					return // a re-entry and a hand-over give ErrWrongType, and the hold goes on
				}

				for _, find := range []func(h *rlock.Hold, ctx context.Context) error{
					func(_ *rlock.Hold, ctx context.Context) error { _, err := s.l.TryLock(ctx); return err },
					func(h *rlock.Hold, _ context.Context) error { _, err := h.HandOver(); return err },
				} {
					hold = take(t, s.l)
					ctx = hold.Context(t.Context())
					take2(t, s)
					checkLoss(t, redlatch.LossTaken, find(hold, context.WithoutCancel(ctx)))
					checkLost(ctx, t, redlatch.LossTaken, s.l, hold)
				}
			})
		})
	}
}

func TestALossWithoutRenewalsSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &witness{}
		w, client := wired(t, 0, redlatch.WithObserver(observed.Outcomes(seen.see)))
		l := rlock.New(client, "job")
		hold := take(t, l)
		ctx := hold.Context(t.Context())
		seen.since()
		w.hole.Store(true)
		awaitClosed(t, ctx.Done(), 30*time.Second, "the loss")
		checkLost(ctx, t, redlatch.LossNotRenewed, l, hold)
		checkLoss(t, redlatch.LossNotRenewed, next[redlatch.Ended](t, seen).Err)
		checkLoss(t, redlatch.LossNotRenewed, next[redlatch.Released](t, seen).Err)
	})
}

func TestALossLongAfterAReconnectionIsOfALockThatWasTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 0)
		l := rlock.New(client, "job")
		hold := take(t, l)
		ctx := hold.Context(t.Context())
		time.Sleep(time.Second)
		w.reset()
		time.Sleep(25 * time.Second)
		w.srv.Do(t, "DEL", "job")
		awaitClosed(t, ctx.Done(), 10*time.Second, "the loss")
		checkLost(ctx, t, redlatch.LossTaken, l, hold)
	})
}
