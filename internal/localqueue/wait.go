package localqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
)

// awaitTurn waits for the turn, which has come when it returns neither true nor an error. The
// next caller in the queue asks Redis now and then, in case the hold that it waits for is
// one that Redis has forgotten.
func (c *caller) awaitTurn(ctx context.Context, a *acquire.Acquisition, q *Queue, place *Waiter) (granted bool, err error) {
	a.Answered = q.State().Known
	if err := a.BeginWait(); err != nil {
		q.Quit(place)
		return false, err
	}
	c.place = place
	defer func() { c.place = nil }()
	due := deadlines{silence: a.Began.Add(a.Engine.Command), poll: time.Now().Add(a.Engine.PollCap)}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		err := a.Sleep(ctx, timer, due.next())
		if c.turn {
			a.Answered = a.Answered || q.State().Known
			return false, nil
		}
		if err == nil {
			granted, err = c.look(ctx, a, q, &due)
		} else if ctx.Err() != nil {
			err = c.gaveUp(ctx, a, q.State())
		}
		if granted || err != nil {
			q.Quit(place)
			return granted, err
		}
	}
}

// deadlines are when a queued caller has something to look at. They share a timer, for
// there may be thousands of callers.
type deadlines struct {
	silence time.Time // when Redis must have answered a caller; zero: that was looked at
	poll    time.Time // when the next in the queue asks
}

// next returns how long it is until the first of them.
func (d *deadlines) next() time.Duration {
	first := d.poll
	if !d.silence.IsZero() && d.silence.Before(first) {
		first = d.silence
	}
	return max(0, time.Until(first))
}

// look does what is due for a queued caller: it may find that Redis is silent, or that the
// lock is free.
func (c *caller) look(ctx context.Context, a *acquire.Acquisition, q *Queue, due *deadlines) (granted bool, err error) {
	now := time.Now()
	if !due.silence.IsZero() && !now.Before(due.silence) {
		due.silence = time.Time{}
		if state := q.State(); !state.Known && !a.Answered {
			return false, silent(state)
		}
	}
	if now.Before(due.poll) {
		return false, nil
	}
	due.poll = now.Add(a.Engine.PollCap)
	if !q.IsNext(c.place) || !q.State().Held {
		return false, nil // another caller asks
	}
	q.Asks(c.place, true)
	defer q.Asks(c.place, false)
	return a.Peek(ctx)
}

// gaveUp returns why a wait in the queue ended with ctx.
func (c *caller) gaveUp(ctx context.Context, a *acquire.Acquisition, state State) error {
	learn(a, state)
	a.Away = state.Away
	if a.Away == nil && !state.Known {
		a.Away = silent(state)
	}
	return a.GaveUp(ctx)
}

// silent is the error of a queued caller that Redis has not answered yet.
func silent(state State) error {
	if state.Away != nil {
		return state.Away
	}
	return fmt.Errorf("%w: earlier attempts of this process are still unanswered", engine.ErrNotSent)
}
