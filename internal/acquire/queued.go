package acquire

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
)

// QueueState is what the queue of a process knows about its lock.
type QueueState struct {
	// Known is true when Redis has answered since the queue began.
	Known bool
	// Held is true while a caller of this process holds the lock, and so no other process.
	Held bool
	// Away is why Redis did not answer the last attempt, nil when it did.
	Away error
	// Holder is the owner that held the lock at the last answer, the zero Owner
	// if that is not known, and TTL how long its lease had left then, 0 for a
	// hold of this process.
	Holder codec.Owner
	TTL    time.Duration
}

// Queued is a caller that waits in a queue of its process, and leaves it to others to ask Redis.
type Queued interface {
	// State returns what the queue knows.
	State() QueueState
	// Came reports whether the caller was woken for good: it may ask now.
	Came() bool
	// Poll does what is due every so often, and may be called more often. It returns true when
	// the caller has the lock.
	Poll(ctx context.Context, a *Acquisition) (granted bool, err error)
}

// AwaitTurn waits for c's turn in a queue, which has come when it returns neither true nor an
// error. Every so often c polls: the hold that it waits for may be one that Redis has forgotten.
// With every 0 it polls whenever its sleep ends. A caller that finds that Redis has answered none
// of the queue for a command timeout gives up.
func (a *Acquisition) AwaitTurn(ctx context.Context, c Queued, every time.Duration) (granted bool, err error) {
	a.Answered = c.State().Known
	if err := a.BeginWait(); err != nil {
		return false, err
	}
	var due deadlines
	if !a.Answered {
		due.silence = a.Began.Add(a.Engine.Command)
	}
	if every > 0 {
		due.poll = time.Now().Add(every)
	}
	for {
		err := a.Sleep(ctx, due.next())
		if c.Came() {
			a.Answered = a.Answered || c.State().Known
			return false, nil
		}
		if err == nil {
			granted, err = a.look(ctx, c, &due, every)
		} else if ctx.Err() != nil {
			err = a.gaveUpInQueue(ctx, c.State())
		}
		if granted || err != nil {
			return granted, err
		}
	}
}

// countPatience is how long counting the listeners may delay a caller that has its turn.
const countPatience = 200 * time.Millisecond

// Listeners counts the subscribers of the lock's channel, this process among them if it
// subscribes. It returns false when that cannot be found out soon.
func (a *Acquisition) Listeners(ctx context.Context) (n int, counted bool) {
	ctx, cancel := context.WithTimeout(ctx, countPatience)
	defer cancel()
	counts, err := a.Engine.Listeners(ctx, a.Kind.Channel(nil))
	if err != nil {
		a.Engine.Lacks("+pubsub|numsub +role", "waiters of other processes cannot be counted: this process yields to them on suspicion", err)
		return 0, false
	}
	return int(counts[0]), true
}

// Learn takes over what a queue knows of the holder.
func (a *Acquisition) Learn(s QueueState) {
	if !s.Holder.IsZero() {
		a.Holder, a.TTL = s.Holder, s.TTL
	}
}

// IsLate returns an error for a caller whose turn has come after those before it have just
// failed: its attempt would end long after a command timeout since the call began.
func (a *Acquisition) IsLate(ctx context.Context, s QueueState) error {
	if s.Away != nil && !a.Answered && time.Since(a.Began) >= a.Engine.Command/2 {
		return engine.WithEnd(ctx, s.Away)
	}
	return nil
}

// deadlines are when a queued caller has something to look at. They share a timer, for
// there may be thousands of callers.
type deadlines struct {
	silence time.Time // when Redis must have answered a caller; zero: it has, or that was looked at
	poll    time.Time // zero: the queue says when
}

// next returns how long it is until the first of them, below 0 if there is none.
func (d *deadlines) next() time.Duration {
	first := d.poll
	if first.IsZero() || !d.silence.IsZero() && d.silence.Before(first) {
		first = d.silence
	}
	if first.IsZero() {
		return -1
	}
	return max(0, time.Until(first))
}

// look does what is due for a queued caller: it may find that Redis is silent, or that the
// lock is free.
func (a *Acquisition) look(ctx context.Context, c Queued, due *deadlines, every time.Duration) (granted bool, err error) {
	now := time.Now()
	if !due.silence.IsZero() && !now.Before(due.silence) {
		due.silence = time.Time{}
		if s := c.State(); !s.Known && !a.Answered {
			return false, s.silent()
		}
	}
	if now.Before(due.poll) {
		return false, nil
	}
	if every > 0 {
		due.poll = now.Add(every)
	}
	return c.Poll(ctx, a)
}

// gaveUpInQueue returns why a wait in a queue ended with ctx.
func (a *Acquisition) gaveUpInQueue(ctx context.Context, s QueueState) error {
	a.Learn(s)
	a.Away = s.Away
	if a.Away == nil && !s.Known {
		a.Away = s.silent()
	}
	return a.GaveUp(ctx)
}

// silent is the error of a queued caller that Redis has not answered yet.
func (s QueueState) silent() error {
	if s.Away != nil {
		return s.Away
	}
	return fmt.Errorf("%w: earlier attempts of this process are still unanswered", engine.ErrNotSent)
}
