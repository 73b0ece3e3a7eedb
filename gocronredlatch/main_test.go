package gocronredlatch_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/gocronredlatch"
	"github.com/redlatch/redlatch/internal/test/trials"
)

const (
	trialPeriod = 3 * time.Second
	trialLease  = time.Second
	// trialWork is how long a run takes.
	trialWork = 600 * time.Millisecond
)

func TestMain(m *testing.M) { trials.Main(m, schedule) }

// schedule does a job each period, with other processes, until it is killed. The other way is with an
// Elector.
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
