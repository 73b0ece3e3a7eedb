package core

import (
	"context"
	"errors"

	"github.com/redlatch/redlatch/transport"
)

var errCrowded = errors.New("as many callers wait as WithMaxWaiters allows")

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

// Listeners returns how many connections listen to a channel, or false when that
// cannot be found out.
func (e *Engine) Listeners(ctx context.Context, channel string) (int, bool) {
	c, ok := e.Transport.(transport.Counter)
	if !ok {
		return 0, false
	}
	n, err := c.Listeners(ctx, channel)
	return int(n), err == nil
}
