package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/clock"
)

// Backoff spaces all retries.
type Backoff = clock.Backoff

// Retry calls do until it returns anything but a [Passing] error, for one command timeout, or
// until ctx ends or the client closes. It returns the last error that names a reason.
func (e *Engine) Retry(ctx context.Context, do func() error) error {
	return e.RetrySince(ctx, time.Now(), do)
}

// RetrySince is Retry for a call that began at began.
func (e *Engine) RetrySince(ctx context.Context, began time.Time, do func() error) error {
	var pause Backoff
	var reason error
	for {
		err := Reason(ctx, reason, do())
		reason = err
		if !Passing(err) || ctx.Err() != nil || e.IsClosing() {
			return err
		}
		left := e.Command - time.Since(began)
		if left <= 0 || !e.Sleep(ctx, min(left, pause.Next())) {
			return notSentSince(began, err)
		}
	}
}

// Reason returns err, or the error of an earlier attempt if err says only that time ran out
// before the call was sent.
func Reason(ctx context.Context, earlier, err error) error {
	switch {
	case earlier == nil || !errors.Is(err, ErrNotSent):
		return err
	case errors.Is(err, errNotYet):
		return earlier
	case ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, ErrWaitOver)):
		return WithEnd(ctx, earlier)
	}
	return err
}

// notSentSince returns the last error of several attempts since began. If it says only that the
// attempt was not sent in time, the result names the total time.
func notSentSince(began time.Time, err error) error {
	if !errors.Is(err, errNotYet) {
		return err
	}
	return fmt.Errorf("%w: %w within %v", ErrNotSent, errNotYet, time.Since(began).Round(time.Millisecond))
}

// Persist calls try until it succeeds or fails for good, for at most bound. Try receives the
// rest of bound. Open reports that an attempt before the last may have run. Callers that may
// run while the client closes must have joined the engine.
func (e *Engine) Persist(bound time.Duration, try func(rest time.Duration) error) (open bool, err error) {
	began, rest := time.Now(), bound
	var pause Backoff
	for {
		err = try(rest)
		switch {
		case err == nil:
			return open, nil
		case errors.Is(err, ErrUncertain):
			open = true
		case !Passing(err):
			return open, err
		}
		d := pause.Next()
		if time.Since(began)+d >= bound || !e.Wait(d) {
			return open, notSentSince(began, err)
		}
		rest = bound - time.Since(began)
	}
}
