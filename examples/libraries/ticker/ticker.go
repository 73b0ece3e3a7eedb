// Package ticker runs work at each tick of a time.Ticker, in a single process out of many. Copy it
// into your program.
//
//	err := leader.Run(ctx, client, "sweeper", leader.Config{Lead: ticker.Lead(time.Minute, sweep)})
package ticker

import (
	"context"
	"time"
)

// Lead returns a function for leader.Config that runs work once per period while this process
// leads. work should return soon after ctx ends, because another process may lead by then. Unless
// ctx has ended, an error from work ends leader.Run. Ticks are not aligned between machines. After
// a change of leader, the next tick comes within two periods.
func Lead(period time.Duration, work func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(period)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				// If the process was paused, both channels may be ready.
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
