package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/run"
)

// Environment describes the machine and the versions in a run.
type Environment struct {
	Command    string    `json:"command"`
	Date       time.Time `json:"date"`
	Revision   string    `json:"revision"`
	Go         string    `json:"go"`
	System     string    `json:"system"`
	Processors int       `json:"processors"`
	Server     string    `json:"server"`
	Java       string    `json:"java"`
	Runs       int       `json:"runs,omitempty"`
	Rounds     int       `json:"rounds"`
	// Scale multiplies the time of each measurement; 0 means 1.
	Scale float64 `json:"scale,omitempty"`
}

// String returns one line of Markdown, without a newline.
func (e Environment) String() string {
	length := ""
	if e.Scale != 0 && e.Scale != 1 {
		length = fmt.Sprintf(" of %g times the usual length", e.Scale)
	}
	runs := ""
	if e.Runs > 1 {
		runs = fmt.Sprintf("%d runs of ", e.Runs)
	}
	return fmt.Sprintf("*`%s`, commit `%s`, %s, %s, %s, %d processors, Redis %s, %s%d rounds%s, Redisson: %s.*",
		e.Command, e.Revision, e.Date.Format(time.DateOnly), e.Go, e.System, e.Processors, e.Server, runs, e.Rounds, length, e.Java)
}

// Disturbances returns a sentence about the CPU time that the host stole.
func Disturbances(samples []run.Sample) string {
	var again, disturbed int
	var stolen float64
	for _, s := range samples {
		again += s.Again
		stolen += s.Stolen
		if s.Disturbed {
			disturbed++
		}
	}
	return fmt.Sprintf("The machine's host used %.1f %% of the CPU time. Therefore "+
		"%d measurements were repeated; %d of %d are reported although they were disturbed.",
		100*stolen/max(float64(len(samples)), 1), again, disturbed, len(samples))
}

// Failures returns an error if any measurement of Redlatch failed. It ignores other clients.
func Failures(entrants []run.Entrant, samples []run.Sample) error {
	var failures []error
	for _, s := range samples {
		own := slices.ContainsFunc(entrants, func(e run.Entrant) bool {
			return e.Label == s.Entrant && e.Contestant.Role == contest.Own
		})
		if own && s.Error != "" {
			failures = append(failures, fmt.Errorf("%s %d, %s, round %d: %s", s.Case, s.Level, s.Entrant, s.Round, s.Error))
		}
	}
	return errors.Join(failures...)
}

// Write writes results.json, tables.md and the plots of all runs into folder, which it creates.
func Write(folder string, env Environment, cases []run.Case, entrants []run.Entrant, samples []run.Sample) error {
	//nolint:gosec // not secret
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var markdown strings.Builder
	markdown.WriteString(env.String() + "\n\n" + Disturbances(samples) + "\n\n" + Summary(cases, entrants, samples))
	for _, c := range cases {
		t := CaseTable(c, entrants, samples)
		if len(t.Rows) == 0 {
			continue
		}
		markdown.WriteString("\n" + t.String())
		if !c.Plot {
			continue
		}
		if err := Plot(filepath.Join(folder, c.ID+".svg"), c, entrants, samples); err != nil {
			return fmt.Errorf("plot %s: %w", c.ID, err)
		}
		fmt.Fprintf(&markdown, "\n![%s](%s.svg)\n", c.Title, c.ID)
	}
	return Save(folder, "results.json", "tables.md", markdown.String(), struct {
		Environment Environment  `json:"environment"`
		Samples     []run.Sample `json:"samples"`
	}{env, samples})
}

// Save writes figures as JSON and tables as text into folder, which it creates.
func Save(folder, figuresFile, tablesFile, tables string, figures any) error {
	data, err := json.MarshalIndent(figures, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // not secret
		return err
	}
	for name, content := range map[string][]byte{figuresFile: append(data, '\n'), tablesFile: []byte(tables)} {
		//nolint:gosec // not secret
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
