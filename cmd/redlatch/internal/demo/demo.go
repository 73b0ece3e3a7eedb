// Package demo is the command redlatch demo. It shows a lock at work: processes contend for
// it, one of them is killed while it holds it, and the result is checked at the end.
//
//	parent ──stdin: config, "stall", end of file──▶ process 1 …
//	       ◀──stdout: one event a line, as JSON────
//
//	round: lock ─▶ mark, GET counter ─▶ think ─▶ SET counter+1, journal, unmark ─▶ unlock
//
// The read-modify-write is deliberately not atomic: without exclusion, rounds get lost and
// markers collide. Its second half is one script, so a worker that is killed has done all of
// it or nothing, and the counter must equal the length of the journal, however the run ends.
// The rounds that the processes report must equal the journal too; only the killed one may
// have journaled a round that it could not report.
//
// The marker names the visit that is inside, which no other visit does. A worker that finds a
// marker on entering, or not its own on leaving, reports it. That is a violation, unless it is
// the marker of the visit that was killed, or of one whose hold was lost. This is judged after
// all events are in, so their order does not matter.
//
// The order of a fair lock is judged by its queue, a list to which the acquire script appends
// each waiter. Each round reads it while the lock is held: no owner can leave it by acquiring,
// and new ones are appended. So the next round must be that of the first owner in it that ever
// finishes one; the owners before it have died. Which owner comes first to an empty queue
// cannot be judged.
package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

const (
	// processesPlain is how many processes contend for the plain lock, and processesFair and
	// workersFair how many, with how many workers each, for the fair one.
	processesPlain, processesFair, workersFair = 4, 3, 8
	// lease is short, because the demo waits for one to expire.
	lease = 3 * time.Second
	// tick is how often the queue is read.
	tick = 125 * time.Millisecond
	// atLeastAfter is for how long the demo goes on after it has recovered from the kill.
	atLeastAfter = time.Second
	// overrun is how much longer than planned a run may take until then.
	overrun = 30 * time.Second
)

var (
	errWrong       = errors.New("the demo failed")
	errInterrupted = errors.New("interrupted")
)

// options are the settings of a demo.
type options struct {
	Redis    connect.Settings // without an address for a server inside this process
	Duration time.Duration
	Fair     bool
	Broken   bool
	Out      io.Writer
}

// run is one run of the demo.
type run struct {
	*options
	redis *connect.Server
	conn  redis.Conn
	keys  keys
	audit *audit

	reports chan report // must be read until every process is gone
	ended   sync.WaitGroup
	victim  *process // nil before it was chosen
	printed int      // messages of the audit
	second  int      // for which progress was printed
}

// report is an event with the process that it came from.
type report struct {
	from  *process
	event event
}

// runDemo runs the demo. It returns errWrong when the result is wrong, errInterrupted when ctx
// ended first, and other errors when it could not run. No process outlives it.
func runDemo(ctx context.Context, opts *options) error {
	r := &run{options: opts, reports: make(chan report, 64)}
	where := opts.Redis.String()
	if opts.Redis.Address == "" {
		srv, err := embedded.Start()
		if err != nil {
			return err
		}
		defer srv.Close()
		opts.Redis = connect.Settings{Address: srv.URL()}
		where = srv.URL() + ", inside this process"
	}
	var err error
	if r.redis, err = connect.New(opts.Redis); err != nil {
		return err
	}
	if r.conn, err = r.redis.Dial(ctx); err != nil {
		return err
	}
	defer func() { _ = r.conn.Close() }() // nothing is buffered
	prefix := "redlatch-demo:" + uuid.NewString()[:8]
	r.keys, r.audit = keysOf(prefix), newAudit(opts.Fair, time.Now())
	err = r.execute(ctx, where, prefix)
	if _, cleared := r.conn.Do("DEL", r.keys.all()...); cleared != nil && err == nil {
		err = fmt.Errorf("remove the keys %s:*: %w", prefix, cleared)
	}
	return err
}

// execute runs the processes and reports the result.
func (r *run) execute(ctx context.Context, where, prefix string) error {
	r.print(r.audit.titles(where, r.keys.lock)...)
	var err error
	for _, p := range r.audit.processes {
		cfg := workerConfig{ID: p.id, Redis: r.Redis, Prefix: prefix, Workers: r.audit.workers, Fair: r.Fair, Broken: r.Broken}
		if err = r.start(p, &cfg); err != nil {
			break
		}
	}
	if err == nil {
		err = r.watch(ctx)
	}
	r.stop()
	r.show(time.Now())
	if err != nil && !errors.Is(err, errInterrupted) {
		return err
	}
	if why := r.audit.failure(); why != "" {
		return errors.New(why)
	}
	counter, failed := redis.Int64(r.conn.Do("INCRBY", r.keys.counter, 0)) // 0 if there is none
	if failed != nil {
		return r.redis.Problem(failed)
	}
	journal, failed := redis.Strings(r.conn.Do("LRANGE", r.keys.journal, 0, -1))
	if failed != nil {
		return r.redis.Problem(failed)
	}
	wrong := r.audit.check(counter, journal, err != nil)
	r.print(r.audit.summary(counter, time.Since(r.audit.began), wrong)...)
	if len(wrong) > 0 {
		return errWrong
	}
	return err
}

// start starts a worker process.
func (r *run) start(p *process, cfg *workerConfig) error {
	line, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	c := exec.Command(cli.Executable(), workerCommand)
	c.Args[0] = "redlatch" // as it is shown in a list of processes
	orders, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	var complaints bytes.Buffer
	c.Stderr = &complaints
	if err := c.Start(); err != nil {
		return fmt.Errorf("start process %d: %w", cfg.ID, err)
	}
	p.proc, p.orders = c.Process, orders
	r.ended.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			rep := report{from: p}
			if err := json.Unmarshal(lines.Bytes(), &rep.event); err != nil {
				rep.event = event{Kind: gone, At: time.Now(), Text: fmt.Sprintf("unreadable report %q", lines.Text())}
			}
			r.reports <- rep
		}
		r.reports <- report{p, event{Kind: gone, At: time.Now(), Text: exitReason(c.Wait(), complaints.String())}}
	})
	_, _ = orders.Write(append(line, '\n')) // a process that has ended is reported as gone
	return nil
}

// exitReason returns why a process failed, "" if it did not.
func exitReason(err error, complaints string) string {
	if err == nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(complaints), "\n")
	if last := strings.TrimPrefix(lines[len(lines)-1], "redlatch: "); last != "" {
		return last
	}
	return err.Error()
}

// watch follows the processes until the run is over.
func (r *run) watch(ctx context.Context) error {
	pictures := time.NewTicker(tick)
	defer pictures.Stop()
	for {
		select {
		case rep := <-r.reports:
			r.apply(&rep)
			if r.audit.failure() != "" {
				return nil
			}
		case now := <-pictures.C:
			queue, err := redis.Strings(r.conn.Do("LRANGE", r.keys.queue, 0, -1))
			if err != nil {
				return r.redis.Problem(err)
			}
			r.audit.sawQueue(queue, now)
			r.chooseVictim(now)
			r.show(now)
			if r.audit.over(now, r.Duration) {
				return nil
			}
		case <-ctx.Done():
			return errInterrupted
		}
	}
}

// chooseVictim makes a process stall when it is time: the one that had the lock last. Its next visit
// stalls between GET and SET, where a death does most harm.
func (r *run) chooseVictim(now time.Time) {
	a := r.audit
	if r.victim == nil && a.last != nil && a.allReady() && now.Sub(a.began) >= r.Duration*2/5 {
		r.victim = a.last
		_, _ = io.WriteString(r.victim.orders, "stall\n") // a process that has ended is reported as gone
	}
}

// apply enters a report. The victim is killed when it has stalled.
func (r *run) apply(rep *report) {
	r.audit.apply(rep.from, &rep.event)
	if rep.event.Kind == stalled {
		at := time.Now()
		_ = rep.from.proc.Kill() // fails if it is dead already
		r.audit.killed(rep.from, rep.event.Visit, at)
	}
}

// stop ends the processes, and enters their last reports.
func (r *run) stop() {
	for _, p := range r.audit.processes {
		if p.orders != nil {
			_ = p.orders.Close()
		}
	}
	go func() {
		r.ended.Wait()
		close(r.reports)
	}()
	for rep := range r.reports {
		r.audit.apply(rep.from, &rep.event)
	}
}

// show prints what is new, and progress once a second.
func (r *run) show(now time.Time) {
	r.print(r.audit.messages[r.printed:]...)
	r.printed = len(r.audit.messages)
	if second := int(now.Sub(r.audit.began).Seconds()); second > r.second {
		r.second = second
		r.print(r.audit.progress(now))
	}
}

// print writes lines. cli.Execute reports an error.
func (r *run) print(lines ...string) {
	for _, line := range lines {
		_, _ = io.WriteString(r.Out, line+"\n")
	}
}
