// Program flaky looks for tests that fail by chance. It builds the tests of this module once,
// with the race detector, and repeats what `make test` runs while the processors are busy: by
// default 20 rounds, and at the same time 100 of the tests on fake time, which cost little, for 90
// minutes at most.
//
//	go run ./test/flaky
//	go run ./test/flaky -fake 1000 -rest 0 -run Close ./internal/mux
//
// It prints each failure with its round and its output, and fails when there was one. The
// tests on fake time are found in the source: see fake.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"time"
)

func main() {
	c := campaign{took: map[string]time.Duration{}}
	flag.IntVar(&c.fake, "fake", 100, "rounds of the tests on fake time")
	flag.IntVar(&c.rest, "rest", 20, "rounds of the other tests")
	flag.StringVar(&c.only, "run", "", "only tests whose names match this regular expression")
	limit := flag.Duration("limit", 90*time.Minute, "for how long at most, without the build")
	load := flag.Int("load", -1, "how many goroutines keep processors busy; below 0: one for each, but none beside the tests of all packages, which do")
	flag.Parse()
	if *load < 0 && flag.NArg() > 0 {
		*load = runtime.NumCPU()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	failures, err := flaky(ctx, &c, flag.Args(), *limit, *load)
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "flaky:", err)
		os.Exit(2)
	case failures > 0:
		os.Exit(1)
	}
}

// flaky builds the tests of packages, all by default, and repeats them. It returns how many
// runs failed.
func flaky(ctx context.Context, c *campaign, packages []string, limit time.Duration, load int) (failures int, err error) {
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	dir, err := os.MkdirTemp("", "flaky-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	fmt.Println("Building the tests.")
	if c.suites, err = build(ctx, dir, packages); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for range load {
		go burn(ctx)
	}
	return c.run(ctx), nil
}

// burn keeps a processor busy.
func burn(ctx context.Context) {
	for n := uint64(1); ctx.Err() == nil; n++ {
		for range 1_000_000 {
			n ^= n << 13
			n ^= n >> 7
		}
	}
}
