package gocronredlatch_test

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/gocronredlatch"
)

// report is the job.
func report(ctx context.Context) error { return ctx.Err() }

// The processes share the jobs: every hour, one process reports.
func ExampleNewLocker() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	serve := func() error {
		client, err := redlatch.Open(ctx, "redis://localhost:6379")
		if err != nil {
			return err
		}
		defer client.Close() //nolint:errcheck // it ends the program
		locker, err := gocronredlatch.NewLocker(client, gocronredlatch.LockerConfig{Period: time.Hour})
		if err != nil {
			return err
		}
		scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker), gocron.WithLocation(time.UTC))
		if err != nil {
			return err
		}
		_, err = scheduler.NewJob(gocron.CronJob("0 * * * *", false), locker.Task(report), gocron.WithName("report"))
		if err != nil {
			return err
		}
		scheduler.Start()
		<-ctx.Done()
		return scheduler.Shutdown() // before the client is closed
	}
	if err := serve(); err != nil {
		log.Print(err)
	}
}

// One process leads and runs all jobs.
func ExampleNewElector() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	serve := func() error {
		client, err := redlatch.Open(ctx, "redis://localhost:6379")
		if err != nil {
			return err
		}
		defer client.Close() //nolint:errcheck // it ends the program
		elector, err := gocronredlatch.NewElector(client, gocronredlatch.ElectorConfig{Name: "jobs", Skew: 5 * time.Second})
		if err != nil {
			return err
		}
		scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
		if err != nil {
			return err
		}
		if _, err := scheduler.NewJob(gocron.DurationJob(time.Minute), elector.Task(report)); err != nil {
			return err
		}
		scheduler.Start()
		defer scheduler.Shutdown() //nolint:errcheck // it ends the program
		return elector.Run(ctx)    // until SIGTERM: then tasks end, and another process leads
	}
	if err := serve(); err != nil {
		log.Print(err)
	}
}
