package engine

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/backoff"
)

// Backoff is what all attempts at something that fails are spaced by.
type Backoff = backoff.Backoff

// Retry runs do until it returns anything but an error that says the call did
// not run and may succeed later. It gives up after one command timeout, when ctx
// ends, and when the client closes, with the last error that gives a reason.
func (e *Engine) Retry(ctx context.Context, do func() error) error {
	return e.RetrySince(ctx, time.Now(), do)
}

// RetrySince is Retry for what began at began.
func (e *Engine) RetrySince(ctx context.Context, began time.Time, do func() error) error {
	var pause Backoff
	var reason error
	for {
		err := do()
		if reason != nil && errors.Is(err, errNotYet) {
			err = reason
		}
		reason = err
		if !Passing(err) || ctx.Err() != nil || e.IsClosing() {
			return err
		}
		left := e.Command - time.Since(began)
		if left <= 0 || !e.Sleep(ctx, min(left, pause.Next())) {
			return err
		}
	}
}
