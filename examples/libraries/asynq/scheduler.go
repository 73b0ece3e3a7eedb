// Package asynq runs an asynq.Scheduler in one process of many, so that each task is enqueued once,
// and goes on being enqueued when that process dies. Copy it.
//
//	err := leader.Run(ctx, client, "scheduler", leader.Config{Lead: asynq.Lead(redis, func(s *asynq.Scheduler) error {
//		_, err := s.Register("@hourly", asynq.NewTask("report", nil), asynq.Unique(time.Minute))
//		return err
//	})})
package asynq

import (
	"context"

	"github.com/hibiken/asynq"
)

// Lead returns a function for leader.Config that runs a scheduler while this process leads. Each
// leadership has a scheduler of its own, to which register gives the tasks; its error ends
// leader.Run.
//
// Asynq enqueues without a context: a process that was stopped in the middle may still enqueue a task
// when another one leads. asynq.Unique, for longer than the clocks differ and shorter than the time
// between two tasks, has asynq refuse the second one.
func Lead(redis asynq.RedisConnOpt, register func(s *asynq.Scheduler) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		s := asynq.NewScheduler(redis, &asynq.SchedulerOpts{})
		if err := register(s); err != nil {
			return err
		}
		if err := s.Start(); err != nil {
			return err
		}
		<-ctx.Done()
		s.Shutdown()
		return context.Cause(ctx)
	}
}
