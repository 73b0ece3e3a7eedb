package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

type campaign struct {
	root    string
	out     io.Writer
	limit   time.Duration // 0 means no limit
	lenient bool
}

func (c *campaign) run(ctx context.Context, mutants []mutant) error {
	began := time.Now()
	w, err := openWorkshop(ctx, c.root)
	if err != nil {
		return err
	}
	defer w.close()
	counts := map[verdict]int{}
	left := len(mutants)
	var uncaught string
	for _, i := range rand.Perm(len(mutants)) { //nolint:gosec // so that a limit omits different mutants each time
		planted := time.Now()
		if c.limit > 0 && planted.Sub(began) >= c.limit {
			break
		}
		v, about := w.try(ctx, &mutants[i])
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		line := fmt.Sprintf("%-8s  %s%s (%.1f s)\n", v, mutants[i].name, about, time.Since(planted).Seconds())
		if v != caught && v != invalid {
			uncaught += line
		}
		counts[v]++
		left--
		c.printf("%s", line)
	}
	c.printf("\n%smutants: %d caught, %d hung, %d survived, %d crashed, %d errors, %d not run within the limit; %.0f s\n", uncaught,
		counts[caught], counts[hung], counts[survived], counts[crashed], counts[broken], left, time.Since(began).Seconds())
	if counts[broken]+counts[crashed]+counts[hung] > 0 || counts[survived] > 0 && !c.lenient {
		return errors.New("not every mutant was caught")
	}
	return nil
}

func (c *campaign) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(c.out, format, args...)
}

// try tests a mutant. It also returns a description of the tests that did not catch it.
func (w *workshop) try(ctx context.Context, m *mutant) (verdict, string) {
	for _, c := range m.red {
		if err := w.check(ctx, c); err != nil {
			return broken, fmt.Sprintf(": %v cannot tell: %v", c, err)
		}
	}
	before, err := w.plant(m)
	v, about := caught, ""
	if err == nil {
		v, about, err = w.runAll(ctx, m)
		err = errors.Join(err, w.write(m.file, before))
	}
	if err != nil {
		return broken, fmt.Sprintf(": %v", err)
	}
	return v, about
}

func (w *workshop) runAll(ctx context.Context, m *mutant) (v verdict, about string, err error) {
	binary, built := "", ""
	for _, c := range m.red {
		if c.pkg != built {
			binary, err = w.build(ctx, c.pkg)
			if err != nil && m.generated {
				return invalid, "", nil
			}
			if err != nil {
				return broken, "", err
			}
			built = c.pkg
		}
		r := w.run(ctx, binary, c)
		shows, err := r.judge(c)
		switch {
		case err != nil:
			return broken, "", fmt.Errorf("%v: %w", c, err)
		case m.generated && shows != survived:
			return caught, "", nil
		case !m.generated && shows != caught:
			about += fmt.Sprintf(", %s: %v", shows, c)
		}
		v = max(v, shows)
	}
	return v, about, nil
}
