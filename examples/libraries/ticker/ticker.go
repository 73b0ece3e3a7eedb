// Package ticker runs work at each tick of a time.Ticker, in one process of many. Copy it.
//
//	err := leader.Run(ctx, client, "sweeper", leader.Config{Lead: ticker.Lead(time.Minute, sweep)})
package ticker

import (
	"context"
	"time"
)

// Lead returns a function for leader.Config that runs work once per period while this process leads. work
// should return soon after ctx ends, because another process may lead by then. An error of work ends
// leader.Run, unless ctx has ended. Ticks are not aligned between machines: after a change of leader, the
// next tick comes within two periods.
func Lead(period time.Duration, work func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(period)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				// After a pause of the process, both channels may be ready.
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err := work(ctx); err != nil {
					return err
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}
