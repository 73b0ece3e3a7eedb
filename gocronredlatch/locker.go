package gocronredlatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// LockerConfig says how a [Locker] locks. The zero value locks while the task runs, and no longer.
type LockerConfig struct {
	// Prefix stands before the job's name in the name of its lock. Default: none.
	Prefix string

	// Period is the time between two runs of a job, for jobs that run at multiples of it since
	// 1970-01-01 in UTC, such as each full hour. A tick counts for the multiple that is next to it,
	// and each counts once: also when clocks differ by up to a third of the period, and when a
	// process was stopped and its tick is late. A tick between two multiples, further than a third
	// of the period from both, is skipped with [ErrBetween]. Default: ticks are not counted.
	Period time.Duration

	// AtLeast is how long after the start of a run no other one starts, for jobs that run at other
	// times. It should be more than what clocks differ by, and less than the time between two runs. A
	// process that was stopped and whose tick is later than that runs the job again. Default: another
	// run may start as soon as the task has returned.
	AtLeast time.Duration

	// OnError gets the error of freeing a lock, such as redlatch.ErrLost, which gocron drops. It is
	// called on the goroutine of the run. Default: slog.Default gets it as a warning.
	OnError func(name string, err error)
}

// ErrBetween says that a tick came too far from every multiple of the period, because the process
// had been stopped or its clock is wrong, so that its run was skipped.
var ErrBetween = errors.New("gocronredlatch: the tick is between two periods")

// Locker is a gocron.Locker: each run of a job takes the lock of the job's name. All methods are
// safe for concurrent use.
type Locker struct {
	client *redlatch.Client
	config LockerConfig
	now    func() time.Time

	mu    sync.Mutex
	holds map[context.Context]*rlock.Hold // of runs whose task is still to begin, by the contexts of their jobs
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker that locks with a client, which the caller closes after the scheduler
// has shut down. It returns redlatch.ErrInvalid when a time is below zero, or both Period and
// AtLeast are set. It sends nothing.
func NewLocker(client *redlatch.Client, config LockerConfig) (*Locker, error) {
	if config.Period < 0 || config.AtLeast < 0 || config.Period > 0 && config.AtLeast > 0 {
		return nil, fmt.Errorf("%w: a Locker has a Period or an AtLeast, which are not below zero", redlatch.ErrInvalid)
	}
	if config.OnError == nil {
		config.OnError = func(name string, err error) {
			slog.Default().Warn("the lock of a job was not freed as it should", "lock", name, "error", err)
		}
	}
	return &Locker{client: client, config: config, now: time.Now, holds: map[context.Context]*rlock.Hold{}}, nil
}

// Task returns a task whose context ends, with the cause as [rlock.Hold.Err] has it, when the lock
// of the run is lost, and when gocron ends the job. Fn is not called when that has happened before.
// A job with such a task needs gocron.WithName, since gocron names jobs after their functions and
// those of all these tasks have one name: without it each run is skipped with redlatch.ErrInvalid.
// It needs the Locker in the scheduler or in the job: without, fn is not called, and the run fails
// with redlatch.ErrNotHeld.
func (l *Locker) Task(fn func(ctx context.Context) error) gocron.Task {
	return gocron.NewTask((&task{l, fn}).run)
}

// task is what Task has made. Its method has one name wherever the compiler inlines Task.
type task struct {
	locker *Locker
	fn     func(ctx context.Context) error
}

func (t *task) run(ctx context.Context) error {
	// A hold is for one run: one that was lost before its task began may have a successor already.
	hold := t.locker.take(ctx)
	if hold == nil {
		return fmt.Errorf("%w: the job does not use the Locker that its task was made with", redlatch.ErrNotHeld)
	}
	run := hold.Context(ctx)
	if run.Err() != nil {
		return context.Cause(run)
	}
	return t.fn(run)
}

// Lock is for gocron, which calls it at each tick with the context and the name of the job. It takes
// the lock if it is free, renewed until Unlock, and does not wait. It returns redlatch.ErrNotAcquired
// when another process does the job or, with Period or AtLeast, has done it; [ErrBetween]; and what
// rlock.Lock.TryLock returns. It sends what TryLock sends, twice with Period or AtLeast.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	if strings.HasPrefix(key, "github.com/redlatch/redlatch/gocronredlatch.") {
		return nil, fmt.Errorf("%w: the job has no name of its own: give it gocron.WithName", redlatch.ErrInvalid)
	}
	mark, err := l.mark()
	if err != nil {
		return nil, err
	}
	name := l.config.Prefix + key
	hold, err := rlock.New(l.client, name).TryLock(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.leaveMark(ctx, name, mark); err != nil {
		return nil, errors.Join(err, hold.Unlock())
	}
	l.put(ctx, hold)
	return &run{l, ctx, hold}, nil
}

// put keeps the hold of a run for its task.
func (l *Locker) put(ctx context.Context, hold *rlock.Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds[ctx] = hold
}

// take returns the hold of a run to its task, nil when there is none.
func (l *Locker) take(ctx context.Context) *rlock.Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	hold := l.holds[ctx]
	delete(l.holds, ctx)
	return hold
}

// drop forgets the hold of a run whose task was not called.
func (l *Locker) drop(ctx context.Context, hold *rlock.Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holds[ctx] == hold {
		delete(l.holds, ctx)
	}
}

// mark returns how long the mark of a run that begins now is to stay, 0 for none.
func (l *Locker) mark() (time.Duration, error) {
	period := l.config.Period
	if period == 0 {
		return l.config.AtLeast, nil
	}
	// Not of the zero time, as Truncate has it: some periods do not divide the time to 1970.
	after := time.Duration(l.now().UnixNano()) % period
	switch {
	case after <= period/3:
		return period/2 - after, nil
	case after >= period-period/3:
		return period + period/2 - after, nil
	}
	return 0, fmt.Errorf("%w of %v: it came %v after one", ErrBetween, period, after)
}

// leaveMark takes the mark of a run and leaves it to its lease, or fails because it is there.
func (l *Locker) leaveMark(ctx context.Context, name string, lease time.Duration) error {
	if lease == 0 {
		return nil
	}
	// Cut to milliseconds it would end too soon.
	hold, err := rlock.New(l.client, name+":ran").TryLock(ctx, rlock.WithLease(lease+time.Millisecond))
	if err != nil {
		return err
	}
	_ = hold.LetExpire() // lost, it has expired already
	return nil
}

// run is the lock of one run.
type run struct {
	locker *Locker
	ctx    context.Context //nolint:containedctx // the job's, which names the run
	hold   *rlock.Hold
}

// Unlock is for gocron, which calls it when the task has returned. It returns what
// rlock.Hold.Unlock returns, and gives that to OnError. It needs no context.
func (r *run) Unlock(context.Context) error {
	r.locker.drop(r.ctx, r.hold)
	err := r.hold.Unlock()
	if err != nil {
		r.locker.config.OnError(r.hold.Name(), err)
	}
	return err
}
