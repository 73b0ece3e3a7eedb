package gocronredlatch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/gocronredlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/trials"
	"github.com/redlatch/redlatch/rlock"
)

// soon is much longer than any expected event takes.
const soon = 30 * time.Second

func connect(t *testing.T, s *redistest.MiniServer, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	c, err := redlatch.New(s.Server.Dial, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

func newLocker(t *testing.T, c *redlatch.Client, config gocronredlatch.LockerConfig) *gocronredlatch.Locker {
	t.Helper()
	l, err := gocronredlatch.NewLocker(c, config)
	require.NoError(t, err)
	return l
}

// newScheduler starts a scheduler that runs one job immediately.
func newScheduler(t *testing.T, option gocron.SchedulerOption, task gocron.Task, opts ...gocron.JobOption) gocron.Scheduler {
	t.Helper()
	s, err := gocron.NewScheduler(option)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Shutdown() }) // fails if the test has done it
	_, err = s.NewJob(gocron.DurationJob(time.Hour), task, append(opts, gocron.WithStartAt(gocron.WithStartImmediately()))...)
	require.NoError(t, err)
	s.Start()
	return s
}

// skips is a job option that sends the reasons why runs are skipped.
func skips(to chan error) gocron.JobOption {
	return gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { to <- err }))
}

// fails is a job option that sends the errors of runs.
func fails(to chan error) gocron.JobOption {
	return gocron.WithEventListeners(gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { to <- err }))
}

// receive waits for the next value.
func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(soon):
		require.FailNow(t, "no value received")
		panic("unreachable")
	}
}

func TestLockRenewedWhileTaskRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		name := gocron.WithName(redistest.Key(t))
		began, end := make(chan struct{}, 1), make(chan struct{})
		here := newLocker(t, connect(t, s, redlatch.WithWatchdogTimeout(6*time.Second)), gocronredlatch.LockerConfig{})
		newScheduler(t, gocron.WithDistributedLocker(here), here.Task(func(ctx context.Context) error {
			began <- struct{}{}
			<-end
			return ctx.Err()
		}), name)
		receive(t, began)
		time.Sleep(8 * time.Second) // longer than a lease

		there, skipped := newLocker(t, connect(t, s), gocronredlatch.LockerConfig{}), make(chan error, 1)
		newScheduler(t, gocron.WithDistributedLocker(there), there.Task(func(context.Context) error {
			assert.Fail(t, "two processes run the job")
			return nil
		}), name, skips(skipped))
		require.ErrorIs(t, receive(t, skipped), redlatch.ErrNotAcquired)
		close(end)
	})
}

func TestLockReleasedAfterTask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		name := redistest.Key(t)
		done := make(chan error, 2)
		for range 2 {
			l := newLocker(t, connect(t, s), gocronredlatch.LockerConfig{Prefix: "cron:"})
			scheduler := newScheduler(t, gocron.WithDistributedLocker(l), l.Task(func(context.Context) error {
				held, err := rlock.New(connect(t, s), "cron:"+name).IsLocked(t.Context())
				done <- errors.Join(err, func() error {
					if !held {
						return errors.New("the lock is free in the task")
					}
					return nil
				}())
				return errors.New("the task has failed")
			}), gocron.WithName(name))
			require.NoError(t, receive(t, done))
			require.NoError(t, scheduler.Shutdown())
		}
		require.Zero(t, s.Do(t, "DBSIZE"))
	})
}

func TestTaskContextCanceledOnLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		name := redistest.Key(t)
		client := connect(t, s, redlatch.WithWatchdogTimeout(time.Second))
		freed, began, failed := make(chan error, 1), make(chan struct{}, 1), make(chan error, 1)
		l := newLocker(t, client, gocronredlatch.LockerConfig{OnError: func(lock string, err error) {
			assert.Equal(t, name, lock)
			freed <- err
		}})
		newScheduler(t, gocron.WithDistributedLocker(l), l.Task(func(ctx context.Context) error {
			began <- struct{}{}
			<-ctx.Done()
			return context.Cause(ctx)
		}), gocron.WithName(name), fails(failed))
		receive(t, began)
		_, err := rlock.New(client, name).ForceUnlock(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, receive(t, failed), redlatch.ErrLost)
		require.ErrorIs(t, receive(t, freed), redlatch.ErrLost)
	})
}

func TestTaskContextCanceledOnShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, failed := make(chan struct{}, 1), make(chan error, 1)
		l := newLocker(t, connect(t, redistest.Mini(t, embedded.WithInProcess())), gocronredlatch.LockerConfig{})
		scheduler := newScheduler(t, gocron.WithDistributedLocker(l), l.Task(func(ctx context.Context) error {
			began <- struct{}{}
			<-ctx.Done()
			failed <- context.Cause(ctx)
			return nil
		}), gocron.WithName(redistest.Key(t)))
		receive(t, began)
		require.NoError(t, scheduler.Shutdown())
		require.ErrorIs(t, receive(t, failed), context.Canceled)
	})
}

// A late tick arrives after the task has returned, as on a machine whose clock is behind.
func TestFinishedJobNotRepeatedWithinPeriod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		name := redistest.Key(t)
		config := gocronredlatch.LockerConfig{AtLeast: 3 * time.Second}
		here, there := newLocker(t, connect(t, s), config), newLocker(t, connect(t, s), config)
		began := time.Now()
		lock, err := here.Lock(t.Context(), name)
		require.NoError(t, err)
		require.NoError(t, lock.Unlock(t.Context()))
		for _, l := range []*gocronredlatch.Locker{there, here} {
			_, err = l.Lock(t.Context(), name)
			require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		}
		other, err := there.Lock(t.Context(), name+":other")
		require.NoError(t, err)
		require.NoError(t, other.Unlock(t.Context()))
		// Later the job runs again.
		require.Eventually(t, func() bool {
			lock, err = there.Lock(t.Context(), name)
			return err == nil
		}, soon, 50*time.Millisecond)
		require.GreaterOrEqual(t, time.Since(began), 3*time.Second)
		require.NoError(t, lock.Unlock(t.Context()))
	})
}

func TestTickRoundsToNearestPeriod(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at   time.Duration // since the start of the hour
		want time.Duration // how long the mark stays; 0 means that the tick is skipped
	}{
		{0, 30 * time.Minute},
		{time.Minute, 29 * time.Minute},
		{59 * time.Minute, 31 * time.Minute},
		{20 * time.Minute, 10 * time.Minute},
		{40 * time.Minute, 50 * time.Minute},
		{20*time.Minute + 1, 0},
		{30 * time.Minute, 0},
		{40*time.Minute - 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) { // starts on the hour
			s := redistest.Mini(t, embedded.WithInProcess())
			l := newLocker(t, connect(t, s), gocronredlatch.LockerConfig{Period: time.Hour})
			time.Sleep(c.at)
			lock, err := l.Lock(t.Context(), "job")
			if c.want == 0 {
				require.ErrorIs(t, err, gocronredlatch.ErrOffSchedule, c.at)
				return
			}
			require.NoError(t, err, c.at)
			require.EqualValues(t, c.want.Milliseconds()+1, s.Do(t, "PTTL", "job:ran"), c.at)
			require.NoError(t, lock.Unlock(t.Context()))
		})
	}
}

func TestFailedMarkReleasesLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		name := redistest.Key(t)
		s.Do(t, "SET", name+":ran", "no lock")
		l := newLocker(t, connect(t, s), gocronredlatch.LockerConfig{AtLeast: time.Hour})
		_, err := l.Lock(t.Context(), name)
		require.ErrorIs(t, err, redlatch.ErrWrongType)
		require.EqualValues(t, 1, s.Do(t, "DBSIZE"))
	})
}

func TestJobRequiresNameAndLocker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, connect(t, redistest.Mini(t, embedded.WithInProcess())), gocronredlatch.LockerConfig{})
		errs, called := make(chan error, 1), atomic.Bool{}
		task := l.Task(func(context.Context) error {
			called.Store(true)
			return nil
		})
		newScheduler(t, gocron.WithDistributedLocker(l), task, skips(errs))
		err := receive(t, errs)
		require.ErrorIs(t, err, redlatch.ErrInvalid)
		require.ErrorContains(t, err, "gocron.WithName")
		newScheduler(t, gocron.WithLocation(time.UTC), task, fails(errs))
		require.ErrorIs(t, receive(t, errs), redlatch.ErrNotHeld)
		require.False(t, called.Load())
	})
}

func TestConflictingConfigRejected(t *testing.T) {
	t.Parallel()
	for _, config := range []gocronredlatch.LockerConfig{{Period: -1}, {AtLeast: -1}, {Period: 1, AtLeast: 1}} {
		_, err := gocronredlatch.NewLocker(nil, config)
		require.ErrorIs(t, err, redlatch.ErrInvalid)
	}
	for _, config := range []gocronredlatch.ElectorConfig{{}, {Name: "jobs", Skew: -1}} {
		_, err := gocronredlatch.NewElector(nil, config)
		require.ErrorIs(t, err, redlatch.ErrInvalid)
	}
}

const (
	trialPeriod = 3 * time.Second
	trialLease  = time.Second
	// trialWork is how long a run takes.
	trialWork = 600 * time.Millisecond
)

func TestMain(m *testing.M) { trials.Main(m, schedule) }

// schedule runs a job once per period, as other processes do, until it is killed. It uses a Locker
// or an Elector.
func schedule(a trials.Args, steps *trials.Steps) error {
	ctx := context.Background()
	client, err := redlatch.Open(ctx, a.URL, redlatch.WithWatchdogTimeout(trialLease))
	if err != nil {
		return err
	}
	option, task, err := distributed(ctx, client, a.Name, a.Other)
	if err != nil {
		return err
	}
	scheduler, err := gocron.NewScheduler(option)
	if err != nil {
		return err
	}
	_, err = scheduler.NewJob(gocron.CronJob("*/3 * * * * *", true), task(func(ctx context.Context) error {
		return steps.Run(ctx, trialWork)
	}), gocron.WithName("job"), gocron.WithSingletonMode(gocron.LimitModeReschedule))
	if err != nil {
		return err
	}
	scheduler.Start()
	select {}
}

// distributed returns a scheduler option, and a function that returns its tasks.
func distributed(ctx context.Context, client *redlatch.Client, name string, elected bool) (gocron.SchedulerOption, func(func(context.Context) error) gocron.Task, error) {
	if elected {
		elector, err := gocronredlatch.NewElector(client, gocronredlatch.ElectorConfig{Name: name, Skew: trialPeriod / 10})
		if err != nil {
			return nil, nil, err
		}
		go func() { // until the process is killed
			fmt.Fprintln(os.Stderr, elector.Run(ctx))
			os.Exit(1)
		}()
		return gocron.WithDistributedElector(elector), elector.Task, nil
	}
	locker, err := gocronredlatch.NewLocker(client, gocronredlatch.LockerConfig{Prefix: name + ":", Period: trialPeriod})
	if err != nil {
		return nil, nil, err
	}
	return gocron.WithDistributedLocker(locker), locker.Task, nil
}
