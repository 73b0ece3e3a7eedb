package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// campaign is one run of the program.
type campaign struct {
	root    string // of the checkout
	workers int
	out     io.Writer // gets the table
	log     io.Writer // gets a line for each mutant when it is done
	verbose bool

	workshops []*workshop // one for each worker
	saying    sync.Mutex  // guards log

	mu     sync.Mutex                // guards what follows
	normal map[catcher]time.Duration // how long green tests take
	unfit  map[catcher]error         // tests that are not green on unchanged code
}

// run does everything. It returns an error unless every mutant was caught.
func (c *campaign) run(ctx context.Context, mutants []mutant) error {
	began := time.Now()
	tmp, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // the system's broom comes after ours
	n := min(max(1, c.workers), len(mutants))
	if c.workshops, err = openWorkshops(ctx, c.root, tmp, n); err != nil {
		return err
	}
	c.calibrate(ctx, mutants)
	calibrated := time.Since(began)
	results := c.hunt(ctx, mutants)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	counts := table(c.out, results)
	_, _ = fmt.Fprintf(c.out, "mutants: %d caught, %d survived, %d errors; %.0f s, of which %.0f on unchanged code\n",
		counts[caught], counts[survived], counts[broken], time.Since(began).Seconds(), calibrated.Seconds())
	if counts[caught] != len(results) {
		return errors.New("not every mutant was caught")
	}
	return nil
}

// each runs do for every job, one at a time in each workshop, until ctx ends.
func each[T any](ctx context.Context, c *campaign, jobs []T, do func(w *workshop, job T)) {
	queue := make(chan T)
	var workers sync.WaitGroup
	for _, w := range c.workshops {
		workers.Go(func() {
			for job := range queue {
				do(w, job)
			}
		})
	}
	for _, job := range jobs {
		select {
		case queue <- job:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(queue)
	workers.Wait()
}

// calibrate runs every test that the mutants name on unchanged code.
func (c *campaign) calibrate(ctx context.Context, mutants []mutant) {
	c.normal, c.unfit = map[catcher]time.Duration{}, map[catcher]error{}
	byPkg := map[string][]catcher{}
	for _, m := range mutants {
		for _, test := range m.red {
			if !slices.Contains(byPkg[test.pkg], test) {
				byPkg[test.pkg] = append(byPkg[test.pkg], test)
			}
		}
	}
	each(ctx, c, slices.Sorted(maps.Keys(byPkg)), func(w *workshop, pkg string) {
		binary, err := w.build(ctx, pkg)
		for _, test := range byPkg[pkg] {
			c.calibrateOne(ctx, w, test, binary, err)
		}
	})
}

const normalBound = 5 * time.Minute

func (c *campaign) calibrateOne(ctx context.Context, w *workshop, test catcher, binary string, err error) {
	var r run
	if err == nil && ctx.Err() == nil {
		r = w.run(ctx, binary, test, normalBound)
		var shows colour
		shows, err = r.judge(test.test)
		if err == nil && shows != green {
			err = fmt.Errorf("it is red on unchanged code:\n%s", r.tail())
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.normal[test] = r.took
	if err != nil && ctx.Err() == nil {
		c.unfit[test] = err
		defer c.say("%-9s %v: %v", broken, test, err)
	}
}

// bound is how long a test may take on changed code. It returns an error for a
// test that cannot tell changed code from unchanged.
func (c *campaign) bound(test catcher) (time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unfit[test] != nil {
		return 0, fmt.Errorf("%v cannot tell: see above", test)
	}
	return (30*time.Second + 4*c.normal[test]).Round(time.Second), nil
}

// hunt plants every mutant and returns what became of them, in their order.
func (c *campaign) hunt(ctx context.Context, mutants []mutant) []result {
	results := make([]result, len(mutants))
	indices := make([]int, len(mutants))
	for i := range mutants {
		indices[i] = i
		results[i] = result{mutant: &mutants[i], state: broken, err: context.Canceled}
	}
	each(ctx, c, indices, func(w *workshop, i int) {
		began := time.Now()
		r := c.try(ctx, w, &mutants[i])
		r.took = time.Since(began)
		if ctx.Err() == nil {
			results[i] = r
			c.say("%-9s %s (%.1f s)", r.state, r.mutant.name, r.took.Seconds())
		}
	})
	return results
}

// try plants one mutant, runs its tests, and takes it out again.
func (c *campaign) try(ctx context.Context, w *workshop, m *mutant) (r result) {
	r = result{mutant: m, state: caught}
	restore, err := w.plant(m)
	if err == nil {
		defer func() {
			if err := restore(); err != nil {
				r.state, r.err = broken, err
			}
		}()
		err = c.runAll(ctx, w, m, &r)
	}
	if err != nil {
		r.state, r.err = broken, err
	}
	return r
}

func (c *campaign) runAll(ctx context.Context, w *workshop, m *mutant, r *result) error {
	binaries := map[string]string{}
	for _, test := range m.red {
		bound, err := c.bound(test)
		if err != nil {
			return err
		}
		if binaries[test.pkg] == "" {
			binary, err := w.build(ctx, test.pkg)
			if err != nil {
				return err
			}
			binaries[test.pkg] = binary
		}
		run := w.run(ctx, binaries[test.pkg], test, bound)
		shows, err := run.judge(test.test)
		if err != nil {
			return fmt.Errorf("%v: %w", test, err)
		}
		if c.verbose {
			c.say("%s: %v\n%s", m.name, test, run.tail())
		}
		r.add(test.test, shows)
	}
	return nil
}

// say writes a line about how it goes.
func (c *campaign) say(format string, args ...any) {
	c.saying.Lock()
	defer c.saying.Unlock()
	_, _ = fmt.Fprintf(c.log, format+"\n", args...) // for who looks on
}
