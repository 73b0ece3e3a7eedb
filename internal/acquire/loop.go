package acquire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

// Overdue is how long a reply may take before its absence says something about Redis.
const Overdue = 500 * time.Millisecond

// wait tries again whenever the lock may have become free, until the caller has it or there
// is a reason to stop. It listens before each attempt, so that a release after it is heard.
func (a *Acquisition) wait(ctx context.Context) error {
	var pause engine.Backoff
	if events, _ := a.waiter.Signals(); events != nil && a.Away == nil {
		// It listened when it was refused: nothing was missed. One without an answer asks again.
		if err := a.Sleep(ctx, a.napFor()); err != nil {
			return err
		}
	}
	for {
		if ctx.Err() != nil {
			return a.GaveUp(ctx)
		}
		if !a.Deaf {
			if err := a.waiter.Listen(ctx, a); err != nil {
				return err
			}
		}
		began := time.Now()
		granted, err := a.Attempt(ctx)
		var d time.Duration
		switch {
		case granted:
			return nil
		case err == nil:
			d, pause = a.napFor(), engine.Backoff{}
		case a.cutShort(ctx, err, began):
			return a.GaveUp(ctx)
		case a.rides(err):
			// Redis is away, which is no reason to stop waiting.
			a.isAway(ctx, err)
			d = pause.Next()
		default:
			return err
		}
		if err := a.Sleep(ctx, d); err != nil {
			return err
		}
	}
}

// Sleep waits for a reason to ask again: an event, a wake-up, or the end of d, if that is not
// below 0. It returns an error when there is a reason to stop.
func (a *Acquisition) Sleep(ctx context.Context, d time.Duration) error {
	over := a.after(d)
	for {
		var ask bool
		var again time.Duration
		events, wake := a.waiter.Signals()
		select {
		case event, works := <-events:
			if !works {
				return a.waiter.Broken()
			}
			if ask, again = a.waiter.OnEvent(a, event); ask {
				a.observeEvent(event)
			}
		case <-wake:
			if ask, again = a.waiter.Woken(); ask {
				a.observeWoken(engine.WokenByTurn)
			}
		case <-over:
			return nil
		case <-ctx.Done():
			return a.GaveUp(ctx)
		case <-a.Engine.Closing():
			return engine.ErrClosed
		}
		if ask {
			return nil
		}
		if again > 0 {
			over = a.after(again)
		}
	}
}

// after returns what receives once d is over, nothing if d is below 0. A call has one timer, and
// none while it has no use for it: thousands of callers may wait for what others tell them.
func (a *Acquisition) after(d time.Duration) <-chan time.Time {
	switch {
	case d < 0:
		a.stopTimer()
		return nil
	case a.timer == nil:
		a.timer = time.NewTimer(d)
	default:
		a.timer.Reset(d)
	}
	return a.timer.C
}

func (a *Acquisition) stopTimer() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}

// Subscribe listens to a channel. If that cannot be done soon, it returns nil without an error: the
// caller asks without a subscription, and tries again.
func (a *Acquisition) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	open, cancel := a.Engine.Open(ctx) // ends with the client, too
	defer cancel()
	open, stop := context.WithTimeout(open, max(Overdue, min(a.Engine.PollCap, a.Engine.Command)))
	defer stop()
	var pause engine.Backoff
	for {
		sub, err := a.Engine.Subscribe(open, channel)
		a.unsubscribed = err != nil
		switch {
		case err == nil:
			return sub, nil
		case a.Engine.IsClosing():
			return nil, engine.ErrClosed
		case ctx.Err() != nil:
			return nil, a.GaveUp(ctx)
		case open.Err() != nil:
			return nil, nil //nolint:nilnil // as documented
		case !a.rides(err):
			return nil, err
		}
		a.isAway(ctx, err)
		if !a.Engine.Sleep(open, pause.Next()) && a.Engine.IsClosing() {
			return nil, engine.ErrClosed
		}
	}
}

// isAway remembers why Redis cannot be reached.
func (a *Acquisition) isAway(ctx context.Context, err error) {
	a.Away = engine.Reason(ctx, a.Away, err)
	a.waiter.Unanswered(a.Away)
}

// napFor returns how long to sleep without a signal.
func (a *Acquisition) napFor() time.Duration {
	limit := a.Engine.PollCap
	if a.Poll > 0 {
		limit = a.Poll
	}
	if a.unsubscribed {
		limit = min(limit, time.Second)
	}
	if a.Deaf && limit >= time.Millisecond {
		limit -= rand.N(limit / 8) //nolint:gosec // spreading load needs no secrets
	}
	return a.waiter.Sleep(nap(a.TTL, limit), a.TTL)
}

// nap returns how long to sleep for a lock whose holder has ttl left: until its lease should
// be over, the limit at most. A lock with no time left is asked for again soon, but never at
// once.
func nap(ttl, limit time.Duration) time.Duration {
	switch {
	case ttl < 0:
		return limit
	case ttl == 0:
		return min(limit, 10*time.Millisecond+rand.N(40*time.Millisecond)) //nolint:gosec // spreading load needs no secrets
	}
	return min(limit, min(ttl, limit)+time.Millisecond) // what has no end has no room for more
}

// cutShort reports whether an attempt that began a moment ago has no outcome only because
// the wait was over. That is no sign of trouble: what Redis answered just before, that another
// owner has the lock or why the server refuses, is the reason.
func (a *Acquisition) cutShort(ctx context.Context, err error, began time.Time) bool {
	if a.Given && errors.Is(err, engine.ErrUncertain) {
		return false // what became of it stays unknown
	}
	ended := ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, engine.ErrWaitOver))
	return ended && time.Since(began) < Overdue
}

// rides reports whether a caller that met err goes on waiting.
func (a *Acquisition) rides(err error) bool {
	if errors.Is(err, engine.ErrUncertain) {
		return !a.Given && !errors.Is(err, engine.ErrClosed)
	}
	return engine.Passing(err)
}

// Peek makes an attempt without the turn. It returns an error only when that ends the wait.
func (a *Acquisition) Peek(ctx context.Context) (bool, error) {
	granted, err := a.Attempt(ctx)
	if err != nil && (ctx.Err() != nil || a.rides(err)) {
		a.claim.Drop()
		a.Renew(nil) // nothing of a claim that has failed may be left for the next attempt
		err = nil
	}
	return granted, err
}

// GaveUp returns why the wait ended with ctx.
func (a *Acquisition) GaveUp(ctx context.Context) error {
	if a.Away != nil {
		return engine.WithEnd(ctx, a.Away)
	}
	return engine.GaveUp(ctx)
}

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
