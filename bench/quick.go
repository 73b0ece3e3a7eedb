package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/report"
	"github.com/redlatch/redlatch/bench/internal/run"
)

// Labels of the two that are compared.
const (
	treeLabel = "tree"
	baseLabel = "base"
)

// errNoBase says that there is nothing to compare with.
var errNoBase = errors.New("quick: -base must name another build of this program")

// runQuick compares this build with another.
func runQuick(args []string) error {
	f := flag.NewFlagSet("bench quick", flag.ContinueOnError)
	base := f.String("base", "", "the program to compare with, built from another revision")
	rounds := f.Int("rounds", 12, "rounds of both; an even number, so that each goes first as often")
	what := f.String("what", "", "only cases whose letter this regular expression matches")
	least := f.Float64("least", 0, "fail when this build does less per second than this share of the other, in any case")
	if err := f.Parse(args); err != nil {
		return err
	}
	chosen, err := regexp.Compile(*what)
	if err != nil {
		return err
	}
	if *base == "" {
		return errNoBase
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var changes []report.Change
	for _, q := range run.QuickCases() {
		if !chosen.MatchString(q.ID) {
			continue
		}
		c, err := contest.Find(q.Contestant)
		if err != nil {
			return err
		}
		r := &run.Runner{Rounds: *rounds, Swap: true, Allowed: allowed, Patience: 20 * time.Second, Log: os.Stderr, Entrants: []run.Entrant{
			{Label: treeLabel, Contestant: c, Command: []string{self, "worker"}},
			{Label: baseLabel, Contestant: c, Command: []string{*base, "worker"}},
		}}
		samples, err := r.Run(q.Case)
		if err != nil {
			return err
		}
		changes = append(changes, report.Changes(q.Case, q.Contestant, samples)...)
	}
	fmt.Print(report.ChangeTable(changes, treeLabel, baseLabel).Text())
	fmt.Print("\n" + report.Verdict(changes))
	return report.Least(changes, *least)
}
