// Package observed provides observers that pass all events to one function.
package observed

import (
	"context"

	"github.com/redlatch/redlatch"
)

// Opened is the event for a new client.
type Opened struct {
	Client *redlatch.Client
}

// Closed is the event for a closed client.
type Closed struct {
	Client *redlatch.Client
}

// By returns an observer that passes all events to see, and that returns the contexts that see returns.
func By(see func(ctx context.Context, event any) context.Context) redlatch.Observer {
	alone := func(event any) { see(context.Background(), event) }
	return redlatch.Observer{
		Opened:      func(c *redlatch.Client) { alone(Opened{c}) },
		Closed:      func(c *redlatch.Client) { alone(Closed{c}) },
		Started:     func(ctx context.Context, e redlatch.Started) context.Context { return see(ctx, e) },
		Attempted:   func(ctx context.Context, e redlatch.Attempted) { see(ctx, e) },
		Queued:      func(ctx context.Context, e redlatch.Queued) { see(ctx, e) },
		Woken:       func(ctx context.Context, e redlatch.Woken) { see(ctx, e) },
		Acquired:    func(ctx context.Context, e redlatch.Acquired) context.Context { return see(ctx, e) },
		NotAcquired: func(ctx context.Context, e redlatch.NotAcquired) { see(ctx, e) },
		DoStarted:   func(ctx context.Context, e redlatch.DoStarted) context.Context { return see(ctx, e) },
		DoEnded:     func(ctx context.Context, e redlatch.DoEnded) { see(ctx, e) },
		Ended:       func(ctx context.Context, e redlatch.Ended) { see(ctx, e) },
		Released:    func(ctx context.Context, e redlatch.Released) { see(ctx, e) },
		Renewed:     func(e redlatch.Renewed) { alone(e) },
		Evicted:     func(e redlatch.Evicted) { alone(e) },
		Reconnected: func(e redlatch.Reconnected) { alone(e) },
	}
}

// Outcomes returns an observer that passes only final events to see.
func Outcomes(see func(event any)) redlatch.Observer {
	return redlatch.Observer{
		Acquired:    func(ctx context.Context, e redlatch.Acquired) context.Context { see(e); return ctx },
		NotAcquired: func(_ context.Context, e redlatch.NotAcquired) { see(e) },
		Ended:       func(_ context.Context, e redlatch.Ended) { see(e) },
		Released:    func(_ context.Context, e redlatch.Released) { see(e) },
		Woken: func(_ context.Context, e redlatch.Woken) {
			if e.By == "gap" {
				see(e)
			}
		},
		Renewed:     func(e redlatch.Renewed) { see(e) },
		Evicted:     func(e redlatch.Evicted) { see(e) },
		Reconnected: func(e redlatch.Reconnected) { see(e) },
	}
}
