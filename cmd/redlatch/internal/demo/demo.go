package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/conn"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/ui"
	"github.com/redlatch/redlatch/embedded"
)

const (
	workers  = 4
	headline = "redlatch demo: 4 processes, one lock"
	// lease is what the workers' locks are renewed to: short, because the demo
	// waits for one to run out.
	lease = 3 * time.Second
	// tick is the time from picture to picture.
	tick = 125 * time.Millisecond
	// afterwards is how long the demo goes on at least after the take-over.
	afterwards = time.Second
	// lastWords is how long a worker that was told to stop may take.
	lastWords = 5 * time.Second
	// patience is how much longer than planned a run may take. A demo that hangs
	// is wrong, too.
	patience = 15 * time.Second
)

// Options says how to run the demo.
type Options struct {
	// Redis is the address of the server, "" for one inside this process.
	Redis string
	// Duration is how long the workers work. The demo may take a little longer,
	// to see the take-over.
	Duration time.Duration
	// Broken makes the workers skip the lock, to see that the demo notices.
	Broken bool
	// Program is the path of this program.
	Program string
	// Out gets the picture, if it is a terminal, or lines, and the summary.
	Out *os.File
}

var (
	// ErrWrong says that the books of the demo do not add up.
	ErrWrong = errors.New("the demo failed")
	// ErrInterrupted says that the demo's context ended before the demo did.
	ErrInterrupted = errors.New("interrupted")
)

// run is one run of the demo.
type run struct {
	opts    Options
	redis   string
	keys    keys
	prefix  string
	tally   *tally
	team    *team
	ordered int // the worker that was told to stall, 0 before

	view   *view
	screen *ui.Screen // nil for plain output
	said   int        // news that plain output has had
	second int        // progress was printed for
}

// Run runs the demo. It returns ErrWrong when two workers were ever inside or a
// round was lost, ErrInterrupted when ctx ended first, and other errors when it
// could not run. No process outlives it.
func Run(ctx context.Context, opts Options) error {
	r := &run{opts: opts, redis: opts.Redis, team: &team{reports: make(chan report, 64)}}
	where := conn.Show(opts.Redis)
	if opts.Redis == "" {
		srv, err := embedded.Start()
		if err != nil {
			return err
		}
		defer srv.Close()
		r.redis, where = srv.URL(), srv.URL()+", inside this process"
	}
	c, err := conn.Dial(ctx, r.redis)
	if err != nil {
		return fmt.Errorf("%s", conn.Problem(r.redis, err))
	}
	defer func() { _ = c.Close() }() // nothing is buffered
	r.prefix = "redlatch-demo:" + uuid.NewString()[:8]
	r.keys = keysOf(r.prefix)
	b := &book{conn: c, keys: r.keys}
	err = r.play(ctx, where, b)
	if cleared := b.remove(); cleared != nil && err == nil {
		err = fmt.Errorf("remove the keys %s:*: %w", r.prefix, cleared)
	}
	return err
}

// play runs the workers and tells how it went.
func (r *run) play(ctx context.Context, where string, b *book) error {
	r.tally = newTally(time.Now(), lease, workers)
	r.open(where)
	err := r.hire()
	if err == nil {
		err = r.watch(ctx)
	}
	r.team.dismiss(lastWords, func(rep report) { r.tally.apply(rep.id, &rep.event) })
	r.show(time.Now())
	r.close()
	if err != nil && !errors.Is(err, ErrInterrupted) {
		return err
	}
	if why := r.tally.failure(); why != "" {
		return errors.New(why)
	}
	return r.conclude(b, err)
}

// conclude checks the books and prints the summary. err is how the watching
// ended: nil or ErrInterrupted.
func (r *run) conclude(b *book, err error) error {
	counter, journal, readErr := b.totals()
	if readErr != nil {
		return fmt.Errorf("%s", conn.Problem(r.redis, readErr))
	}
	res := &result{took: time.Since(r.tally.began), counter: counter, wrong: r.tally.audit(counter, journal)}
	if err == nil && r.tally.heir == nil {
		res.wrong = append(res.wrong, fmt.Sprintf("nobody got the lock within %v of the kill", patience))
	}
	for _, line := range r.tally.summary(res) {
		r.print(line)
	}
	if len(res.wrong) > 0 {
		return ErrWrong
	}
	return err
}

func (r *run) hire() error {
	for _, c := range r.tally.workers {
		err := r.team.hire(r.opts.Program, workerConfig{
			ID: c.id, Redis: r.redis, Prefix: r.prefix, Lease: lease, Broken: r.opts.Broken,
		})
		if err != nil {
			return err
		}
		c.pid = r.team.members[c.id-1].cmd.Process.Pid
	}
	return nil
}

// watch follows the workers until the run is over.
func (r *run) watch(ctx context.Context) error {
	pictures := time.NewTicker(tick)
	defer pictures.Stop()
	for {
		select {
		case rep := <-r.team.reports:
			r.tally.apply(rep.id, &rep.event)
			r.strike(&rep)
			if r.tally.failure() != "" {
				return nil
			}
		case now := <-pictures.C:
			r.direct(now)
			r.show(now)
			if r.over(now) {
				return nil
			}
		case <-ctx.Done():
			return ErrInterrupted
		}
	}
}

// direct chooses the victim when it is time: whoever is inside now. It is told
// to stand still between its next GET and SET, where a death does most harm.
func (r *run) direct(now time.Time) {
	t := r.tally
	if r.ordered != 0 || t.last == nil || !t.readyAll() || now.Sub(t.began) < r.opts.Duration*2/5 {
		return
	}
	r.ordered = t.last.id
	r.team.stall(r.ordered)
}

// strike kills the victim when it stands still.
func (r *run) strike(rep *report) {
	if rep.event.Kind != stalled || rep.id != r.ordered {
		return
	}
	at := time.Now()
	r.team.kill(rep.id)
	r.tally.killed(rep.id, at)
}

// over reports whether everything was seen that is to be seen, or will not be.
func (r *run) over(now time.Time) bool {
	t := r.tally
	ran := now.Sub(t.began)
	if t.heir == nil {
		return ran >= r.opts.Duration+patience
	}
	return ran >= r.opts.Duration && now.Sub(t.heirAt) >= afterwards
}

// open begins the output.
func (r *run) open(where string) {
	r.view = &view{
		look: ui.LookOf(r.opts.Out),
		titles: []string{
			"server  " + where,
			"lock    " + r.keys.lock + ", leases of " + short(lease) + ", renewed",
		},
		until: r.opts.Duration,
	}
	if ui.IsLive(r.opts.Out) {
		r.screen = ui.NewScreen(r.opts.Out)
		return
	}
	r.print(headline)
	for _, line := range r.view.titles {
		r.print(line)
	}
}

// show draws the picture, or prints what is new.
func (r *run) show(now time.Time) {
	if r.screen != nil {
		r.view.sample(r.tally)
		r.screen.Draw(r.view.lines(r.tally, now))
		return
	}
	for _, line := range r.tally.news[r.said:] {
		r.print(line)
	}
	r.said = len(r.tally.news)
	if second := int(now.Sub(r.tally.began).Seconds()); second > r.second {
		r.second = second
		r.print(r.tally.progress(now))
	}
}

func (r *run) close() {
	if r.screen != nil {
		r.screen.Close()
	}
}

// print writes a line. An output that is gone has nobody to tell.
func (r *run) print(line string) { _, _ = io.WriteString(r.opts.Out, line+"\n") }
