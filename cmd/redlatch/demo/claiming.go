package demo

import (
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/tool/output"
)

const (
	// crews is how many processes claim jobs, handsOf how many workers each has.
	crews   = 3
	handsOf = 8
	// fairWait is how long the server keeps a place of somebody who may be dead. In
	// real life it is minutes; the demo waits for several of them.
	fairWait = 2500 * time.Millisecond
	// deadline bounds the run.
	deadline = 45 * time.Second
)

// claiming is the demo of the fair lock.
type claiming struct {
	ledger  *ledger
	shelf   *shelf
	team    *team
	common  *workerConfig
	jobs    int
	ordered int      // the process that was told to stall, 0 before
	line    []string // the queue when it was last looked at
}

func newClaiming(c redis.Conn, common *workerConfig, r *run) *claiming {
	return &claiming{
		ledger: newLedger(r.began, crews), shelf: newShelf(c, common.Prefix), team: r.team,
		common: common, jobs: r.opts.Jobs,
	}
}

func (p *claiming) prepare() ([]workerConfig, error) {
	if err := p.shelf.fill(p.jobs); err != nil {
		return nil, err
	}
	var all []workerConfig
	for _, c := range p.ledger.crews {
		cfg := *p.common
		cfg.ID, cfg.Hands, cfg.FairWait = c.id, handsOf, fairWait
		all = append(all, cfg)
	}
	return all, nil
}

func (p *claiming) hired(id, pid int) { p.ledger.crews[id-1].pid = pid }

// apply enters a report. The victim is killed when one of its workers stands still
// inside and others are queued.
func (p *claiming) apply(rep *report) {
	p.ledger.apply(rep.id, &rep.event)
	if rep.event.Kind == stalled && rep.id == p.ordered {
		at := time.Now()
		p.team.kill(rep.id)
		p.ledger.killed(rep.id, rep.event.Owner, at)
	}
}

// direct looks at the queue, and chooses the victim when two jobs in five are done.
func (p *claiming) direct(now time.Time) (err error) {
	if p.line, err = p.shelf.line(); err != nil {
		return err
	}
	l := p.ledger
	l.saw(p.line, now)
	if p.ordered == 0 && l.last != nil && l.readyAll() && int(l.jobs()) >= p.jobs*2/5 {
		p.ordered = l.last.id
		p.team.stall(p.ordered)
	}
	return nil
}

// over does not wait for workers that are busy elsewhere when the jobs are done.
func (p *claiming) over(now time.Time) bool {
	l := p.ledger
	seen := int(l.jobs()) >= p.jobs && !l.clearAt.IsZero()
	return seen || l.allGone() || now.Sub(l.began) >= deadline
}

func (p *claiming) failure() string { return p.ledger.failure() }

func (p *claiming) headline() string {
	return fmt.Sprintf("redlatch demo: %d jobs, %d processes with %d workers each", p.jobs, crews, handsOf)
}

func (p *claiming) titles() []string {
	return []string{
		"lock    " + p.shelf.lock + ", fair",
		fmt.Sprintf("        leases of %s, renewed; a place in the queue is kept for %s", short(p.common.Lease), short(fairWait)),
	}
}

func (p *claiming) picture(v *view, now time.Time) []string {
	l := p.ledger
	v.sample(l.crews)
	return v.lines(&picture{
		clock: fmt.Sprintf("%d of %d   %.1f s", l.jobs(), p.jobs, now.Sub(l.began).Seconds()),
		unit:  "JOBS", workers: l.crews, orphaned: l.heir == nil,
		below: []string{"  queue  " + p.queue(v), p.totals(v, now)},
		news:  l.news,
	}, now)
}

// queue draws the queue: the process of each who waits, the next one first.
func (p *claiming) queue(v *view) string {
	var marks []string
	for _, owner := range p.line {
		switch c := p.ledger.crewOf(owner); {
		case c == nil:
			marks = append(marks, "?")
		case c.state == dead:
			marks = append(marks, v.look.Paint(output.Red, fmt.Sprintf("%s%d", v.glyph(dead), c.id)))
		default:
			marks = append(marks, v.look.Paint(output.Yellow, fmt.Sprint(c.id)))
		}
	}
	return join(marks)
}

// totals draws the line below the queue.
func (p *claiming) totals(v *view, now time.Time) string {
	inverted, _ := p.ledger.inversions()
	rate := float64(p.ledger.handOvers) / max(now.Sub(p.ledger.began).Seconds(), 0.1)
	return fmt.Sprintf("  hand-overs %-12s inversions %-4d two inside %s",
		fmt.Sprintf("%d (%.0f/s)", p.ledger.handOvers, rate), inverted, v.safe(p.ledger.met.count()))
}

func (p *claiming) news() []string { return p.ledger.news }

// progress is the line that plain output gets once a second.
func (p *claiming) progress(now time.Time) string {
	dead := ""
	if n := p.ledger.deadIn(p.line); n > 0 {
		dead = fmt.Sprintf(" (%d dead)", n)
	}
	return fmt.Sprintf("%6.2f s  jobs %-4d  holder %-6s  queued %-12s wait p50 %s, p99 %s",
		now.Sub(p.ledger.began).Seconds(), p.ledger.jobs(), p.ledger.holderName(),
		fmt.Sprint(len(p.line))+dead,
		millis(percentile(p.ledger.ordinaryWaits(), 50)), millis(percentile(p.ledger.ordinaryWaits(), 99)))
}

func (p *claiming) judge(took time.Duration, cut bool) (summary, wrong []string, err error) {
	done, left, err := p.shelf.totals()
	if err != nil {
		return nil, nil, err
	}
	res := &harvest{took: took, jobs: p.jobs, done: done, left: left, cut: cut}
	wrong = p.ledger.audit(res)
	summary = p.ledger.summary(res)
	if len(wrong) == 0 {
		summary = append(summary, "OK: every job was done once, nobody was ever inside with somebody else,",
			"    and nobody alive was overtaken.")
	}
	return summary, wrong, nil
}

func (p *claiming) remove() error { return p.shelf.remove() }
