package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/redlatch/redlatch/bench/internal/loss"
	"github.com/redlatch/redlatch/bench/internal/report"
)

// lossFlags are the flags of loss.
type lossFlags struct {
	what, who, leases, out, note string
	holds, rounds                int
}

// runLoss measures when holders learn that they have lost their lock.
func runLoss(args []string) error {
	var s lossFlags
	f := flag.NewFlagSet("bench loss", flag.ContinueOnError)
	f.StringVar(&s.what, "what", "", "only ways of losing Redis whose name this regular expression matches")
	f.StringVar(&s.who, "who", "", "only clients whose name this regular expression matches")
	f.StringVar(&s.leases, "leases", "2s,5s,30s", "leases, with commas between them")
	f.StringVar(&s.out, "out", "docs/reliability", "folder to write to; empty writes nothing")
	f.StringVar(&s.note, "note", "", "what is to be said of the machine")
	f.IntVar(&s.holds, "holds", 100, "locks that are held at once, for each client, way and lease")
	f.IntVar(&s.rounds, "rounds", 2, "how often each of these is repeated")
	if err := f.Parse(args); err != nil {
		return err
	}
	plan, err := s.plan()
	if err != nil {
		return err
	}
	env, err := environment(settings{rounds: s.rounds, command: "make loss"})
	if err != nil {
		return err
	}
	before := load()
	outcomes, failed := plan.Run(context.Background())
	outcomes = loss.Merge(outcomes)
	s.note = strings.TrimSpace(s.note + fmt.Sprintf(" Load average %s at the beginning, %s at the end.", before, load()))
	text := fmt.Sprintf("%v\n\n%s\n\n%s", env, s.note, loss.Notes(outcomes))
	for _, t := range loss.Tables(outcomes) {
		text += "\n" + t.String()
	}
	fmt.Print(text)
	return errors.Join(failed, s.write(env, outcomes, text))
}

// load returns the load average of the last minute, which tells what else went on.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// plan makes a plan of the flags.
func (s lossFlags) plan() (loss.Plan, error) {
	p := loss.Plan{Holds: s.holds, Rounds: s.rounds, Log: os.Stderr}
	what, err := regexp.Compile(s.what)
	if err != nil {
		return p, err
	}
	who, err := regexp.Compile(s.who)
	if err != nil {
		return p, err
	}
	for _, w := range loss.Ways() {
		if what.MatchString(w.Name) {
			p.Ways = append(p.Ways, w)
		}
	}
	for _, c := range loss.Clients() {
		if who.MatchString(c.Name) {
			p.Clients = append(p.Clients, c)
		}
	}
	for text := range strings.SplitSeq(s.leases, ",") {
		lease, err := time.ParseDuration(text)
		if err != nil {
			return p, err
		}
		p.Leases = append(p.Leases, lease)
	}
	if len(p.Ways) == 0 || len(p.Clients) == 0 {
		return p, fmt.Errorf("no way matches %q, or no client %q", s.what, s.who)
	}
	return p, nil
}

// write writes the figures and the tables.
func (s lossFlags) write(env report.Environment, outcomes []loss.Outcome, markdown string) error {
	if s.out == "" {
		return nil
	}
	//nolint:gosec // not secret
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return err
	}
	data, err := json.Marshal(struct {
		Environment report.Environment `json:"environment"`
		Note        string             `json:"note"`
		Outcomes    []loss.Outcome     `json:"outcomes"`
	}{env, s.note, outcomes})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"loss.json":      append(data, '\n'),
		"loss-tables.md": []byte(markdown),
	} {
		//nolint:gosec // not secret
		if err := os.WriteFile(filepath.Join(s.out, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
