package engine

import (
	"context"
	"sync/atomic"
)

// inFlight counts work that Close waits for. Unlike a WaitGroup it can be waited
// for with a context, and counted up while a caller waits.
type inFlight struct {
	n       atomic.Int64
	waiting atomic.Bool
	zero    chan struct{} // one slot: n was zero while a caller waited
}

func (t *inFlight) add(n int64) {
	if t.n.Add(n) == 0 && t.waiting.Load() {
		select {
		case t.zero <- struct{}{}:
		default:
		}
	}
}

// wait returns when the inFlight is zero or ctx ends. One waiter at a time.
func (t *inFlight) wait(ctx context.Context) {
	t.waiting.Store(true)
	defer t.waiting.Store(false)
	for t.n.Load() != 0 {
		select {
		case <-t.zero:
		case <-ctx.Done():
			return
		}
	}
}
