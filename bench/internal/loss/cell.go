package loss

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Cell is a number of trials that have everything in common and run at once.
type Cell struct {
	// Client holds the locks, Way is how Redis is lost.
	Client Client
	Way    Way
	// Lease is that of all locks, Holds how many there are.
	Lease time.Duration
	Holds int
}

// Outcome is what came of a cell, for one of the ways in which its client tells.
type Outcome struct {
	// Client, Tells, Way and Lease, in milliseconds, are its place in the tables.
	Client string `json:"client"`
	Tells  string `json:"tells"`
	Way    string `json:"way"`
	Lease  int64  `json:"lease_ms"`
	// Before has for each trial how long before another client could acquire the holder
	// learned of the loss, in microseconds. It is negative for a holder that learned too
	// late.
	Before []float64 `json:"before_us"`
	// Gap has for each trial the resolution: the time between the look that found the
	// hold over and the look before, in microseconds.
	Gap []float64 `json:"gap_us"`
	// Never counts holders that had not learned of it when the cell gave up; Before has
	// what they were late by then. GivenBack counts keys that were free early, because a
	// holder that had learned of it released them.
	Never     int `json:"never"`
	GivenBack int `json:"given_back"`
	// Rival has how long after a key's expiry the rival found it free, in microseconds,
	// where there was a rival and the key was not given back.
	Rival []float64 `json:"rival_us,omitempty"`
}

// patience is for how long the sampler looks, from the fault on.
func (c Cell) patience() time.Duration { return 2*c.Lease + 10*time.Second }

// Run carries the trials out, with s to look at them.
func (c Cell) Run(ctx context.Context, s *Sampler) (outcomes []Outcome, err error) {
	err = perform(func(tb testing.TB) {
		tb.Helper()
		outcomes = c.play(tb, ctx, s)
	})
	if err != nil {
		err = fmt.Errorf("%s, %s, %v: %w", c.Client.Name, c.Way.Name, c.Lease, err)
	}
	return outcomes, err
}

// play is Run within a stage.
func (c Cell) play(tb testing.TB, ctx context.Context, s *Sampler) []Outcome {
	tb.Helper()
	names := make([]string, c.Holds)
	for i := range names {
		names[i] = "loss:" + strconv.Itoa(i)
	}
	r, addr := c.Way.prepare(tb)
	began := time.Now()
	holders := c.open(tb, ctx, addr)
	for _, name := range names {
		r.keys = append(r.keys, holders[0].key(name))
	}
	sights := c.takeAll(tb, ctx, holders, names)
	rest := rand.N(c.Lease / 2) //nolint:gosec // a moment, no secret
	time.Sleep(time.Until(began.Add(c.Lease + rest)))
	if left := look(append([]*sight(nil), sights...)); len(left) < len(sights) {
		tb.Fatalf("%d of %d holds were over before anything was broken", len(sights)-len(left), len(sights))
	}
	watcher := &rival{keys: r.keys, free: map[string]time.Time{}}
	if c.Way.lives && !c.Way.Forgets {
		watcher.conn = r.server.Dial(tb)
	}
	struck := time.Now()
	until := struck.Add(c.patience())
	over := s.watch(sights, until)
	c.Way.strike(r)
	tb.Cleanup(func() { c.Way.repair(r) }) // before the clients are closed
	if watcher.conn != nil {
		if err := watcher.compete(until); err != nil {
			tb.Fatalf("the rival: %v", err)
		}
	}
	<-over
	a := account{cell: c, struck: struck, until: until, free: watcher.free}
	if !c.Way.Forgets {
		a.expiries = r.server.Expiries(tb)
	}
	return a.outcomes(tb, r.keys, sights)
}

// open connects as many clients as it takes. They are closed with the stage.
func (c Cell) open(tb testing.TB, ctx context.Context, addr string) []holder {
	tb.Helper()
	var holders []holder
	tb.Cleanup(func() {
		var closing sync.WaitGroup
		for _, h := range holders {
			closing.Go(h.close)
		}
		closing.Wait()
	})
	for n := 0; n < c.Holds; n += c.Client.each {
		h, err := c.Client.open(ctx, addr, c.Lease)
		if err != nil {
			tb.Fatalf("connect: %v", err)
		}
		holders = append(holders, h)
	}
	return holders
}

// takeAll takes each lock at a random moment within a lease. Sights of one lock stand
// side by side.
func (c Cell) takeAll(tb testing.TB, ctx context.Context, holders []holder, names []string) []*sight {
	tb.Helper()
	tells := len(c.Client.Tells)
	sights := make([]*sight, len(names)*tells)
	errs := make([]error, len(names))
	var taking sync.WaitGroup
	for i, name := range names {
		delay := rand.N(c.Lease) //nolint:gosec // a moment, no secret
		taking.Go(func() {
			time.Sleep(delay)
			signals, err := holders[i/c.Client.each].take(ctx, name)
			errs[i] = err
			for j, s := range signals {
				sights[i*tells+j] = &sight{signal: s}
			}
		})
	}
	taking.Wait()
	for _, err := range errs {
		if err != nil {
			tb.Fatalf("take: %v", err)
		}
	}
	return sights
}

// account is what is known about a cell in the end.
type account struct {
	cell          Cell
	struck, until time.Time
	free          map[string]time.Time // seen by the rival
	expiries      map[string]time.Time // nil if the server forgets
}

// outcomes makes one outcome for each way in which the client tells.
func (a account) outcomes(tb testing.TB, keys []string, sights []*sight) []Outcome {
	tb.Helper()
	c := a.cell
	all := make([]Outcome, len(c.Client.Tells))
	for j, tells := range c.Client.Tells {
		o := Outcome{Client: c.Client.Name, Tells: tells, Way: c.Way.Name, Lease: c.Lease.Milliseconds()}
		for i, key := range keys {
			expiry, known := a.expiries[key]
			if !known && a.expiries != nil {
				tb.Fatalf("the server never let %q expire", key)
			}
			a.add(&o, key, expiry, sights[i*len(all)+j])
		}
		all[j] = o
	}
	return all
}

// add adds one trial to an outcome.
func (a account) add(o *Outcome, key string, expiry time.Time, s *sight) {
	free, seen := a.free[key]
	available := expiry
	switch {
	case a.expiries == nil:
		available = a.struck
	case seen && free.Before(expiry) && free.Before(s.valid):
		available = free // and a look after that found it held
	case seen && free.Before(expiry):
		o.GivenBack++
	case seen:
		o.Rival = append(o.Rival, micros(free.Sub(expiry)))
	}
	notified := s.notified
	if notified.IsZero() {
		o.Never++
		notified = a.until
	}
	o.Before = append(o.Before, micros(available.Sub(notified)))
	o.Gap = append(o.Gap, micros(s.gap()))
}

func micros(d time.Duration) float64 { return float64(d.Microseconds()) }
