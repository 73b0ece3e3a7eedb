// Package run carries a benchmark out: which contestants do which work, in turn, and
// what came of each round.
package run

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/work"
)

// jvmWarmup is how long a JVM works before its first figure counts.
const jvmWarmup = 8 * time.Second

// Entrant is a contestant of a run: a program that does its work.
type Entrant struct {
	// Label is what tables call it.
	Label string
	// Contestant is what the program is asked for.
	Contestant contest.Contestant
	// Command starts a worker.
	Command []string
}

// Sample is what one entrant did in one round.
type Sample struct {
	// Case and Place are where it belongs, Level its size, Round counts from 1.
	Case  string         `json:"case"`
	Place host.Placement `json:"place"`
	Level int            `json:"level"`
	Round int            `json:"round"`
	// Entrant is the label of the client that was measured.
	Entrant string `json:"entrant"`
	// Values are the figures. Missing ones could not be had.
	Values work.Values `json:"values,omitempty"`
	// Error says why there are none.
	Error string `json:"error,omitempty"`
	// Stolen is which share of the processors' time the host had meanwhile.
	Stolen float64 `json:"stolen,omitempty"`
	// Disturbed says that this was more than the run allows.
	Disturbed bool `json:"disturbed,omitempty"`
	// Again is how often it was measured before, and thrown away for that reason.
	Again int `json:"again,omitempty"`
}

// mostAgain is how often something is measured again at most.
const mostAgain = 8

// Runner carries cases out. Its fields are set before its first use.
type Runner struct {
	// Entrants take turns in this order. The one called redisson takes the other half of a mixed
	// case, which is left out without it.
	Entrants []Entrant
	// Rounds is how many rounds there are.
	Rounds int
	// Scale multiplies the time of each measurement; 0 means 1. Cases with few rounds,
	// in which little happens, do not become shorter.
	Scale float64
	// Swap lets them take turns backwards in every other round, so that neither of two
	// always comes after the same.
	Swap bool
	// Allowed is which share of the processors' time the machine's host may have during a
	// measurement that is not disturbed. Patience is how long the run may become by
	// measuring again what is; after that it stands, and is marked.
	Allowed  float64
	Patience time.Duration
	// Profiles is the folder for profiles of Go workers; none are made if it is empty.
	Profiles string
	// Log gets progress lines.
	Log io.Writer

	launcher *host.Launcher
	addr     string        // where clients connect to the server
	cluster  *host.Cluster // of the case that compares one with the server
	kept     map[string]*session
	runs     int
}

// Run carries one case out and returns its samples. What goes wrong in one
// measurement is part of the sample; an error is returned when there is no going on.
func (r *Runner) Run(c Case) ([]Sample, error) {
	if c.Mixed && r.mate() < 0 {
		r.say("%s: left out, there is no Redisson\n", c.ID)
		return nil, nil
	}
	r.launcher = host.NewLauncher()
	defer r.launcher.Close()
	var samples []Sample
	for _, place := range c.Places {
		if !place.Possible() {
			r.say("%s: client and server cannot be kept apart here\n", c.ID)
			continue
		}
		s, err := r.place(c, place)
		samples = append(samples, s...)
		if err != nil {
			return samples, err
		}
	}
	return samples, nil
}

// mate returns the index of the client that takes the other half of a mixed case, below 0 without
// one. It must be the plain lock's: other locks of Redisson have other keys.
func (r *Runner) mate() int {
	return slices.IndexFunc(r.Entrants, func(e Entrant) bool { return e.Label == "redisson" })
}

// say writes to the log, whose errors are ignored.
func (r *Runner) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Log, format, args...)
}

// place carries a case out with client and server in one placement.
func (r *Runner) place(c Case, place host.Placement) ([]Sample, error) {
	server, err := host.StartServer(r.launcher, place.Server())
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	r.addr = server.Addr()
	if r.cluster = nil; c.Masters > 0 {
		if r.cluster, err = host.StartCluster(r.launcher, place.Server(), c.Masters); err != nil {
			return nil, err
		}
		defer r.cluster.Stop()
	}
	if c.RoundTrip > 0 {
		link, err := host.StartLink(server.Addr(), c.RoundTrip)
		if err != nil {
			return nil, err
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
	var samples []Sample
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
				s := Sample{Case: c.ID, Place: place, Level: level, Round: round + 1, Entrant: e.Label}
				samples = append(samples, r.patiently(s, c, e, server))
			}
		}
	}
	return samples, nil
}

// order returns the entrants in the order of a round.
func (r *Runner) order(round int) []Entrant {
	order := slices.Clone(r.Entrants)
	if r.Swap && round%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

// fits reports whether a contestant can do a case at a size. What bounds it is its
// threads, and a watchdog holds locks without.
func (c Case) fits(who contest.Contestant, level int) bool {
	most := who.Most
	if c.spec.Kind == work.Watchdog {
		most = 0
	}
	return c.Fits(who) && (most == 0 || level <= most)
}

// patiently measures what e does, and again while the host disturbs it.
func (r *Runner) patiently(blank Sample, c Case, e Entrant, server target) Sample {
	if e.Contestant.Kind == contest.Cluster {
		server = r.cluster
	}
	for {
		s, began := blank, time.Now()
		r.sample(&s, c, e, server)
		if !s.Disturbed || s.Again == mostAgain || r.Patience <= 0 {
			return s
		}
		r.say("the host had %.0f %% of the processors' time: once more\n", 100*s.Stolen)
		r.Patience -= time.Since(began)
		blank.Again++
	}
}

// sample fills s with what e does.
func (r *Runner) sample(s *Sample, c Case, e Entrant, server target) {
	r.runs++
	parties, err := r.parties(c, e, s.Place)
	if err == nil {
		for i := range parties {
			parties[i].spec = r.spec(c, parties[i], s.Level)
			parties[i].spec.Profile = r.profile(*s, parties[i], i)
		}
		var all []work.Values
		var w host.Work
		if all, w, err = measure(server, parties); err == nil {
			s.Stolen, s.Disturbed = w.Stolen, w.Stolen > r.Allowed
			s.Values = combine(parties, all, w)
		}
	}
	r.part(parties, err)
	if err != nil {
		s.Error = err.Error()
		r.say("%s %s %s %d round %d: %v\n", c.ID, s.Place, e.Label, s.Level, s.Round, err)
		return
	}
	r.say("%s %s %s %d round %d: %s\n", c.ID, s.Place, e.Label, s.Level, s.Round,
		strconv.FormatFloat(s.Values[c.Figures[0].Name], 'f', 1, 64))
}

// spec returns what a party is asked for.
func (r *Runner) spec(c Case, p party, level int) work.Spec {
	spec := c.spec
	if r.Scale > 0 && (c.Rounds == 0 || r.Scale > 1) {
		spec.Duration = int64(float64(spec.Duration) * r.Scale)
	}
	spec.Contestant, spec.Addr, spec.Goroutines = p.entrant.Contestant.Name, r.addr, level
	if p.entrant.Contestant.Kind == contest.Cluster {
		spec.Addr = r.cluster.Addr()
	}
	spec.Key = "bench:" + strconv.Itoa(r.runs)
	if p.entrant.Contestant.Java && !p.used {
		spec.Warmup += jvmWarmup.Milliseconds()
	}
	return spec
}

// profile returns where the i-th party of a measurement leaves its profile.
func (r *Runner) profile(s Sample, p party, i int) string {
	if r.Profiles == "" || p.entrant.Contestant.Java {
		return ""
	}
	return filepath.Join(r.Profiles, fmt.Sprintf("%s-%s-%d-%s-%d.%d.pprof", s.Case, s.Place, s.Level, s.Entrant, s.Round, i))
}

// parties returns the workers of a measurement: new ones, but JVMs are kept.
func (r *Runner) parties(c Case, e Entrant, place host.Placement) ([]party, error) {
	var parties []party
	n := max(c.Processes, 1)
	for i := range n {
		of := e
		if c.Mixed && i >= n/2 {
			of = r.Entrants[r.mate()]
		}
		s, err := r.session(of, i, place)
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

// part ends the workers of a measurement. Those that are kept rest, and end only if it
// went wrong in a way that leaves them in an unknown state.
func (r *Runner) part(parties []party, err error) {
	broken := err != nil && (!errors.Is(err, errWork) || len(parties) > 1)
	var kept []party
	for _, p := range parties {
		p.used = p.used || err == nil // one that failed may not be warm yet
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
		r.say("%s is still busy after %v, and is stopped\n", kept[0].entrant.Label, restMost)
	}
	for _, p := range kept {
		// Or it would go on on the processors of the clients whose turn it is then.
		if err := host.Rest(p.cmd.Process); err != nil {
			r.say("%s cannot be stopped, and is ended: %v\n", p.entrant.Label, err)
			r.drop(p.session)
		}
	}
}

// drop ends a worker for good.
func (r *Runner) drop(worker *session) {
	worker.close()
	maps.DeleteFunc(r.kept, func(_ string, s *session) bool { return s == worker })
}
