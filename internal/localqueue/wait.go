package localqueue

import (
	"context"

	"github.com/redlatch/redlatch/internal/acquire"
)

// awaitTurn waits for the turn, which has come when it returns neither true nor an error.
func (c *caller) awaitTurn(ctx context.Context, a *acquire.Acquisition, q *Queue, place *Waiter) (granted bool, err error) {
	c.waitsIn, c.place = q, place
	defer func() { c.waitsIn, c.place = nil, nil }()
	if granted, err = a.AwaitTurn(ctx, c, 0); granted || err != nil {
		q.Quit(place)
	}
	return granted, err
}

func (c *caller) State() acquire.QueueState { return c.waitsIn.State() }
func (c *caller) Came() bool                { return c.turn }

// Poll is part of acquire.Queued: the next caller in the queue asks. The queue wakes it for that.
func (c *caller) Poll(ctx context.Context, a *acquire.Acquisition) (granted bool, err error) {
	q, place := c.waitsIn, c.place
	if !q.IsNext(place) || !q.State().Held {
		return false, nil // another caller asks
	}
	q.Asks(place, true)
	defer q.Asks(place, false)
	return a.Peek(ctx)
}
