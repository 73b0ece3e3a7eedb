// Package trials runs fleets of processes that share a lock, kills and stalls some of them, and checks that two
// processes never worked at the same time.
package trials

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

const asProcess = "REDLATCH_TRIALS_PROCESS"

// Args are the arguments of all processes of a fleet.
type Args struct {
	URL, Name string
	Other     bool
	file      string
}

// String is the inverse of parseArgs.
func (a Args) String() string { return fmt.Sprintf("%s %s %v %s", a.URL, a.Name, a.Other, a.file) }

func parseArgs(text string) (a Args, ok bool) {
	_, err := fmt.Sscan(text, &a.URL, &a.Name, &a.Other, &a.file)
	return a, err == nil
}

// Main must be called by TestMain. In a process of a fleet, it calls process.
func Main(m *testing.M, process func(a Args, steps *Steps) error) {
	if args, ok := parseArgs(os.Getenv(asProcess)); ok {
		steps, err := openSteps(args.file)
		if err == nil {
			err = process(args, steps)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Trials mostly wait, so more of them can run in parallel. The flags are parsed later and can override this.
	parallel := flag.Lookup("test.parallel").Value
	if n, err := strconv.Atoi(parallel.String()); err == nil && n < 12 {
		_ = parallel.Set("12")
	}
	redistest.Main(m)
}

// Steps is the file to which the processes of a fleet write their steps. It is not safe for concurrent use.
type Steps struct {
	file *os.File
	run  int
}

func openSteps(name string) (*Steps, error) {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	return &Steps{file: file}, err
}

// Run writes steps until it has worked for the given duration. If ctx ends first, it returns the cause.
func (s *Steps) Run(ctx context.Context, long time.Duration) error {
	s.run++
	const pause = 5 * time.Millisecond
	for range long / pause {
		time.Sleep(pause)
		// The time is read before ctx is checked, because the process may be stopped after the check.
		now := time.Now()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := fmt.Fprintln(s.file, step{now.UnixNano(), os.Getpid(), s.run}); err != nil {
			return err
		}
	}
	return nil
}

type step struct {
	at       int64
	pid, run int
}

func (s step) String() string { return fmt.Sprintf("%d %d %d", s.at, s.pid, s.run) }

func parseSteps(text string) (steps []step, rest string, err error) {
	lines := strings.Split(text, "\n")
	for _, line := range lines[:len(lines)-1] {
		var s step
		if _, err := fmt.Sscan(line, &s.at, &s.pid, &s.run); err != nil {
			return nil, "", fmt.Errorf("%w: %q", err, line)
		}
		steps = append(steps, s)
	}
	return steps, lines[len(lines)-1], nil
}

// Run is a period in which a process worked.
type Run struct {
	First, Last int64 // in nanoseconds since 1970
	name        string
}

func runs(steps []step) ([]Run, error) {
	known := map[string]Run{}
	for _, s := range steps {
		name := fmt.Sprintf("%d of process %d", s.run, s.pid)
		r, found := known[name]
		if !found {
			r = Run{First: s.at, name: name}
		}
		r.First, r.Last = min(r.First, s.at), max(r.Last, s.at)
		known[name] = r
	}
	var all []Run
	for _, r := range known {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Run) int { return cmp.Compare(a.First, b.First) })
	for i := 1; i < len(all); i++ {
		if all[i].First <= all[i-1].Last {
			return nil, fmt.Errorf("run %s began before run %s had ended", all[i].name, all[i-1].name)
		}
	}
	return all, nil
}
