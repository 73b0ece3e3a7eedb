package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
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
	limit   time.Duration // after it the rest is left out; 0 is no limit
	lenient bool          // mutants that survive are no error

	workshops []*workshop // one for each worker
	saying    sync.Mutex  // guards log

	mu       sync.Mutex            // guards baseline
	baseline map[catcher]*baseline // the tests that were run on unchanged code
}

// baseline is what a test does on unchanged code.
type baseline struct {
	once sync.Once
	took time.Duration
	err  error // it is not green
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
	results := c.hunt(ctx, mutants)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	counts := table(c.out, results)
	_, _ = fmt.Fprintf(c.out, "mutants: %d caught, %d survived, %d crashed, %d errors, %d not run within the limit; %.0f s\n",
		counts[caught], counts[survived], counts[died], counts[broken], counts[notRun], time.Since(began).Seconds())
	if counts[broken]+counts[died] > 0 || counts[survived] > 0 && !c.lenient {
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

const normalBound = 5 * time.Minute

// bound is how long a test may take on changed code. The first call for a test runs it on
// unchanged code, which the workshop must have. It returns an error for a test that fails
// there, and so proves nothing about changed code.
func (c *campaign) bound(ctx context.Context, w *workshop, test catcher) (time.Duration, error) {
	c.mu.Lock()
	if c.baseline == nil {
		c.baseline = map[catcher]*baseline{}
	}
	b := c.baseline[test]
	if b == nil {
		b = &baseline{}
		c.baseline[test] = b
	}
	c.mu.Unlock()
	b.once.Do(func() { b.took, b.err = runUnchanged(ctx, w, test) })
	if b.err != nil {
		return 0, fmt.Errorf("%v cannot tell: %w", test, b.err)
	}
	return (30*time.Second + 4*b.took).Round(time.Second), nil
}

// runUnchanged runs a test on unchanged code and returns how long it takes.
func runUnchanged(ctx context.Context, w *workshop, test catcher) (time.Duration, error) {
	binary, err := w.buildUnchanged(ctx, test.pkg)
	if err != nil {
		return 0, err
	}
	r := w.run(ctx, binary, test, normalBound)
	shows, err := r.judge(test)
	if err == nil && shows != green {
		err = fmt.Errorf("it is red on unchanged code:\n%s", r.tail())
	}
	return r.took, err
}

// hunt plants every mutant, within the limit, and returns what became of them, in their
// order.
func (c *campaign) hunt(ctx context.Context, mutants []mutant) []result {
	if c.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.limit)
		defer cancel()
	}
	results := make([]result, len(mutants))
	indices := rand.Perm(len(mutants)) //nolint:gosec // a limit leaves out others each time; no secret
	for i := range mutants {
		results[i] = result{mutant: &mutants[i], state: notRun}
	}
	each(ctx, c, indices, func(w *workshop, i int) {
		began := time.Now()
		r := c.try(ctx, w, &mutants[i])
		r.took = time.Since(began)
		if ctx.Err() == nil {
			results[i] = r
			c.logf("%-9s %s (%.1f s)", r.state, r.mutant.name, r.took.Seconds())
		}
	})
	return results
}

// try plants one mutant, runs its tests, and takes it out again.
func (c *campaign) try(ctx context.Context, w *workshop, m *mutant) (r result) {
	r = result{mutant: m, state: caught}
	bounds := map[catcher]time.Duration{}
	for _, test := range m.red {
		bound, err := c.bound(ctx, w, test)
		if err != nil {
			r.state, r.err = broken, err
			return r
		}
		bounds[test] = bound
	}
	restore, err := w.plant(m)
	if err == nil {
		defer func() {
			if err := restore(); err != nil {
				r.state, r.err = broken, err
			}
		}()
		err = c.runAll(ctx, w, bounds, &r)
	}
	if err != nil {
		r.state, r.err = broken, err
	}
	return r
}

func (c *campaign) runAll(ctx context.Context, w *workshop, bounds map[catcher]time.Duration, r *result) error {
	binaries := map[string]string{}
	for _, test := range r.mutant.red {
		if binaries[test.pkg] == "" {
			binary, err := w.build(ctx, test.pkg)
			if err != nil && r.mutant.generated {
				r.state = invalid
				return nil
			}
			if err != nil {
				return err
			}
			binaries[test.pkg] = binary
		}
		run := w.run(ctx, binaries[test.pkg], test, bounds[test])
		shows, err := run.judge(test)
		if err != nil {
			return fmt.Errorf("%v: %w", test, err)
		}
		if c.verbose {
			c.logf("%s: %v\n%s", r.mutant.name, test, run.tail())
		}
		r.add(test, shows)
		if r.mutant.generated && r.state == caught {
			break
		}
	}
	return nil
}

// logf writes a progress line.
func (c *campaign) logf(format string, args ...any) {
	c.saying.Lock()
	defer c.saying.Unlock()
	_, _ = fmt.Fprintf(c.log, format+"\n", args...) // the log is only for watching
}
