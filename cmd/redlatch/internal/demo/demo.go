// Package demo implements the redlatch demo command, in which processes contend for a fair lock,
// and one of them is killed while it is holding the lock.
//
//	parent ──stdin: config, "stall", end of file──▶ process 1 …
//	       ◀──stdout: one event a line, as JSON────
//
//	round: lock ─▶ mark, GET counter ─▶ think ─▶ SET counter+1, journal, unmark ─▶ unlock
//
// The read-modify-write is not atomic, so rounds are lost without mutual exclusion. Its second half
// is a single script, so the counter must equal the length of the journal. A marker names the visit
// that is holding the lock. It is a violation if a visit finds the marker of another visit, unless
// that visit was killed or lost its hold.
//
// Each round reads the queue while it holds the lock. The next round must belong to the first owner
// in the queue that completes another round at all. A round that follows an empty queue cannot be
// judged.
package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

const demoHelp = `Starts three processes of eight workers each that contend for one fair lock.
Each worker reads a counter from the server, waits, and writes it back plus
one; without a lock, they would overwrite each other's updates. One process is
killed while one of its workers holds the lock and others are queued. The dead
workers stay in the queue until live workers find that their channels have had
no subscriber for a short grace period. After that and the end of the lease, a
live worker acquires the lock. Finally, the demo compares the counter with the
reports of the processes. The summary also shows whether a live worker was
overtaken, based on the server's queue at each release.

The server runs inside this program unless --redis or --context names another
one; the environment is ignored. On another server, the demo uses only keys
redlatch-demo:* and removes them afterwards.

Exit codes:
  0      the result is correct
  1      the result is wrong: two workers held the lock concurrently, work was
         lost or repeated, or a live worker was overtaken; or the demo could
         not run
  2      the server is a replica, or the command line or the address is invalid
  128+n  signal n ended the command: 130 SIGINT (Ctrl-C), 143 SIGTERM`

// New returns the command demo.
func New(g *cli.Globals) *cobra.Command {
	r := &run{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch processes contend for a lock while one is killed",
		Long:  demoHelp,
		Example: `  redlatch demo
  redlatch demo --duration 30s --redis redis://localhost:6379`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if r.duration < time.Second || r.duration > time.Hour {
				return cli.Usagef("--duration must be from 1s to 1h")
			}
			if r.common.Redis, err = demoServer(cmd.Context(), g); err != nil {
				return err
			}
			r.out = cmd.OutOrStdout()
			var result error
			err = cli.UntilSignal(cmd.Context(), func(ctx context.Context) error {
				result = r.run(ctx)
				return result
			}, syscall.SIGHUP)
			if exit := (*cli.ExitError)(nil); (result == nil || errors.Is(result, errInterrupted)) && errors.As(err, &exit) {
				return &cli.ExitError{Code: exit.Code, Err: errInterrupted}
			}
			return result // a wrong result is reported even after a signal
		},
	}
	cmd.Flags().DurationVar(&r.duration, "duration", 10*time.Second, "minimum time for which the processes contend")
	return cmd
}

// demoServer returns empty settings if no flag names a server.
func demoServer(ctx context.Context, g *cli.Globals) (connect.Settings, error) {
	if !g.Explicit() {
		return connect.Settings{}, nil
	}
	set, err := g.Settings(ctx)
	if err != nil {
		return set, err
	}
	srv, err := cli.ServerOf(set)
	switch {
	case err != nil:
		return set, err
	case srv.IsDeployment():
		return set, cli.Usagef("the demo needs a single server: redis://, rediss:// or unix://, not %s", set)
	}
	return set, cli.NeedMaster(ctx, srv)
}

// NewWorker returns the hidden command of the demo's processes.
func NewWorker(*cli.Globals) *cobra.Command {
	return &cobra.Command{
		Use:    workerCommand,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return work(os.Stdin, os.Stdout) },
	}
}

const (
	// lease is short because the demo waits until a lease has expired.
	lease = 3 * time.Second
	tick  = 125 * time.Millisecond
	// After the recovery, the demo continues for atLeastAfter. It may exceed its duration by at
	// most overrun.
	atLeastAfter, overrun = time.Second, 30 * time.Second
)

var (
	errWrong       = errors.New("the demo failed")
	errInterrupted = errors.New("interrupted")
)

type run struct {
	common   workerConfig // without an address if the server runs in this process
	duration time.Duration
	out      io.Writer

	redis   *connect.Server
	conn    redis.Conn
	keys    keys
	audit   *audit
	reports chan report // must be read until all processes have exited
	ended   sync.WaitGroup
	victim  *process // nil before it is chosen
	printed int      // number of messages printed
	second  int      // second of the last progress message
}

type report struct {
	from  *process
	event event
}

// run returns when all processes have exited. The error is errWrong, or errInterrupted if ctx ended first.
func (r *run) run(ctx context.Context) (err error) {
	where := r.common.Redis.String()
	if r.common.Redis.Address == "" {
		srv, err := embedded.Start()
		if err != nil {
			return err
		}
		defer srv.Close()
		r.common.Redis = connect.Settings{Address: srv.URL()}
		where = srv.URL() + ", inside this process"
	}
	if r.redis, err = connect.New(r.common.Redis); err != nil {
		return err
	}
	if r.conn, err = r.redis.Dial(ctx); err != nil {
		return err
	}
	defer func() { _ = r.conn.Close() }()
	r.common.Prefix = "redlatch-demo:" + uuid.NewString()[:8]
	r.keys, r.audit, r.reports = keysOf(r.common.Prefix), newAudit(time.Now()), make(chan report, 64)
	r.print("redlatch demo: "+title+", one fair lock", "server  "+where,
		fmt.Sprintf("lock    %s, leases of %v, renewed", r.keys[lockKey], lease))
	err = r.play(ctx)
	if err == nil || errors.Is(err, errInterrupted) {
		err = r.conclude(err)
	}
	if _, cleared := r.conn.Do("DEL", redis.Args{}.AddFlat(r.keys[:])...); cleared != nil && err == nil {
		err = fmt.Errorf("remove the keys %s:*: %w", r.common.Prefix, cleared)
	}
	return err
}

func (r *run) play(ctx context.Context) error {
	defer r.stop()
	for _, p := range r.audit.processes {
		if err := r.start(p); err != nil {
			return err
		}
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for r.audit.failure() == "" {
		select {
		case rep := <-r.reports:
			r.audit.apply(rep.from, &rep.event)
			if rep.event.Kind == stalled {
				at := time.Now()
				_ = rep.from.proc.Kill() // it may already be dead
				r.audit.killed(rep.from, rep.event.Visit, at)
			}
		case now := <-ticker.C:
			queue, err := redis.Strings(r.conn.Do("LRANGE", r.keys[queueKey], 0, -1))
			if err != nil {
				return r.redis.Problem(err)
			}
			r.audit.sawQueue(queue, now)
			r.chooseVictim(now)
			r.show(now)
			if r.audit.over(now, r.duration) {
				return nil
			}
		case <-ctx.Done():
			return errInterrupted
		}
	}
	return nil
}

// chooseVictim makes a process stall between GET and SET.
func (r *run) chooseVictim(now time.Time) {
	a := r.audit
	connecting := slices.ContainsFunc(a.processes, func(p *process) bool { return p.client == "" })
	if r.victim == nil && a.last != nil && !connecting && now.Sub(a.began) >= r.duration*2/5 {
		r.victim = a.last
		_, _ = io.WriteString(r.victim.orders, "stall\n") // a dead process is reported as gone
	}
}

func (r *run) start(p *process) error {
	cfg := r.common
	cfg.ID = p.id
	line, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	c := &exec.Cmd{Path: cli.Executable(), Args: []string{"redlatch", workerCommand}}
	orders, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("start process %d: %w", p.id, err)
	}
	p.proc, p.orders = c.Process, orders
	r.ended.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			rep := report{from: p}
			if err := json.Unmarshal(lines.Bytes(), &rep.event); err != nil {
				rep.event = event{Kind: gone, Text: fmt.Sprintf("unreadable report %q", lines.Text())}
			}
			r.reports <- rep
		}
		e := event{Kind: gone}
		if err := c.Wait(); err != nil {
			e.Text = err.Error()
		}
		r.reports <- report{p, e}
	})
	_, _ = orders.Write(append(line, '\n')) // a dead process is reported as gone
	return nil
}

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
	r.show(time.Now())
}

func (r *run) conclude(ended error) error {
	if why := r.audit.failure(); why != "" {
		return errors.New(why)
	}
	counter, err := redis.Int64(r.conn.Do("INCRBY", r.keys[counterKey], 0)) // 0 if the key does not exist
	if err != nil {
		return r.redis.Problem(err)
	}
	journal, err := redis.Strings(r.conn.Do("LRANGE", r.keys[journalKey], 0, -1))
	if err != nil {
		return r.redis.Problem(err)
	}
	wrong := r.audit.check(counter, journal, ended != nil)
	r.print(r.audit.summary(counter, time.Since(r.audit.began), wrong)...)
	if len(wrong) > 0 {
		return errWrong
	}
	return ended
}

func (r *run) show(now time.Time) {
	r.print(r.audit.messages[r.printed:]...)
	r.printed = len(r.audit.messages)
	if second := int(now.Sub(r.audit.began).Seconds()); second > r.second {
		r.second = second
		r.print(r.audit.progress(now))
	}
}

func (r *run) print(lines ...string) {
	for _, line := range lines {
		_, _ = io.WriteString(r.out, line+"\n")
	}
}
