// This program does a job once, under the lock of its name.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/gocronredlatch"
)

func run(ctx context.Context, url string) (err error) {
	client, err := redlatch.Open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	locker, err := gocronredlatch.NewLocker(client, gocronredlatch.LockerConfig{AtLeast: time.Minute})
	if err != nil {
		return err
	}
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	task := locker.Task(func(ctx context.Context) error {
		done <- ctx.Err()
		return nil
	})
	_, err = scheduler.NewJob(gocron.DurationJob(time.Hour), task, gocron.WithName("stranger"), gocron.WithStartAt(gocron.WithStartImmediately()))
	if err != nil {
		return err
	}
	scheduler.Start()
	return errors.Join(<-done, scheduler.Shutdown())
}
