package worker

import (
	"context"
	"sync"
	"time"
)

// cancelGroup are callers that are cancelled all at once.
type cancelGroup struct {
	mu     sync.Mutex // guards what follows
	ctx    context.Context
	cancel context.CancelFunc
}

// context returns one that ends with the next scattering.
func (c *cancelGroup) context() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithCancel(context.Background())
	}
	return c.ctx
}

// cancelAll ends the contexts of all callers that have joined, before any of them can leave.
func (c *cancelGroup) cancelAll() {
	c.mu.Lock()
	cancel := c.cancel
	c.ctx, c.cancel = nil, nil
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// cancelAllIn does that after a time that is too short for a timer.
func (c *cancelGroup) cancelAllIn(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
		continue
	}
	c.cancelAll()
}
