package main

import (
	"encoding/json"
	"errors"
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
	text, err := os.ReadFile(filepath.Join(args[0], "results.json")) //nolint:gosec // the folder that the user names
	if err != nil {
		return err
	}
	var results struct{ Samples []run.Sample }
	if err := json.Unmarshal(text, &results); err != nil {
		return err
	}
	var entrants []run.Entrant
	for _, c := range contest.All() {
		entrants = append(entrants, run.Entrant{Label: c.Name, Contestant: c})
	}
	for _, c := range run.Cases() {
		if _, err := report.Plots(args[0], c, entrants, results.Samples); err != nil {
			return err
		}
	}
	return nil
}
