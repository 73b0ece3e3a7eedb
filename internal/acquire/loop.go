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

// Overdue is how long a reply may take before Redis seems to be in trouble.
const Overdue = 500 * time.Millisecond

// wait subscribes and makes an attempt whenever the lock may be free.
func (a *Acquisition) wait(ctx context.Context) error {
	var pause engine.Backoff
	if events, _ := a.waiter.Signals(); events != nil && a.Away == nil {
		// It was already subscribed when it was refused. After a failed attempt, it tries again immediately.
		if err := a.Sleep(ctx, a.napFor()); err != nil {
			return err
		}
	}
	for {
		if ctx.Err() != nil {
			return a.GaveUp(ctx)
		}
		if a.Poll == 0 {
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

// Sleep waits for an event or a wake-up. Unless d is negative, it waits for at most d. It returns an error if the wait
// must end.
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
			if ask, again = a.waiter.OnEvent(event); ask {
				by := engine.WokenByMessage
				if event.Gap {
					by = engine.WokenByGap
				}
				a.observeWoken(by)
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

// after returns a channel that receives after d, or nil if d is negative. An acquisition has at most one timer.
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

// Subscribe subscribes to a channel. If that takes too long, it returns nil, and the caller polls and tries again
// later.
func (a *Acquisition) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	open, cancel := a.Engine.Open(ctx)
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

func (a *Acquisition) isAway(ctx context.Context, err error) {
	a.Away = engine.Reason(ctx, a.Away, err)
	a.waiter.Unanswered(a.Away)
}

func (a *Acquisition) napFor() time.Duration {
	limit := a.Engine.PollCap
	if a.unsubscribed {
		limit = min(limit, time.Second)
	}
	if a.Poll > 0 {
		limit = a.Poll - rand.N(a.Poll/8) //nolint:gosec // spreading load needs no secrets
	}
	return a.waiter.Sleep(nap(a.TTL, limit), a.TTL)
}

// nap returns how long to sleep while the lease has ttl left: until the lease ends, but no longer than limit. A lock
// that is about to expire is not tried immediately.
func nap(ttl, limit time.Duration) time.Duration {
	switch {
	case ttl < 0:
		return limit
	case ttl == 0:
		return min(limit, 10*time.Millisecond+rand.N(40*time.Millisecond)) //nolint:gosec // spreading load needs no secrets
	}
	return min(limit, min(ttl, limit)+time.Millisecond) // without overflow
}

// cutShort reports whether a recent attempt failed only because the wait ended.
func (a *Acquisition) cutShort(ctx context.Context, err error, began time.Time) bool {
	if a.Given && errors.Is(err, engine.ErrUncertain) {
		return false
	}
	ended := ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, engine.ErrWaitOver))
	return ended && time.Since(began) < Overdue
}

// rides reports whether the wait continues after err.
func (a *Acquisition) rides(err error) bool {
	if errors.Is(err, engine.ErrUncertain) {
		return !a.Given && !errors.Is(err, engine.ErrClosed)
	}
	return engine.Passing(err)
}

// Peek makes an attempt without the turn. Its errors end the wait.
func (a *Acquisition) Peek(ctx context.Context) (bool, error) {
	granted, err := a.Attempt(ctx)
	if err != nil && (ctx.Err() != nil || a.rides(err)) {
		a.claim.Drop()
		a.Renew(nil)
		err = nil
	}
	return granted, err
}

// GaveUp returns the error of a wait that ctx ended.
func (a *Acquisition) GaveUp(ctx context.Context) error {
	if a.Away != nil {
		return engine.WithEnd(ctx, a.Away)
	}
	return engine.WithEnd(ctx, engine.ErrNotAcquired)
}

// QueueState is a local queue's view of its lock.
type QueueState struct {
	// Known is true if Redis has answered the queue.
	Known bool
	// Held is true while a caller in this process holds the lock.
	Held bool
	Away error
	// Holder is the holder at the last answer. TTL is its remaining lease at that time, or 0 for a hold in this
	// process.
	Holder codec.Owner
	TTL    time.Duration
}

// Queued is a caller in a local queue.
type Queued interface {
	State() QueueState
	Came() bool
	// Poll is called when a poll is due, or earlier, and returns true if the lock was granted.
	Poll(ctx context.Context, a *Acquisition) (granted bool, err error)
}

// AwaitTurn waits for c's turn. It returns false and a nil error when the turn has come, and true if a poll acquired
// the lock. c polls because Redis may have forgotten the lock; every is the interval, and 0 means whenever its sleep
// ends. AwaitTurn fails if Redis has not answered any caller in the queue within one command timeout.
func (a *Acquisition) AwaitTurn(ctx context.Context, c Queued, every time.Duration) (granted bool, err error) {
	a.Answered = c.State().Known
	if err := a.BeginWait(ctx); err != nil {
		return false, err
	}
	var silence, poll time.Time // they share a timer
	if !a.Answered {
		silence = a.Began.Add(a.Engine.Command)
	}
	if every > 0 {
		poll = time.Now().Add(every)
	}
	for {
		err := a.Sleep(ctx, untilFirst(silence, poll))
		s, now := c.State(), time.Now()
		switch {
		case c.Came():
			a.Answered = a.Answered || c.State().Known
			return false, nil
		case err != nil:
			return false, a.leftQueue(ctx, s, err)
		}
		if !silence.IsZero() && !now.Before(silence) {
			if silence = (time.Time{}); !s.Known {
				return false, s.silent()
			}
		}
		if now.Before(poll) {
			continue
		}
		if every > 0 {
			poll = now.Add(every)
		}
		if granted, err = c.Poll(ctx, a); granted || err != nil {
			return granted, err
		}
	}
}

func (a *Acquisition) leftQueue(ctx context.Context, s QueueState, err error) error {
	if ctx.Err() == nil {
		return err
	}
	a.Learn(s)
	if a.Away = s.Away; !s.Known {
		a.Away = s.silent()
	}
	return a.GaveUp(ctx)
}

// untilFirst returns the time until the earlier of two deadlines, or a negative time if both are zero.
func untilFirst(a, b time.Time) time.Duration {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		b = a
	}
	if b.IsZero() {
		return -1
	}
	return max(0, time.Until(b))
}

const countPatience = 200 * time.Millisecond

// Listeners counts the subscribers of the lock's channel, including this process. It returns false if that fails or
// takes too long.
func (a *Acquisition) Listeners(ctx context.Context) (n int, counted bool) {
	ctx, cancel := context.WithTimeout(ctx, countPatience)
	defer cancel()
	counts, err := a.Engine.Listeners(ctx, a.Kind.Channel(nil))
	if err != nil {
		a.Engine.Lacks("+pubsub|numsub +role", "cannot count waiters of other processes: this process yields as if there were some", err)
		return 0, false
	}
	return int(counts[0]), true
}

// Learn copies the holder from a queue's state.
func (a *Acquisition) Learn(s QueueState) {
	if !s.Holder.IsZero() {
		a.Holder, a.TTL = s.Holder, s.TTL
	}
}

// IsLate returns an error if the callers before this one have just failed, because its attempt would end too late.
func (a *Acquisition) IsLate(ctx context.Context, s QueueState) error {
	if s.Away != nil && !a.Answered && time.Since(a.Began) >= a.Engine.Command/2 {
		return engine.WithEnd(ctx, s.Away)
	}
	return nil
}

func (s QueueState) silent() error {
	if s.Away != nil {
		return s.Away
	}
	return fmt.Errorf("%w: earlier attempts of this process are still unanswered", engine.ErrNotSent)
}
