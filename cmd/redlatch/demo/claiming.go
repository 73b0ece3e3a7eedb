package demo

import (
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/tool/output"
)

const (
	// processes is how many processes claim jobs, handsOf how many workers each has.
	processes   = 3
	workersEach = 8
	// fairWait is how long the server keeps the place of a waiter that may be dead. In real
	// life it is minutes; the demo waits for several of them. With a lease it is three seconds
	// longer than the time before a waiter's first heartbeat: on a loaded machine that is late.
	fairWait = 5 * time.Second
	// deadline bounds the run.
	deadline = 45 * time.Second
)

// claiming is the demo of the fair lock.
type claiming struct {
	audit     *jobAudit
	state     *jobState
	processes *processGroup
	common    *workerConfig
	jobs      int
	ordered   int      // the process that was made to stall, 0 before
	queue     []string // the queue when it was last looked at
}

func newClaiming(c redis.Conn, common *workerConfig, r *run) *claiming {
	return &claiming{
		audit: newJobAudit(r.began, processes), state: newJobState(c, common.Prefix), processes: r.processes,
		common: common, jobs: r.opts.Jobs,
	}
}

func (p *claiming) prepare() ([]workerConfig, error) {
	if err := p.state.fill(p.jobs); err != nil {
		return nil, err
	}
	var all []workerConfig
	for _, c := range p.audit.processes {
		cfg := *p.common
		cfg.ID, cfg.Workers, cfg.FairWait = c.id, workersEach, fairWait
		all = append(all, cfg)
	}
	return all, nil
}

func (p *claiming) started(id, pid int) { p.audit.processes[id-1].pid = pid }

// apply records a report. The victim is killed when one of its workers has stalled with the
// lock and others are queued.
func (p *claiming) apply(rep *report) {
	p.audit.apply(rep.id, &rep.event)
	if rep.event.Kind == stalled && rep.id == p.ordered {
		at := time.Now()
		p.processes.kill(rep.id)
		p.audit.killed(rep.id, rep.event.Owner, at)
	}
}

// step looks at the queue, and chooses the victim when two jobs in five are done.
func (p *claiming) step(now time.Time) (err error) {
	if p.queue, err = p.state.readQueue(); err != nil {
		return err
	}
	a := p.audit
	a.sawQueue(p.queue, now)
	if p.ordered == 0 && a.last != nil && a.readyAll() && int(a.jobs()) >= p.jobs*2/5 {
		p.ordered = a.last.id
		p.processes.stall(p.ordered)
	}
	return nil
}

// over does not wait for workers that are busy elsewhere when the jobs are done.
func (p *claiming) over(now time.Time) bool {
	a := p.audit
	seen := int(a.jobs()) >= p.jobs && !a.deadGoneAt.IsZero()
	return seen || a.allGone() || now.Sub(a.began) >= deadline
}

func (p *claiming) failure() string { return p.audit.failure() }

func (p *claiming) headline() string {
	return fmt.Sprintf("redlatch demo: %d jobs, %d processes with %d workers each", p.jobs, processes, workersEach)
}

func (p *claiming) titles() []string {
	return []string{
		"lock    " + p.state.lock + ", fair",
		fmt.Sprintf("        leases of %s, renewed; a place in the queue is kept for %s", short(p.common.Lease), short(fairWait)),
	}
}

func (p *claiming) picture(v *view, now time.Time) []string {
	a := p.audit
	v.sample(a.processes)
	return v.lines(&picture{
		clock: fmt.Sprintf("%d of %d   %.1f s", a.jobs(), p.jobs, now.Sub(a.began).Seconds()),
		unit:  "JOBS", workers: a.processes, noSuccessor: a.successor == nil,
		below:    []string{"  queue  " + p.drawQueue(v), p.totals(v, now)},
		messages: a.messages,
	}, now)
}

// drawQueue draws the queue as the process of each waiter, the next one first.
func (p *claiming) drawQueue(v *view) string {
	var marks []string
	for _, owner := range p.queue {
		switch c := p.audit.processOf(owner); {
		case c == nil:
			marks = append(marks, "?")
		case c.activity == dead:
			marks = append(marks, v.look.Paint(output.Red, fmt.Sprintf("%s%d", v.glyph(dead), c.id)))
		default:
			marks = append(marks, v.look.Paint(output.Yellow, fmt.Sprint(c.id)))
		}
	}
	return join(marks)
}

// totals draws the line below the queue.
func (p *claiming) totals(v *view, now time.Time) string {
	inverted, _ := p.audit.inversions()
	rate := float64(p.audit.handOvers) / max(now.Sub(p.audit.began).Seconds(), 0.1)
	return fmt.Sprintf("  hand-overs %-12s inversions %-4d two inside %s",
		fmt.Sprintf("%d (%.0f/s)", p.audit.handOvers, rate), inverted, v.countText(p.audit.collisions.count()))
}

func (p *claiming) messages() []string { return p.audit.messages }

// progress is the line that plain output gets once a second.
func (p *claiming) progress(now time.Time) string {
	dead := ""
	if n := p.audit.deadIn(p.queue); n > 0 {
		dead = fmt.Sprintf(" (%d dead)", n)
	}
	return fmt.Sprintf("%6.2f s  jobs %-4d  holder %-6s  queued %-12s wait p50 %s, p99 %s",
		now.Sub(p.audit.began).Seconds(), p.audit.jobs(), p.audit.holderName(),
		fmt.Sprint(len(p.queue))+dead,
		millis(percentile(p.audit.ordinaryWaits(), 50)), millis(percentile(p.audit.ordinaryWaits(), 99)))
}

func (p *claiming) judge(took time.Duration, cut bool) (summary, wrong []string, err error) {
	done, left, err := p.state.totals()
	if err != nil {
		return nil, nil, err
	}
	res := &jobTotals{took: took, jobs: p.jobs, done: done, left: left, cut: cut}
	wrong = p.audit.check(res)
	summary = p.audit.summary(res)
	if len(wrong) == 0 {
		summary = append(summary, "OK: every job was done once, no two workers held the lock at once,",
			"    and no live worker was overtaken.")
	}
	return summary, wrong, nil
}

func (p *claiming) remove() error { return p.state.remove() }
