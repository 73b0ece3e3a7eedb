package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// counters is how many processes count.
	counters = 4
	// minAfterTakeOver is how long they go on at least after the take-over.
	minAfterTakeOver = time.Second
)

// counting is the demo of the plain lock.
type counting struct {
	audit     *counterAudit
	state     *counterState
	processes *processGroup
	common    *workerConfig
	until     time.Duration
	ordered   int // the worker that was made to stall, 0 before
}

func newCounting(c redis.Conn, common *workerConfig, r *run) *counting {
	return &counting{
		audit: newCounterAudit(r.began, common.Lease, counters), state: newCounterState(c, common.Prefix, 0), processes: r.processes,
		common: common, until: r.opts.Duration,
	}
}

func (p *counting) prepare() ([]workerConfig, error) {
	var all []workerConfig
	for _, c := range p.audit.workers {
		cfg := *p.common
		cfg.ID = c.id
		all = append(all, cfg)
	}
	return all, nil
}

func (p *counting) started(id, pid int) { p.audit.workers[id-1].pid = pid }

// apply records a report. The victim is killed when it has stalled.
func (p *counting) apply(rep *report) {
	p.audit.apply(rep.id, &rep.event)
	if rep.event.Kind == stalled && rep.id == p.ordered {
		at := time.Now()
		p.processes.kill(rep.id)
		p.audit.killed(rep.id, at)
	}
}

// step chooses the victim when it is time: the worker that has the lock. It is ordered to
// stall between its next GET and SET, where a death does most harm.
func (p *counting) step(now time.Time) error {
	a := p.audit
	if p.ordered == 0 && a.last != nil && a.readyAll() && now.Sub(a.began) >= p.until*2/5 {
		p.ordered = a.last.id
		p.processes.stall(p.ordered)
	}
	return nil
}

func (p *counting) over(now time.Time) bool {
	a := p.audit
	ran := now.Sub(a.began)
	if a.successor == nil {
		return ran >= p.until+overrun
	}
	return ran >= p.until && now.Sub(a.successorAt) >= minAfterTakeOver
}

func (p *counting) failure() string { return p.audit.failure() }

func (p *counting) headline() string { return "redlatch demo: 4 processes, one lock" }

func (p *counting) titles() []string {
	return []string{"lock    " + p.state.keys.lock + ", leases of " + short(p.common.Lease) + ", renewed"}
}

func (p *counting) picture(v *view, now time.Time) []string {
	a := p.audit
	v.sample(a.workers)
	clock := fmt.Sprintf("%.1f s", now.Sub(a.began).Seconds())
	if now.Sub(a.began) <= p.until {
		clock += " of " + short(p.until)
	}
	return v.lines(&picture{
		clock: clock, unit: "ROUNDS", workers: a.workers, noSuccessor: a.successor == nil,
		below: []string{p.totals(v, now)}, messages: a.messages,
	}, now)
}

// totals draws the line below the table.
func (p *counting) totals(v *view, now time.Time) string {
	a := p.audit
	rate := float64(a.handOvers) / max(now.Sub(a.began).Seconds(), 0.1)
	return fmt.Sprintf("  rounds %-7d hand-overs %-7s two inside %s",
		a.rounds(), fmt.Sprintf("%d (%.0f/s)", a.handOvers, rate), v.countText(a.violations()))
}

func (p *counting) messages() []string { return p.audit.messages }

func (p *counting) progress(now time.Time) string { return p.audit.progress(now) }

func (p *counting) judge(took time.Duration, cut bool) (summary, wrong []string, err error) {
	counter, journal, err := p.state.totals()
	if err != nil {
		return nil, nil, err
	}
	res := &result{took: took, counter: counter, wrong: p.audit.check(counter, journal)}
	if !cut && p.audit.successor == nil {
		res.wrong = append(res.wrong, fmt.Sprintf("no worker got the lock within %v of the kill", overrun))
	}
	return p.audit.summary(res), res.wrong, nil
}

func (p *counting) remove() error { return p.state.remove() }

// join makes a list for people.
func join(ids []string) string {
	if len(ids) == 0 {
		return "none"
	}
	return strings.Join(ids, " ")
}
