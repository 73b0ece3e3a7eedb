package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/redlatch/redlatch/bench/internal/loss"
	"github.com/redlatch/redlatch/bench/internal/report"
)

type lossFlags struct {
	what, who         regexp.Regexp
	leases, out, note string
	holds, rounds     int
}

func runLoss(args []string) error {
	var s lossFlags
	f := flag.NewFlagSet("bench loss", flag.ContinueOnError)
	f.TextVar(&s.what, "what", everything, "only faults whose name matches this regular expression")
	f.TextVar(&s.who, "who", everything, "only clients whose name matches this regular expression")
	f.StringVar(&s.leases, "leases", "2s,5s,30s", "comma-separated leases")
	f.StringVar(&s.out, "out", "docs/reliability", "output directory; empty to write nothing")
	f.StringVar(&s.note, "note", "", "remark about the machine")
	f.IntVar(&s.holds, "holds", 100, "concurrent holds per client, failure and lease")
	f.IntVar(&s.rounds, "rounds", 2, "number of repetitions")
	if err := f.Parse(args); err != nil {
		return err
	}
	plan, err := s.plan()
	if err != nil {
		return err
	}
	env, err := environment(&settings{rounds: s.rounds, command: "make loss"})
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
	if s.out == "" {
		return failed
	}
	return errors.Join(failed, report.Save(s.out, "loss.json", "loss-tables.md", text, struct {
		Environment report.Environment `json:"environment"`
		Note        string             `json:"note"`
		Outcomes    []loss.Outcome     `json:"outcomes"`
	}{env, s.note, outcomes}))
}

func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

func (s *lossFlags) plan() (loss.Plan, error) {
	p := loss.Plan{Holds: s.holds, Rounds: s.rounds, Log: os.Stderr}
	for _, w := range loss.Ways() {
		if s.what.MatchString(w.Name) {
			p.Ways = append(p.Ways, w)
		}
	}
	for _, c := range loss.Clients() {
		if s.who.MatchString(c.Name) {
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
		return p, fmt.Errorf("no fault matches %q, or no client matches %q", s.what.String(), s.who.String())
	}
	return p, nil
}
