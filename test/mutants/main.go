package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
)

func main() {
	pattern := flag.String("run", "", "only mutants whose names (list/what) match this regular `expression`")
	since := flag.String("changed", "", "only mutants whose file or list differs from git `revision`")
	touched := flag.String("generate", "", "instead of the lists: mutants of the lines that differ from git `revision`")
	limit := flag.Duration("limit", 0, "start no mutants after this `time`; 0 means no limit")
	flag.Parse()
	// After the first signal, the program stops the tests and cleans up. A second signal kills it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	c := &campaign{root: ".", out: os.Stdout, limit: *limit, lenient: *touched != ""}
	mutants, err := readLists(lists)
	if err == nil && c.lenient {
		mutants, err = generate(ctx, c.root, *touched, mutants)
	}
	if err == nil {
		mutants, err = choose(ctx, c.root, mutants, *pattern, *since)
	}
	if err == nil {
		err = c.run(ctx, mutants)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// choose returns the mutants that match the pattern and, if since is set, whose file or list differs from that
// revision.
func choose(ctx context.Context, root string, all []mutant, pattern, since string) ([]mutant, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(all, func(m mutant) bool { return !re.MatchString(m.name) })
	if len(chosen) == 0 && pattern != "" {
		return nil, fmt.Errorf("no mutant's name matches %q", pattern)
	}
	if since == "" {
		return chosen, nil
	}
	names, err := changed(ctx, root, since)
	return slices.DeleteFunc(chosen, func(m mutant) bool {
		return !slices.Contains(names, m.file) && !slices.Contains(names, m.list())
	}), err
}
