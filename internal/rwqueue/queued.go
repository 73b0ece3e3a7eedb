package rwqueue

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
)

// pollEvery returns how often a caller that waits looks whether it should ask.
func (c *caller) pollEvery(a *acquire.Acquisition) time.Duration {
	if c.reads {
		return min(patience, a.Engine.PollCap)
	}
	return a.Engine.PollCap
}

func (c *caller) State() acquire.QueueState {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	return c.queue.state
}

func (c *caller) Came() bool { return c.woken }

// Poll is part of acquire.Queued: the next writer asks, and where no reader leads the others one
// becomes the leader.
func (c *caller) Poll(ctx context.Context, a *acquire.Acquisition) (granted bool, err error) {
	q := c.queue
	q.mu.Lock()
	if c.reads {
		q.promote(time.Now())
		q.mu.Unlock()
		return false, nil
	}
	asks := q.state.Held && len(q.writers) > 0 && q.writers[0] == c
	q.mu.Unlock()
	if !asks {
		return false, nil // another caller asks
	}
	return a.Peek(ctx)
}
