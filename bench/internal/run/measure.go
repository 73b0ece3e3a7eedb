package run

import (
	"errors"
	"math"
	"time"

	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/stats"
	"github.com/redlatch/redlatch/bench/internal/work"
)

// party is a worker in a measurement and what it is asked for.
type party struct {
	*session
	entrant Entrant
	spec    work.Spec
}

// target is what clients connect to: a server, or a cluster of them.
type target interface {
	Clear() error
	Info() (host.Info, error)
}

// measure lets all parties work at once and returns what each measured, and what the
// server did meanwhile.
func measure(server target, parties []party) ([]work.Values, host.Work, error) {
	if err := server.Clear(); err != nil {
		return nil, host.Work{}, err
	}
	if err := each(parties, func(p party) error { return p.tell(p.spec) }); err != nil {
		return nil, host.Work{}, err
	}
	if _, err := gather(parties, work.EventReady); err != nil {
		return nil, host.Work{}, err
	}
	before, err := server.Info()
	if err == nil {
		err = each(parties, func(p party) error { return p.tell("go") })
	}
	if err != nil {
		return nil, host.Work{}, err
	}
	values, err := gather(parties, work.EventMeasured)
	if err != nil {
		return nil, host.Work{}, err
	}
	after, err := server.Info()
	if err == nil {
		err = each(parties, func(p party) error { return p.tell("stop") })
	}
	if err == nil {
		_, err = gather(parties, work.EventDone)
	}
	return values, after.Since(before, sends(parties)), err
}

// sends returns the commands that any of the parties sends.
func sends(parties []party) []string {
	seen := map[string]bool{}
	var all []string
	for _, p := range parties {
		for _, name := range p.entrant.Contestant.Sends {
			if !seen[name] {
				seen[name] = true
				all = append(all, name)
			}
		}
	}
	return all
}

func each(parties []party, do func(party) error) error {
	var errs []error
	for _, p := range parties {
		errs = append(errs, do(p))
	}
	return errors.Join(errs...)
}

// gather awaits one event of each party.
func gather(parties []party, event string) ([]work.Values, error) {
	values := make([]work.Values, len(parties))
	var errs []error
	for i, p := range parties {
		e, err := p.await(event, time.Duration(p.spec.Warmup+p.spec.Duration)*time.Millisecond)
		values[i] = e.Values
		errs = append(errs, err)
	}
	return values, errors.Join(errs...)
}

// combine makes one set of figures of what several processes measured, and adds the
// server's.
func combine(parties []party, all []work.Values, w host.Work) work.Values {
	v := all[0]
	if len(all) > 1 {
		v = together(parties, all)
	}
	seconds := w.Lasted.Seconds()
	if r, ok := v[work.Rate]; ok {
		// Asked at other moments than the workers counted, so rate against rate.
		count := r * seconds
		v[Busy] = micros(w.Busy) / count
		v[Requests] = w.Requests / count
		v[RedisCPU] = micros(w.CPU) / count
	}
	v[RequestRate] = w.Requests / seconds
	v[RedisLoad] = 100 * w.CPU.Seconds() / seconds
	for name, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			delete(v, name) // nothing was counted: there is no such figure
		}
	}
	return v
}

// together adds processes up: rates are summed, the middle of the middles and the
// worst of the rest are taken.
func together(parties []party, all []work.Values) work.Values {
	v := work.Values{}
	var ours float64
	var counts, middles []float64
	for i, x := range all {
		v[work.Count] += x[work.Count]
		v[work.Rate] += x[work.Rate]
		if parties[i].entrant.Contestant.Role == "own" {
			ours += x[work.Count]
		}
		v[work.P99] = max(v[work.P99], x[work.P99])
		v[work.Longest] = max(v[work.Longest], x[work.Longest])
		counts, middles = append(counts, x[work.Count]), append(middles, x[work.P50])
	}
	v[work.P50] = stats.Median(middles)
	s := stats.Summarize(counts)
	v[Most], v[Least] = 100*s.Max/v[work.Count], 100*s.Min/v[work.Count]
	v[Ours] = 100 * ours / v[work.Count]
	return v
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
