package gocronredlatch_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/gocronredlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// asScheduler has, for a process that schedules, the URL of the server, the name of the job, whether
// it has an Elector, and the file of steps.
const asScheduler = "REDLATCH_GOCRON_SCHEDULER"

const (
	trialPeriod = 3 * time.Second
	trialLease  = time.Second
	// trialWork is how long a run takes.
	trialWork = 600 * time.Millisecond
)

func TestMain(m *testing.M) {
	if args := strings.Fields(os.Getenv(asScheduler)); len(args) == 4 {
		if err := schedule(args[0], args[1], args[2] == "true", args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Trials wait for ticks, most of the time.
	parallel := flag.Lookup("test.parallel").Value // not what the command line says, yet
	if n, err := strconv.Atoi(parallel.String()); err == nil && n < 12 {
		_ = parallel.Set("12") // it takes any number
	}
	redistest.Main(m)
}

// schedule does a job each period, with other processes, until it is killed.
func schedule(url, name string, elected bool, file string) error {
	ctx := context.Background()
	client, err := redlatch.Open(ctx, url, redlatch.WithWatchdogTimeout(trialLease))
	if err != nil {
		return err
	}
	steps, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	option, task, err := distributed(ctx, client, name, elected)
	if err != nil {
		return err
	}
	scheduler, err := gocron.NewScheduler(option)
	if err != nil {
		return err
	}
	runs := 0
	_, err = scheduler.NewJob(gocron.CronJob("*/3 * * * * *", true), task(func(ctx context.Context) error {
		runs++
		return work(ctx, steps, runs)
	}), gocron.WithName("job"), gocron.WithSingletonMode(gocron.LimitModeReschedule))
	if err != nil {
		return err
	}
	scheduler.Start()
	select {}
}

// distributed returns the option of a scheduler, and what makes its tasks.
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

// work writes a step every few milliseconds.
func work(ctx context.Context, steps *os.File, run int) error {
	const pause = 5 * time.Millisecond
	for range trialWork / pause { // however late it is: only the context ends a run that was stalled
		time.Sleep(pause)
		// A step counts for the time at which the context was still to be asked: the process may be
		// stopped between the question and the step.
		now := time.Now()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := fmt.Fprintf(steps, "%d %d.%d\n", now.UnixNano(), os.Getpid(), run); err != nil {
			return err
		}
	}
	return nil
}
