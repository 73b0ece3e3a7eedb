package localqueue

import (
	"context"

	"github.com/redlatch/redlatch/internal/acquire"
)

// queued is a caller while it waits for the turn.
type queued struct {
	caller *caller
	queue  *Queue
}

// awaitTurn waits for the turn, which has come when it returns neither true nor an error.
func (c *caller) awaitTurn(ctx context.Context, a *acquire.Acquisition, q *Queue, place *Waiter) (granted bool, err error) {
	c.place = place
	defer func() { c.place = nil }()
	if granted, err = a.AwaitTurn(ctx, queued{c, q}, a.Engine.PollCap); granted || err != nil {
		q.Quit(place)
	}
	return granted, err
}

// State is part of acquire.Queued.
func (c queued) State() acquire.QueueState { return c.queue.State() }

// Came is part of acquire.Queued.
func (c queued) Came() bool { return c.caller.turn }

// Poll is part of acquire.Queued: the next caller in the queue asks.
func (c queued) Poll(ctx context.Context, a *acquire.Acquisition) (granted bool, err error) {
	q, place := c.queue, c.caller.place
	if !q.IsNext(place) || !q.State().Held {
		return false, nil // another caller asks
	}
	q.Asks(place, true)
	defer q.Asks(place, false)
	return a.Peek(ctx)
}
