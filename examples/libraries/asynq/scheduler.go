// Package asynq runs an asynq.Scheduler in a single process out of many, so that each task is
// enqueued once. If that process crashes, another continues. Copy it into your program.
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
// leadership has its own scheduler, to which register adds the tasks. An error from register ends
// leader.Run.
//
// Asynq enqueues without a context, so a paused process may still enqueue a task while another
// process leads. asynq.Unique makes asynq reject the second task. Its duration must be longer than
// the difference between the clocks and shorter than the time between two tasks.
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
