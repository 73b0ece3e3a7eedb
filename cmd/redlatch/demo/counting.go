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
	// afterwards is how long they go on at least after the take-over.
	afterwards = time.Second
)

// counting is the demo of the plain lock.
type counting struct {
	tally   *tally
	book    *book
	team    *team
	common  *workerConfig
	until   time.Duration
	ordered int // the worker that was told to stall, 0 before
}

func newCounting(c redis.Conn, common *workerConfig, r *run) *counting {
	return &counting{
		tally: newTally(r.began, common.Lease, counters), book: newBook(c, common.Prefix, 0), team: r.team,
		common: common, until: r.opts.Duration,
	}
}

func (p *counting) prepare() ([]workerConfig, error) {
	var all []workerConfig
	for _, c := range p.tally.workers {
		cfg := *p.common
		cfg.ID = c.id
		all = append(all, cfg)
	}
	return all, nil
}

func (p *counting) hired(id, pid int) { p.tally.workers[id-1].pid = pid }

// apply enters a report. The victim is killed when it stands still.
func (p *counting) apply(rep *report) {
	p.tally.apply(rep.id, &rep.event)
	if rep.event.Kind == stalled && rep.id == p.ordered {
		at := time.Now()
		p.team.kill(rep.id)
		p.tally.killed(rep.id, at)
	}
}

// direct chooses the victim when it is time: whoever is inside now. It is told
// to stand still between its next GET and SET, where a death does most harm.
func (p *counting) direct(now time.Time) error {
	t := p.tally
	if p.ordered == 0 && t.last != nil && t.readyAll() && now.Sub(t.began) >= p.until*2/5 {
		p.ordered = t.last.id
		p.team.stall(p.ordered)
	}
	return nil
}

func (p *counting) over(now time.Time) bool {
	t := p.tally
	ran := now.Sub(t.began)
	if t.heir == nil {
		return ran >= p.until+patience
	}
	return ran >= p.until && now.Sub(t.heirAt) >= afterwards
}

func (p *counting) failure() string { return p.tally.failure() }

func (p *counting) headline() string { return "redlatch demo: 4 processes, one lock" }

func (p *counting) titles() []string {
	return []string{"lock    " + p.book.keys.lock + ", leases of " + short(p.common.Lease) + ", renewed"}
}

func (p *counting) picture(v *view, now time.Time) []string {
	t := p.tally
	v.sample(t.workers)
	clock := fmt.Sprintf("%.1f s", now.Sub(t.began).Seconds())
	if now.Sub(t.began) <= p.until {
		clock += " of " + short(p.until)
	}
	return v.lines(&picture{
		clock: clock, unit: "ROUNDS", workers: t.workers, orphaned: t.heir == nil,
		below: []string{p.totals(v, now)}, news: t.news,
	}, now)
}

// totals draws the line below the table.
func (p *counting) totals(v *view, now time.Time) string {
	t := p.tally
	rate := float64(t.handOvers) / max(now.Sub(t.began).Seconds(), 0.1)
	return fmt.Sprintf("  rounds %-7d hand-overs %-7s two inside %s",
		t.rounds(), fmt.Sprintf("%d (%.0f/s)", t.handOvers, rate), v.safe(t.violations()))
}

func (p *counting) news() []string { return p.tally.news }

func (p *counting) progress(now time.Time) string { return p.tally.progress(now) }

func (p *counting) judge(took time.Duration, cut bool) (summary, wrong []string, err error) {
	counter, journal, err := p.book.totals()
	if err != nil {
		return nil, nil, err
	}
	res := &result{took: took, counter: counter, wrong: p.tally.audit(counter, journal)}
	if !cut && p.tally.heir == nil {
		res.wrong = append(res.wrong, fmt.Sprintf("nobody got the lock within %v of the kill", patience))
	}
	return p.tally.summary(res), res.wrong, nil
}

func (p *counting) remove() error { return p.book.remove() }

// join makes a list for people.
func join(ids []string) string {
	if len(ids) == 0 {
		return "none"
	}
	return strings.Join(ids, " ")
}
