// Package run runs the benchmark. In each round, it measures every contestant once.
package run

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/work"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

const jvmWarmup = 8 * time.Second

// Entrant is a contestant together with the command that runs it.
type Entrant struct {
	Label      string
	Contestant contest.Contestant
	Command    []string
}

// Sample is the result of one entrant in one round.
type Sample struct {
	Run     int         `json:"run"` // set by the caller
	Case    string      `json:"case"`
	Level   int         `json:"level"`
	Round   int         `json:"round"`
	Entrant string      `json:"entrant"`
	Values  work.Values `json:"values,omitempty"`
	Error   string      `json:"error,omitempty"`
	// Stolen is the fraction of CPU time that the host stole.
	Stolen float64 `json:"stolen,omitempty"`
	// Disturbed reports whether Stolen exceeded Runner.Allowed.
	Disturbed bool `json:"disturbed,omitempty"`
	Again     int  `json:"again,omitempty"`
}

const mostAgain = 8

// Runner runs cases. Its fields must not be changed after the first call to Run.
type Runner struct {
	// Entrants are measured in this order. Mixed cases need an entrant called redisson.
	Entrants []Entrant
	Rounds   int
	// Scale multiplies the time of each measurement; 0 means 1. Cases with limited rounds are not
	// shortened.
	Scale float64
	// Swap reverses the order in every other round.
	Swap bool
	// Allowed is the fraction of CPU time that the host may steal. Disturbed measurements are
	// repeated for up to Patience in total.
	Allowed  float64
	Patience time.Duration
	// Profiles is the directory for profiles of Go workers, or "".
	Profiles string
	Log      io.Writer

	launcher *host.Launcher
	addr     string
	kept     map[string]*session
	runs     int
}

// Run runs one case and returns its samples. If a measurement fails, its sample contains the error.
func (r *Runner) Run(c Case) ([]Sample, error) {
	if c.Mixed && r.mate() < 0 {
		r.say("%s: skipped without Redisson\n", c.ID)
		return nil, nil
	}
	if !c.Place.Possible() {
		r.say("%s: cannot separate client and server CPUs on this machine\n", c.ID)
		return nil, nil
	}
	r.launcher = host.NewLauncher()
	defer r.launcher.Close()
	var samples []Sample
	err := redistest.Perform(func(tb testing.TB) {
		tb.Helper()
		r.measureAll(tb, c, func(s Sample) { samples = append(samples, s) })
	})
	return samples, err
}

func (r *Runner) mate() int {
	return slices.IndexFunc(r.Entrants, func(e Entrant) bool { return e.Label == "redisson" })
}

func (r *Runner) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Log, format, args...)
}

func (r *Runner) measureAll(tb testing.TB, c Case, add func(Sample)) {
	tb.Helper()
	server := host.StartServer(tb, c.Place)
	r.addr = server.Addr()
	if c.RoundTrip > 0 {
		link, err := host.StartLink(server.Addr(), c.RoundTrip)
		if err != nil {
			tb.Fatalf("link: %v", err)
		}
		defer link.Stop()
		r.addr = link.Addr()
	}
	r.kept = map[string]*session{}
	defer func() {
		for _, s := range r.kept {
			s.close()
		}
	}()
	rounds := r.Rounds
	if c.Rounds > 0 {
		rounds = min(rounds, c.Rounds)
	}
	for _, level := range c.Levels {
		for round := range rounds {
			for _, e := range r.order(round) {
				if !c.fits(e.Contestant, level) {
					continue
				}
				s := Sample{Case: c.ID, Level: level, Round: round + 1, Entrant: e.Label}
				add(r.patiently(tb, s, c, e, server))
			}
		}
	}
}

func (r *Runner) order(round int) []Entrant {
	order := slices.Clone(r.Entrants)
	if r.Swap && round%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

// A watchdog holds many locks with few threads, so the limit on threads does not apply to it.
func (c Case) fits(who contest.Contestant, level int) bool {
	most := who.Most
	if c.spec.Kind == work.Watchdog {
		most = 0
	}
	return c.Fits(who) && (most == 0 || level <= most)
}

func (r *Runner) patiently(tb testing.TB, blank Sample, c Case, e Entrant, server host.Server) Sample {
	tb.Helper()
	for {
		s, began := blank, time.Now()
		r.sample(tb, &s, c, e, server)
		if !s.Disturbed || s.Again == mostAgain || r.Patience <= 0 {
			return s
		}
		r.say("the host used %.0f %% of the CPU time: repeating\n", 100*s.Stolen)
		r.Patience -= time.Since(began)
		blank.Again++
	}
}

func (r *Runner) sample(tb testing.TB, s *Sample, c Case, e Entrant, server host.Server) {
	tb.Helper()
	r.runs++
	parties, err := r.parties(c, e)
	if err == nil {
		for i := range parties {
			parties[i].spec = r.spec(c, parties[i], s.Level)
			parties[i].spec.Profile = r.profile(*s, parties[i], i)
		}
		var all []work.Values
		var w host.Work
		if all, w, err = measure(tb, server, parties); err == nil {
			s.Stolen, s.Disturbed = w.Stolen, w.Stolen > r.Allowed
			s.Values = combine(parties, all, w)
		}
	}
	r.part(parties, err)
	if err != nil {
		s.Error = err.Error()
		r.say("%s %s %s %d round %d: %v\n", c.ID, c.Place, e.Label, s.Level, s.Round, err)
		return
	}
	r.say("%s %s %s %d round %d: %s\n", c.ID, c.Place, e.Label, s.Level, s.Round,
		strconv.FormatFloat(s.Values[c.Figures[0].Name], 'f', 1, 64))
}

func (r *Runner) spec(c Case, p party, level int) work.Spec {
	spec := c.spec
	if r.Scale > 0 && (c.Rounds == 0 || r.Scale > 1) {
		spec.Duration = int64(float64(spec.Duration) * r.Scale)
	}
	spec.Contestant, spec.Addr, spec.Goroutines = p.entrant.Contestant.Name, r.addr, level
	spec.Key = "bench:" + strconv.Itoa(r.runs)
	if p.entrant.Contestant.Java && !p.used {
		spec.Warmup += jvmWarmup.Milliseconds()
	}
	return spec
}

func (r *Runner) profile(s Sample, p party, i int) string {
	if r.Profiles == "" || p.entrant.Contestant.Java {
		return ""
	}
	return filepath.Join(r.Profiles, fmt.Sprintf("%s-%d-%s-%d.%d.pprof", s.Case, s.Level, s.Entrant, s.Round, i))
}

func (r *Runner) parties(c Case, e Entrant) ([]party, error) {
	var parties []party
	n := max(c.Processes, 1)
	for i := range n {
		of := e
		if c.Mixed && i >= n/2 {
			of = r.Entrants[r.mate()]
		}
		s, err := r.session(of, i, c.Place)
		if err != nil {
			return parties, err
		}
		parties = append(parties, party{session: s, entrant: of})
	}
	return parties, nil
}

func (r *Runner) session(e Entrant, i int, place host.Placement) (*session, error) {
	name := e.Label + strconv.Itoa(i)
	if s, ok := r.kept[name]; ok {
		if err := host.Wake(s.cmd.Process); err != nil {
			r.drop(s)
			return nil, err
		}
		return s, nil
	}
	s, err := startSession(r.launcher, e.Command, place.Clients())
	if err == nil && e.Contestant.Java {
		r.kept[name] = s
	}
	return s, err
}

func (r *Runner) part(parties []party, err error) {
	broken := err != nil && (!errors.Is(err, errWork) || len(parties) > 1)
	var kept []party
	for _, p := range parties {
		p.used = p.used || err == nil // a worker that failed may not be warm
		if p.entrant.Contestant.Java && !broken {
			kept = append(kept, p)
			continue
		}
		r.drop(p.session)
	}
	if len(kept) == 0 {
		return
	}
	if !calm(kept, restMost) {
		r.say("%s is still busy after %v; stopping it\n", kept[0].entrant.Label, restMost)
	}
	for _, p := range kept {
		// A worker that keeps running would use the processors of the next clients.
		if err := host.Rest(p.cmd.Process); err != nil {
			r.say("cannot stop %s; terminating it: %v\n", p.entrant.Label, err)
			r.drop(p.session)
		}
	}
}

func (r *Runner) drop(worker *session) {
	worker.close()
	maps.DeleteFunc(r.kept, func(_ string, s *session) bool { return s == worker })
}
