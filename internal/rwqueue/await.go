package rwqueue

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
)

// await waits in the queue until the caller may ask. The next writer asks Redis now and then,
// in case the hold that it waits for is one that Redis has forgotten; a reader is the leader
// then.
func (c *caller) await(ctx context.Context, a *acquire.Acquisition) (granted bool, err error) {
	a.Answered = c.state().known
	if err := a.BeginWait(); err != nil {
		return false, err
	}
	due := deadlines{silence: a.Began.Add(a.Engine.Command), poll: time.Now().Add(c.pollEvery(a))}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		err := a.Sleep(ctx, timer, due.next())
		if c.woken {
			a.Answered = a.Answered || c.state().known
			return false, nil
		}
		if err == nil {
			granted, err = c.look(ctx, a, &due)
		} else if ctx.Err() != nil {
			err = c.gaveUp(ctx, a)
		}
		if granted || err != nil {
			return granted, err
		}
	}
}

// pollEvery returns how often the caller looks whether it should ask.
func (c *caller) pollEvery(a *acquire.Acquisition) time.Duration {
	if c.reads {
		return min(patience, a.Engine.PollCap)
	}
	return a.Engine.PollCap
}

// deadlines are when a caller that waits has something to look at.
type deadlines struct {
	silence time.Time // when Redis must have answered a caller; zero: that was looked at
	poll    time.Time
}

// next returns how long it is until the first of them.
func (d *deadlines) next() time.Duration {
	first := d.poll
	if !d.silence.IsZero() && d.silence.Before(first) {
		first = d.silence
	}
	return max(0, time.Until(first))
}

// look does what is due for a caller that waits.
func (c *caller) look(ctx context.Context, a *acquire.Acquisition, due *deadlines) (granted bool, err error) {
	now := time.Now()
	if !due.silence.IsZero() && !now.Before(due.silence) {
		due.silence = time.Time{}
		if s := c.state(); !s.known && !a.Answered {
			return false, silent(s)
		}
	}
	if now.Before(due.poll) {
		return false, nil
	}
	due.poll = now.Add(c.pollEvery(a))
	q := c.queue
	q.mu.Lock()
	if c.reads {
		q.promote(now)
		q.mu.Unlock()
		return false, nil
	}
	asks := q.state.held && len(q.writers) > 0 && q.writers[0] == c
	q.mu.Unlock()
	if !asks {
		return false, nil // another caller asks
	}
	return a.Peek(ctx)
}

// gaveUp returns why a wait in the queue ended with ctx.
func (c *caller) gaveUp(ctx context.Context, a *acquire.Acquisition) error {
	c.learn(a)
	s := c.state()
	a.Away = s.away
	if a.Away == nil && !s.known {
		a.Away = silent(s)
	}
	return a.GaveUp(ctx)
}
