package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/report"
	"github.com/redlatch/redlatch/bench/internal/run"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// allowed is the fraction of CPU time that the host may steal during a measurement.
const allowed = 0.03

type settings struct {
	runs, rounds int
	what, who    regexp.Regexp
	out, java    string
	profiles     string
	scale        float64
	patience     time.Duration
	command      string // the make command shown in the results
}

var everything = regexp.MustCompile("")

func flags(args []string) (*settings, error) {
	var s settings
	f := flag.NewFlagSet("bench run", flag.ContinueOnError)
	f.IntVar(&s.runs, "runs", 1, "whole runs, one after another")
	f.IntVar(&s.rounds, "rounds", 3, "rounds of all contestants in each run")
	f.TextVar(&s.what, "what", everything, "only cases whose letter or title matches this regular expression")
	f.TextVar(&s.who, "who", everything, "only contestants whose name matches this regular expression")
	f.StringVar(&s.out, "out", "docs/performance", "output directory")
	f.StringVar(&s.java, "java", "", "class path of the Java contestant; empty to skip it")
	f.StringVar(&s.profiles, "profiles", "", "profile directory for Go contestants; slightly affects their figures")
	f.Float64Var(&s.scale, "scale", 1, "multiplies measurement times; long poll intervals are never shortened")
	f.DurationVar(&s.patience, "patience", 3*time.Minute, "total time for repeating disturbed measurements in each run")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	s.command = fmt.Sprintf("make bench RUNS=%d ROUNDS=%d SCALE=%g", s.runs, s.rounds, s.scale)
	if s.what.String() != "" {
		s.command += fmt.Sprintf(" WHAT='%s'", s.what.String())
	}
	return &s, nil
}

func runAll(args []string) error {
	s, err := flags(args)
	if err != nil {
		return err
	}
	cases, err := chosen(s)
	if err != nil {
		return err
	}
	entrants, err := entrants(s)
	if err != nil {
		return err
	}
	if s.profiles != "" {
		if err := os.MkdirAll(s.profiles, 0o755); err != nil { //nolint:gosec // profiles are not secret
			return err
		}
	}
	env, err := environment(s)
	if err != nil {
		return err
	}
	var samples []run.Sample
	for n := range s.runs {
		r := &run.Runner{
			Entrants: entrants, Rounds: s.rounds, Scale: s.scale, Allowed: allowed, Patience: s.patience,
			Profiles: s.profiles, Log: os.Stderr,
		}
		for _, c := range cases {
			more, err := r.Run(c)
			if err != nil {
				return err
			}
			for _, sample := range more {
				sample.Run = n + 1
				samples = append(samples, sample)
			}
			if err := report.Write(s.out, env, cases, entrants, samples); err != nil {
				return err
			}
		}
	}
	fmt.Print(report.Summary(cases, entrants, samples))
	return report.Failures(entrants, samples)
}

func chosen(s *settings) ([]run.Case, error) {
	var cases []run.Case
	for _, c := range run.Cases() {
		if !s.what.MatchString(c.ID) && !s.what.MatchString(c.Title) {
			continue
		}
		cases = append(cases, c)
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("no case matches %q", s.what.String())
	}
	return cases, nil
}

func entrants(s *settings) ([]run.Entrant, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var all []run.Entrant
	for _, c := range contest.All() {
		e := run.Entrant{Label: c.Name, Contestant: c, Command: []string{self, "worker"}}
		if c.Java {
			if s.java == "" {
				continue
			}
			e.Command = []string{"java", "-Xmx2g", "-Xss256k", "-cp", s.java, "dev.redlatch.bench.Main"}
		}
		if s.who.MatchString(c.Name) {
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no contestant matches %q", s.who.String())
	}
	return all, nil
}

func environment(s *settings) (report.Environment, error) {
	var version string
	err := redistest.Perform(func(tb testing.TB) {
		tb.Helper()
		version = redistest.Start(tb).Version()
	})
	if err != nil {
		return report.Environment{}, err
	}
	java := "skipped: no Java class path"
	if s.java != "" {
		java = redissonJar.FindString(s.java)
	}
	return report.Environment{
		Command: s.command, Date: time.Now(), Revision: revision(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Processors: runtime.NumCPU(), Server: version, Java: java, Runs: s.runs, Rounds: s.rounds, Scale: s.scale,
	}, nil
}

var redissonJar = regexp.MustCompile(`redisson-[0-9.]+[0-9]`)

func revision() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

var errNoBase = errors.New("quick: -base must name another build of this program")

func runQuick(args []string) error {
	f := flag.NewFlagSet("bench quick", flag.ContinueOnError)
	base := f.String("base", "", "bench program of another revision to compare with")
	rounds := f.Int("rounds", 12, "rounds; an even number, so that both go first equally often")
	var what regexp.Regexp
	f.TextVar(&what, "what", everything, "only cases whose letter matches this regular expression")
	least := f.Float64("least", 0, "fail if this build's rate is below this fraction of the base's in any case")
	if err := f.Parse(args); err != nil {
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
		if !what.MatchString(q.ID) {
			continue
		}
		c, err := contest.Find(q.Contestant)
		if err != nil {
			return err
		}
		r := &run.Runner{Rounds: *rounds, Swap: true, Allowed: allowed, Patience: 20 * time.Second, Log: os.Stderr, Entrants: []run.Entrant{
			{Label: "tree", Contestant: c, Command: []string{self, "worker"}},
			{Label: "base", Contestant: c, Command: []string{*base, "worker"}},
		}}
		samples, err := r.Run(q.Case)
		if err != nil {
			return err
		}
		changes = append(changes, report.Changes(q.Case, q.Contestant, samples)...)
	}
	fmt.Print(report.ChangeTable(changes))
	fmt.Print("\n" + report.Verdict(changes))
	return report.Least(changes, *least)
}
