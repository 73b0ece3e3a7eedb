package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/report"
	"github.com/redlatch/redlatch/bench/internal/run"
)

// drawPlots draws the plots of a run anew, with its tables, from its results.json.
func drawPlots(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: bench plots FOLDER")
	}
	env, samples, err := measured(filepath.Join(args[0], "results.json"))
	if err != nil {
		return err
	}
	return report.Write(args[0], env, run.Cases(), known(), samples)
}

// printSummary prints the tables of docs/performance.md, from whole runs of one commit: what is asked
// about first, and the targets that some of them missed.
func printSummary(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: bench summary RESULTS.json [RESULTS.json ...]")
	}
	var last report.Environment
	var runs [][]run.Sample
	for _, name := range args {
		env, samples, err := measured(name)
		switch {
		case err != nil:
			return err
		case len(runs) > 0 && env.Revision != last.Revision:
			return fmt.Errorf("%s is of commit %s, those before of %s", name, env.Revision, last.Revision)
		}
		last = env
		runs = append(runs, samples)
	}
	for _, t := range []report.Table{report.Summary(known(), runs), report.Missed(known(), runs)} {
		fmt.Printf("%s\n%v\n\n", t.Markdown(), last)
	}
	return nil
}

// measured returns what a results.json holds.
func measured(name string) (report.Environment, []run.Sample, error) {
	text, err := os.ReadFile(name) //nolint:gosec // the file that the user names
	if err != nil {
		return report.Environment{}, nil, err
	}
	var results struct {
		Environment report.Environment
		Samples     []run.Sample
	}
	return results.Environment, results.Samples, json.Unmarshal(text, &results)
}

// known returns all that can take part in a run.
func known() []run.Entrant {
	var entrants []run.Entrant
	for _, c := range contest.All() {
		entrants = append(entrants, run.Entrant{Label: c.Name, Contestant: c})
	}
	return entrants
}
