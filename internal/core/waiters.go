package core

import (
	"context"
	"errors"

	"github.com/redlatch/redlatch/transport"
)

var (
	errCrowded   = errors.New("as many callers wait as WithMaxWaiters allows")
	errNoCounter = errors.New("redlatch: the transport cannot tell who listens")
)

// BeginWait counts a caller in who is about to wait. It returns an error when as
// many wait as are allowed. Each that returned nil needs an EndWait.
func (e *Engine) BeginWait() error {
	if n := e.waiters.Add(1); e.MaxWaiters > 0 && n > e.MaxWaiters {
		e.waiters.Add(-1)
		return errCrowded
	}
	return nil
}

// EndWait counts a caller out.
func (e *Engine) EndWait() { e.waiters.Add(-1) }

// Listeners returns how many connections listen to each of channels, in their
// order, or an error when that cannot be found out. It is [transport.Counter]'s,
// of a transport that is one.
func (e *Engine) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	c, ok := e.Transport.(transport.Counter)
	if !ok {
		return nil, errNoCounter
	}
	return c.Listeners(ctx, channels...)
}
