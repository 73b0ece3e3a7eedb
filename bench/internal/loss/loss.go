// Package loss measures when holders learn that their lock is lost, relative to the moment
// from which another client could acquire it.
//
// # A trial
//
// A trial is one hold of a lock whose lease is renewed, on a server that is then lost. A
// cell is many trials at once, on a server of their own:
//
//	take        clients take their locks, each at a random moment, so that each is
//	            somewhere else between two renewals when it happens
//	fault       one Way of losing Redis strikes all of them
//	watch       the sampler looks at every hold until it reports its end, or until
//	            it has been late for so long that the cell gives up
//	account     the server has when each key expires, or expired
//	repair      the server goes on, and the clients are closed
//
// # When a holder learns of a loss
//
// One goroutine, the [Sampler], asks all holds of all cells again and again, without a
// pause, by what the client offers for it: Hold.Err, the error of a context, a time to
// compare with. A hold counts as ended when the first look has come back that found it so.
// The time since the look before is the resolution of that trial, and is reported.
//
// # When another client could acquire
//
// The server writes each expiry that it sets to its append-only file, in milliseconds of
// the clock of this machine and before it answers a client. The last one that it wrote is
// the moment, whether the server is frozen, dead, or prolongs leases for clients that do
// not get its replies. A key is there until that millisecond is over, so the moment is
// taken for up to one millisecond too early, against the holder.
//
// A rival is the second opinion, wherever the server still answers. It goes around the
// broken network and asks which keys exist, every few milliseconds. Where it finds a key
// gone before it expired, the holder has released it itself, which it did after it had
// learned of the loss, and the trial is counted as such.
//
// # What is not lost but gone
//
// Two ways make the server forget: the keys are deleted, or an empty server takes its
// place. No holder can know before; what counts is how late it is.
package loss

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Plan says what is to be measured.
type Plan struct {
	// Clients take turns; the cells of each run at once, one for each of Ways and Leases.
	Clients []Client
	Ways    []Way
	Leases  []time.Duration
	// Holds is how many trials a cell has, Rounds how many cells of each kind there are.
	Holds, Rounds int
	// Log gets progress lines.
	Log io.Writer
}

// Run carries the plan out. An error does not take what the other cells measured.
func (p Plan) Run(ctx context.Context) ([]Outcome, error) {
	var all []Outcome
	var errs []error
	for round := range p.Rounds {
		for _, client := range p.Clients {
			began := time.Now()
			outcomes, err := p.turn(ctx, client)
			all, errs = append(all, outcomes...), append(errs, err)
			_, _ = fmt.Fprintf(p.Log, "round %d: %s: %d outcomes in %v\n", round+1, client.Name,
				len(outcomes), time.Since(began).Round(time.Second))
		}
	}
	return all, errors.Join(errs...)
}

// turn runs all cells of one client.
func (p Plan) turn(ctx context.Context, client Client) ([]Outcome, error) {
	sampler := NewSampler()
	defer sampler.Close()
	var mu sync.Mutex // guards all and errs
	var all []Outcome
	var errs []error
	var cells sync.WaitGroup
	for _, way := range p.Ways {
		for _, lease := range p.Leases {
			cell := Cell{Client: client, Way: way, Lease: lease, Holds: p.Holds}
			cells.Go(func() {
				outcomes, err := cell.Run(ctx, sampler)
				mu.Lock()
				defer mu.Unlock()
				all, errs = append(all, outcomes...), append(errs, err)
			})
		}
	}
	cells.Wait()
	return all, errors.Join(errs...)
}

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
