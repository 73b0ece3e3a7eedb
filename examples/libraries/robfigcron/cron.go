// Package robfigcron runs a github.com/robfig/cron scheduler in a single process out of many. Copy
// it into your program.
//
//	err := leader.Run(ctx, client, "cron", leader.Config{Lead: robfigcron.Lead(func(ctx context.Context, c *cron.Cron) error {
//		_, err := c.AddFunc("@hourly", func() { report(ctx) })
//		return err
//	})})
package robfigcron

import (
	"context"

	"github.com/robfig/cron/v3"
)

// Lead returns a function for leader.Config that runs a cron while this process leads. Each
// leadership has its own cron, to which add adds the jobs. Jobs should return soon after ctx ends,
// because another process may lead by then. An error from add ends leader.Run.
func Lead(add func(ctx context.Context, c *cron.Cron) error, opts ...cron.Option) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		c := cron.New(opts...)
		if err := add(ctx, c); err != nil {
			return err
		}
		c.Start()
		<-ctx.Done()
		<-c.Stop().Done() // the jobs have returned
		return context.Cause(ctx)
	}
}
