package rlock_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// losses are the ways to lose a server that remembers the locks. Each returns what
// brings it back.
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

// exposed is a server with holds that are to lose it.
type exposed struct {
	way    string
	server *redistest.Server
	proxy  *redistest.Proxy
	holds  []*exposedHold
}

// exposedHold is a hold, when it was last found held, and when it was found over.
type exposedHold struct {
	*rlock.Hold
	client          *redlatch.Client
	way             string
	valid, reported time.Time
}

// expose starts a server behind a slow network, and clients that shall hold locks.
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

// holdAtRandom takes a lock for each, at a moment of its own within a renewal period,
// and returns when the first are due for their second renewal.
func holdAtRandom(t *testing.T, all []*exposedHold, period time.Duration) {
	t.Helper()
	errs := make([]error, len(all))
	key, ctx := redistest.Key(t), t.Context()
	var taking sync.WaitGroup
	for i, e := range all {
		moment := time.After(rand.N(period))
		taking.Go(func() {
			<-moment
			// On a busy machine a slow reply is a lost one. The next lock is another.
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

// sample looks at all holds, round after round, until the last is over.
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

// The server's own account says when another could acquire: the last expiry that it
// has written down, be it frozen or dead by now. Replies are slower here than the loss
// margin is long, so that it matters from where the lease is counted.
func TestU1U2HoldersAreNotifiedBeforeAnotherOwnerCanAcquire(t *testing.T) {
	testlevel.All(t, "a real lease, 20 s")
	t.Parallel()
	const clients, each = 4, 5
	// starved is a time without a look after which the moment of the loss is not
	// known.
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
		t.Cleanup(func() { // so that closing has nothing to wait for
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
