// Package loss measures when holders notice that their lock is lost, relative to the time when another client could
// have acquired it.
//
// A trial is one hold with a renewed lease. A cell runs many trials on one server. Clients take their locks at random
// moments, so that the fault hits them at different points between two renewals. The [Sampler] checks all holds until
// they end.
//
// The expiry of a key is read from the append-only file, to which the server writes it before it replies. If the
// server is still running, a rival that bypasses the broken network confirms the expiry.
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

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// Plan selects the measurements.
type Plan struct {
	// Clients are measured sequentially. The cells of all Ways and Leases run concurrently.
	Clients []Client
	Ways    []Way
	Leases  []time.Duration
	// Holds is the number of trials per cell.
	Holds, Rounds int
	Log           io.Writer
}

// Run runs the plan. If a cell fails, Run continues with the other cells.
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

// Cell is a number of identical trials that run concurrently.
type Cell struct {
	Client Client
	Way    Way
	Lease  time.Duration
	Holds  int
}

// Outcome is the result of a cell for one of its client's signals.
type Outcome struct {
	Client string `json:"client"`
	Tells  string `json:"tells"`
	Way    string `json:"way"`
	Lease  int64  `json:"lease_ms"`
	// Before contains the time in microseconds from when each holder noticed the loss until another
	// client could acquire the lock. It is negative if the holder noticed too late.
	Before []float64 `json:"before_us"`
	Gap    []float64 `json:"gap_us"`
	// Never counts the holders that had not noticed the loss by the end of the trial. GivenBack
	// counts the keys that their holders released early.
	Never     int `json:"never"`
	GivenBack int `json:"given_back"`
	// Rival contains the times from the expiry of a key until the rival found it free.
	Rival []float64 `json:"rival_us,omitempty"`
}

func (c Cell) patience() time.Duration { return 2*c.Lease + 10*time.Second }

// Run runs the trials. It uses s to check the holds.
func (c Cell) Run(ctx context.Context, s *Sampler) (outcomes []Outcome, err error) {
	err = redistest.Perform(func(tb testing.TB) {
		tb.Helper()
		outcomes = c.play(tb, ctx, s)
	})
	if err != nil {
		err = fmt.Errorf("%s, %s, %v: %w", c.Client.Name, c.Way.Name, c.Lease, err)
	}
	return outcomes, err
}

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
	rest := rand.N(c.Lease / 2) //nolint:gosec // not used for security
	time.Sleep(time.Until(began.Add(c.Lease + rest)))
	if left := look(append([]*sight(nil), sights...)); len(left) < len(sights) {
		tb.Fatalf("%d of %d holds ended before the fault", len(sights)-len(left), len(sights))
	}
	watcher := &rival{keys: r.keys, free: map[string]time.Time{}}
	if c.Way.lives && !c.Way.Forgets {
		watcher.conn = r.server.Dial(tb)
	}
	struck := time.Now()
	until := struck.Add(c.patience())
	over := s.watch(sights, until)
	c.Way.strike(r)
	tb.Cleanup(func() { c.Way.repair(r) })
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

func (c Cell) takeAll(tb testing.TB, ctx context.Context, holders []holder, names []string) []*sight {
	tb.Helper()
	tells := len(c.Client.Tells)
	sights := make([]*sight, len(names)*tells)
	errs := make([]error, len(names))
	var taking sync.WaitGroup
	for i, name := range names {
		delay := rand.N(c.Lease) //nolint:gosec // not used for security
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

type account struct {
	cell          Cell
	struck, until time.Time
	free          map[string]time.Time // when the rival found each key free
	expiries      map[string]time.Time
}

func (a account) outcomes(tb testing.TB, keys []string, sights []*sight) []Outcome {
	tb.Helper()
	c := a.cell
	all := make([]Outcome, len(c.Client.Tells))
	for j, tells := range c.Client.Tells {
		o := Outcome{Client: c.Client.Name, Tells: tells, Way: c.Way.Name, Lease: c.Lease.Milliseconds()}
		for i, key := range keys {
			expiry, known := a.expiries[key]
			if !known && a.expiries != nil {
				tb.Fatalf("%q did not expire on the server", key)
			}
			a.add(&o, key, expiry, sights[i*len(all)+j])
		}
		all[j] = o
	}
	return all
}

func (a account) add(o *Outcome, key string, expiry time.Time, s *sight) {
	free, seen := a.free[key]
	available := expiry
	switch {
	case a.expiries == nil:
		available = a.struck
	case seen && free.Before(expiry) && free.Before(s.valid):
		available = free // a later check still found the hold valid
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
