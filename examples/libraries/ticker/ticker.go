// Package ticker works at each tick of a time.Ticker, in one process of many. Copy it.
//
//	err := leader.Run(ctx, client, "sweeper", leader.Config{Lead: ticker.Lead(time.Minute, sweep)})
package ticker

import (
	"context"
	"time"
)

// Lead returns a function for leader.Config that works each time that the period is over, while this
// process leads. Work should return soon after ctx ends: by then another process may lead. An error
// of work ends leader.Run, unless ctx has ended. What differs between machines is when the ticks come:
// after a change of the leader one comes within two periods.
func Lead(period time.Duration, work func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(period)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				// Both may be ready: a tick that was due while the process was stopped.
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
