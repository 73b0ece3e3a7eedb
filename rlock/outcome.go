package rlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/engine"
)

// gaveUp returns why the wait ended with ctx.
func (a *acquisition) gaveUp(ctx context.Context) error {
	switch {
	case a.away != nil:
		return withEnd(ctx, a.away)
	case errors.Is(context.Cause(ctx), engine.ErrWaitOver):
		return redlatch.ErrNotAcquired
	}
	return fmt.Errorf("%w: %w", redlatch.ErrNotAcquired, engine.EndOf(ctx))
}

// failed makes the error of the call out of what went wrong.
func (a *acquisition) failed(err error) error {
	le := &redlatch.LockError{Op: a.op, Name: a.lock.name, Err: engine.Explain(err)}
	if a.hold != nil {
		le.Owner = a.hold.tenure.owner
	}
	if errors.Is(err, redlatch.ErrNotAcquired) {
		le.Holder, le.TTL = a.holder, max(a.ttl, 0)
	}
	return le
}

// withEnd adds the context's error to err if ctx has ended and err does not say.
func withEnd(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ctx.Err()) || errors.Is(context.Cause(ctx), engine.ErrWaitOver) {
		return err
	}
	return fmt.Errorf("%w: %w", err, engine.EndOf(ctx))
}
