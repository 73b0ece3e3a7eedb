package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/clock"
)

// Backoff is what all attempts at something that fails are spaced by.
type Backoff = clock.Backoff

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

// Reason returns why a call failed that failed before, because of earlier, and now because of err:
// that it was not sent before the time or ctx was over says less than an earlier error does.
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

// notSentSince returns err, the error of the last of several attempts since began. If it says
// only how long that attempt was not sent, the result says for how long none was.
func notSentSince(began time.Time, err error) error {
	if !errors.Is(err, errNotYet) {
		return err
	}
	return fmt.Errorf("%w: %w within %v", ErrNotSent, errNotYet, time.Since(began).Round(time.Millisecond))
}

// Persist makes attempts until one has an answer, or an error that no repetition helps against, for
// bound at most. Try gets what is left of bound. Open says that an attempt before the last may have
// done something. A caller that may run when the client is closed must have joined the engine.
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
