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

// LockerConfig configures a [Locker]. The zero value locks only while the task runs.
type LockerConfig struct {
	// Prefix is prepended to the job's name to get the name of its lock.
	Prefix string

	// Period is the time between two runs, for jobs that run at multiples of Period since
	// 1970-01-01 UTC, such as every hour on the hour. The job runs once per multiple, even if
	// clocks differ by a third of the period or a paused process ticks late. A tick further than a
	// third of the period from any multiple is skipped with [ErrOffSchedule]. If Period is 0, the
	// default, ticks are not checked.
	Period time.Duration

	// AtLeast is the minimum time from the start of a run to the next run, for jobs that do not run
	// at multiples of Period. It should exceed the difference between the clocks and be less than
	// the time between two runs. A paused process that ticks later runs the job again. The default
	// is 0.
	AtLeast time.Duration

	// OnError is called with errors from releasing a lock, which gocron drops. It is called on the run's
	// goroutine. By default, slog.Default logs them as warnings.
	OnError func(name string, err error)
}

// ErrOffSchedule means that a run was skipped because its tick was too far from any multiple of
// LockerConfig.Period.
var ErrOffSchedule = errors.New("gocronredlatch: tick off schedule")

// Locker is a gocron.Locker: each run of a job acquires the lock named after the job. It is safe for
// concurrent use.
type Locker struct {
	client *redlatch.Client
	config LockerConfig

	holds sync.Map // context of a job -> *rlock.Hold, until the task starts
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker. Close the client after the scheduler has shut down. NewLocker returns
// redlatch.ErrInvalid if Period or AtLeast is negative, or if both are set. It does no I/O.
func NewLocker(client *redlatch.Client, config LockerConfig) (*Locker, error) {
	if config.Period < 0 || config.AtLeast < 0 || config.Period > 0 && config.AtLeast > 0 {
		return nil, fmt.Errorf("%w: Period and AtLeast must not be negative and are mutually exclusive", redlatch.ErrInvalid)
	}
	if config.OnError == nil {
		config.OnError = func(name string, err error) {
			slog.Default().Warn("redlatch: failed to release a job's lock", "lock", name, "error", err)
		}
	}
	return &Locker{client: client, config: config}, nil
}

// Task returns a task that calls fn with a context that ends when gocron ends the job or when the
// run's lock is lost; in the latter case, its cause is the error of [rlock.Hold.Err]. If it has
// already ended, fn is not called.
//
// The job needs gocron.WithName, because gocron's default name is the same for all these tasks;
// otherwise each run is skipped with redlatch.ErrInvalid. The scheduler or the job needs the Locker;
// otherwise the run fails with redlatch.ErrNotHeld.
func (l *Locker) Task(fn func(ctx context.Context) error) gocron.Task {
	return gocron.NewTask((&task{l, fn}).run)
}

// task has a method whose name does not depend on whether Task is inlined.
type task struct {
	locker *Locker
	fn     func(ctx context.Context) error
}

func (t *task) run(ctx context.Context) error {
	// Each run has its own hold. If the hold was lost before the task started, the job may run
	// again.
	hold, ok := t.locker.holds.LoadAndDelete(ctx)
	if !ok {
		return fmt.Errorf("%w: the job uses a different Locker than its task", redlatch.ErrNotHeld)
	}
	run := hold.(*rlock.Hold).Context(ctx) //nolint:errcheck,forcetypeassert // nothing else is stored
	if run.Err() != nil {
		return context.Cause(run)
	}
	return t.fn(run)
}

// Lock is called by gocron at each tick with the context and the name of the job. It acquires the lock without
// waiting and renews it until Unlock. It returns redlatch.ErrNotAcquired if another process is running the job
// or, with Period or AtLeast, has already run it, and [ErrOffSchedule] if the tick is off schedule. It can also
// return any other error of [rlock.Lock.TryLock], which it calls twice if Period or AtLeast is set.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	if strings.HasPrefix(key, "github.com/redlatch/redlatch/gocronredlatch.") {
		return nil, fmt.Errorf("%w: the job needs a name: use gocron.WithName", redlatch.ErrInvalid)
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
	l.holds.Store(ctx, hold)
	return &run{l, ctx, hold}, nil
}

// mark returns the lease of the lock that marks a job as run, or 0.
func (l *Locker) mark() (time.Duration, error) {
	period := l.config.Period
	if period == 0 {
		return l.config.AtLeast, nil
	}
	// time.Time.Truncate counts from the year 1, not from 1970.
	after := time.Duration(time.Now().UnixNano()) % period
	switch {
	case after <= period/3:
		return period/2 - after, nil
	case after >= period-period/3:
		return period + period/2 - after, nil
	}
	return 0, fmt.Errorf("%w: %v after a multiple of %v", ErrOffSchedule, after, period)
}

func (l *Locker) leaveMark(ctx context.Context, name string, lease time.Duration) error {
	if lease == 0 {
		return nil
	}
	// A lease that is rounded down to milliseconds would end too early.
	hold, err := rlock.New(l.client, name+":ran").TryLock(ctx, rlock.WithLease(lease+time.Millisecond))
	if err != nil {
		return err
	}
	_ = hold.LetExpire() // fails if it has expired
	return nil
}

type run struct {
	locker *Locker
	ctx    context.Context //nolint:containedctx // the job's context
	hold   *rlock.Hold
}

// Unlock passes its error to OnError, because gocron drops it.
func (r *run) Unlock(context.Context) error {
	r.locker.holds.CompareAndDelete(r.ctx, r.hold) // if the task was not called
	err := r.hold.Unlock()
	if err != nil {
		r.locker.config.OnError(r.hold.Name(), err)
	}
	return err
}
