package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"

	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/output"
)

const (
	// lease is what the workers' locks are renewed to: short, because the demo
	// waits for one to run out.
	lease = 3 * time.Second
	// tick is the time from picture to picture.
	tick = 125 * time.Millisecond
	// stopTimeout is how long a worker may take to stop.
	stopTimeout = 5 * time.Second
	// overrun is how much longer than planned a run may take. A demo that hangs
	// is wrong, too.
	overrun = 15 * time.Second
)

// options are the settings of a demo.
type options struct {
	// Redis is how to reach the server, without an address for one inside this
	// process.
	Redis connect.Settings
	// Duration is how long the workers of the plain lock work. The demo may take a
	// little longer, to see the take-over.
	Duration time.Duration
	// Jobs is how many jobs are claimed under the fair lock; 0 is the demo of the
	// plain lock.
	Jobs int
	// Broken makes the workers skip the lock, to see that the demo notices.
	Broken bool
	// Program is the path of this program.
	Program string
	// Out gets the picture, if it is a terminal, or lines, and the summary.
	Out io.Writer
}

var (
	// errWrong means that the result of the demo is wrong.
	errWrong = errors.New("the demo failed")
	// errInterrupted means that the demo's context ended before the demo did.
	errInterrupted = errors.New("interrupted")
)

// scenario is what the demo runs: what the processes do, how their reports are audited, and
// what is shown. It is for one goroutine.
type scenario interface {
	// prepare makes the server ready, and returns what each process is to do.
	prepare() ([]workerConfig, error)
	// started enters the process that was started for the id-th configuration.
	started(id, pid int)
	// apply enters a report.
	apply(r *report)
	// step does what is due now.
	step(now time.Time) error
	// over reports whether everything was seen that is to be seen, or will not be.
	over(now time.Time) bool
	// failure returns why a process could not go on, "" while all are well.
	failure() string

	// headline and titles name the demo and its lock.
	headline() string
	titles() []string
	// picture returns the live picture.
	picture(v *view, now time.Time) []string
	// messages returns what has happened so far, line by line.
	messages() []string
	// progress returns the line for plain output, once a second.
	progress(now time.Time) string

	// judge checks the result at the end; cut means that the run was cut short. It returns
	// the summary, and what is wrong.
	judge(took time.Duration, cut bool) (summary, wrong []string, err error)
	// remove deletes everything that the run left on the server.
	remove() error
}

// run is one run of the demo.
type run struct {
	opts      *options
	redis     *connect.Server
	scenario  scenario
	processes *processGroup
	began     time.Time
	view      *view
	screen    *output.Screen // nil for plain output
	printed   int            // messages that plain output has had
	second    int            // progress was printed for
}

// runDemo runs the demo. It returns errWrong when two workers were ever inside, work
// was lost or the order was, errInterrupted when ctx ended first, and other errors
// when it could not run. No process outlives it.
func runDemo(ctx context.Context, opts options) error {
	r := &run{opts: &opts, processes: &processGroup{reports: make(chan report, 64)}}
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
	c, err := r.redis.Dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is buffered
	prefix := "redlatch-demo:" + uuid.NewString()[:8]
	r.scenario = r.choose(c, prefix)
	err = r.execute(ctx, where)
	if cleared := r.scenario.remove(); cleared != nil && err == nil {
		err = fmt.Errorf("remove the keys %s:*: %w", prefix, cleared)
	}
	return err
}

// choose returns the piece that the options ask for.
func (r *run) choose(c redis.Conn, prefix string) scenario {
	r.began = time.Now()
	common := workerConfig{Redis: r.opts.Redis, Prefix: prefix, Lease: lease, Broken: r.opts.Broken}
	if r.opts.Jobs > 0 {
		return newClaiming(c, &common, r)
	}
	return newCounting(c, &common, r)
}

// execute runs the processes and reports the result.
func (r *run) execute(ctx context.Context, where string) error {
	r.open(where)
	err := r.startProcesses()
	if err == nil {
		err = r.watch(ctx)
	}
	r.processes.stopAll(stopTimeout, func(rep report) { r.scenario.apply(&rep) })
	r.show(time.Now())
	r.close()
	if err != nil && !errors.Is(err, errInterrupted) {
		return err
	}
	if why := r.scenario.failure(); why != "" {
		return errors.New(why)
	}
	return r.conclude(err)
}

// conclude prints the summary. err is how the watching ended: nil or
// errInterrupted.
func (r *run) conclude(err error) error {
	lines, wrong, judgeErr := r.scenario.judge(time.Since(r.began), err != nil)
	if judgeErr != nil {
		return r.redis.Problem(judgeErr)
	}
	for _, line := range lines {
		r.print(line)
	}
	for _, w := range wrong {
		r.print("WRONG: " + w + ".")
	}
	if len(wrong) > 0 {
		return errWrong
	}
	return err
}

func (r *run) startProcesses() error {
	configs, err := r.scenario.prepare()
	if err != nil {
		return r.redis.Problem(err)
	}
	for i := range configs {
		pid, err := r.processes.start(r.opts.Program, &configs[i])
		if err != nil {
			return err
		}
		r.scenario.started(configs[i].ID, pid)
	}
	return nil
}

// watch follows the processes until the run is over.
func (r *run) watch(ctx context.Context) error {
	pictures := time.NewTicker(tick)
	defer pictures.Stop()
	for {
		select {
		case rep := <-r.processes.reports:
			r.scenario.apply(&rep)
			if r.scenario.failure() != "" {
				return nil
			}
		case now := <-pictures.C:
			if err := r.scenario.step(now); err != nil {
				return r.redis.Problem(err)
			}
			r.show(now)
			if r.scenario.over(now) {
				return nil
			}
		case <-ctx.Done():
			return errInterrupted
		}
	}
}

// open begins the output.
func (r *run) open(where string) {
	r.view = &view{
		look:     output.LookOf(r.opts.Out),
		headline: r.scenario.headline(),
		titles:   append([]string{"server  " + where}, r.scenario.titles()...),
	}
	if output.IsLive(r.opts.Out) {
		r.screen = output.NewScreen(r.opts.Out)
		return
	}
	r.print(r.view.headline)
	for _, line := range r.view.titles {
		r.print(line)
	}
}

// show draws the picture, or prints what is new.
func (r *run) show(now time.Time) {
	if r.screen != nil {
		r.screen.Draw(r.scenario.picture(r.view, now))
		return
	}
	news := r.scenario.messages()
	for _, line := range news[r.printed:] {
		r.print(line)
	}
	r.printed = len(news)
	if second := int(now.Sub(r.began).Seconds()); second > r.second {
		r.second = second
		r.print(r.scenario.progress(now))
	}
}

func (r *run) close() {
	if r.screen != nil {
		r.screen.Close()
	}
}

// print writes a line. cli.Execute reports an error.
func (r *run) print(line string) { _, _ = io.WriteString(r.opts.Out, line+"\n") }
