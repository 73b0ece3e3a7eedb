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

// drawPlots draws the plots of a run anew, from its results.json.
func drawPlots(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: bench plots FOLDER")
	}
	samples, err := measured(filepath.Join(args[0], "results.json"))
	if err != nil {
		return err
	}
	for _, c := range run.Cases() {
		if _, err := report.Plots(args[0], c, known(), samples); err != nil {
			return err
		}
	}
	return nil
}

// printTargets prints the table of docs/performance.md: the targets that some runs missed.
func printTargets(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: bench targets RESULTS.json [RESULTS.json ...]")
	}
	var runs [][]run.Sample
	for _, name := range args {
		samples, err := measured(name)
		if err != nil {
			return err
		}
		runs = append(runs, samples)
	}
	fmt.Print(report.Missed(known(), runs).Markdown())
	return nil
}

// measured returns what a results.json holds.
func measured(name string) ([]run.Sample, error) {
	text, err := os.ReadFile(name) //nolint:gosec // the file that the user names
	if err != nil {
		return nil, err
	}
	var results struct{ Samples []run.Sample }
	return results.Samples, json.Unmarshal(text, &results)
}

// known returns all that can take part in a run.
func known() []run.Entrant {
	var entrants []run.Entrant
	for _, c := range contest.All() {
		entrants = append(entrants, run.Entrant{Label: c.Name, Contestant: c})
	}
	return entrants
}
