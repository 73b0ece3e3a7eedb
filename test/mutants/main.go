package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

func main() {
	pattern := flag.String("run", "", "only mutants whose names (area/what) match this regular `expression`")
	since := flag.String("changed", "", "only mutants whose file or list differs from git `revision`")
	touched := flag.String("generate", "", "instead of the lists: mutants of the lines that differ from git `revision`")
	with := flag.String("with", "", "packages whose tests may catch generated mutants, too, separated by `commas`")
	limit := flag.Duration("limit", 0, "leave out the rest after this `time`; 0 is no limit")
	workers := flag.Int("j", max(1, runtime.NumCPU()/2), "how many mutants at a time")
	verbose := flag.Bool("v", false, "show what the tests print")
	flag.Parse()
	// The first signal ends the tests and cleans up, a second one kills.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	c := &campaign{root: ".", workers: *workers, out: os.Stdout, log: os.Stderr, verbose: *verbose, limit: *limit}
	var err error
	if *touched != "" {
		err = survivors(ctx, c, *touched, *pattern, strings.FieldsFunc(*with, func(r rune) bool { return r == ',' }))
	} else {
		err = work(ctx, c, *pattern, *since)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// work runs a campaign with the mutants of the lists that match the pattern, and of those,
// if since is a revision, with the ones whose file or list differs from it.
func work(ctx context.Context, c *campaign, pattern, since string) error {
	all, err := readLists(lists)
	if err != nil {
		return err
	}
	chosen, err := choose(all.mutants, pattern)
	if err != nil {
		return err
	}
	if since == "" {
		return c.run(ctx, chosen)
	}
	names, err := changed(ctx, c.root, since)
	if err != nil {
		return err
	}
	chosen = slices.DeleteFunc(chosen, func(m mutant) bool { return !slices.Contains(names, m.file) && !slices.Contains(names, m.list()) })
	if len(chosen) == 0 {
		_, err = fmt.Fprintf(c.out, "mutants: no mutant's file differs from %s\n", since)
		return err
	}
	return c.run(ctx, chosen)
}

// survivors runs a campaign with mutants of the lines that differ from a revision. Those
// that survive are no error: some change nothing that matters.
func survivors(ctx context.Context, c *campaign, since, pattern string, with []string) error {
	all, err := readLists(lists)
	if err != nil {
		return err
	}
	made, err := generate(ctx, c.root, since, with, all.mutants)
	if err != nil {
		return err
	}
	if len(made) == 0 {
		_, err = fmt.Fprintf(c.out, "mutants: nothing that differs from %s has a mutant\n", since)
		return err
	}
	chosen, err := choose(made, pattern)
	if err != nil {
		return err
	}
	c.lenient = true
	return c.run(ctx, chosen)
}

func choose(all []mutant, pattern string) ([]mutant, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	var chosen []mutant
	for _, m := range all {
		if re.MatchString(m.name) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no mutant's name matches %q", pattern)
	}
	return chosen, nil
}
