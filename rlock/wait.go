package rlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

// wait tries again whenever the lock may have become free, until it is acquired
// or there is a reason to stop. It listens before each attempt, so that a release
// after it is heard.
func (a *acquisition) wait(ctx context.Context) (*Hold, error) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var pause engine.Backoff
	if a.seat != nil && a.sub != nil {
		// It listened when it was queued: nothing was missed.
		a.rest(timer, &pause)
		if err := a.sleep(ctx, timer); err != nil {
			return nil, err
		}
	}
	for {
		if err := a.listen(ctx); err != nil {
			return nil, err
		}
		began := time.Now()
		held, err := a.attempt(ctx)
		switch {
		case held:
			return a.hold, nil
		case err == nil:
			a.rest(timer, &pause)
		case a.cutShort(ctx, err, began):
			return nil, a.gaveUp(ctx)
		case a.rides(err):
			// Redis is away, which is no reason to stop waiting.
			a.isAway(err)
			timer.Reset(pause.Next())
		default:
			return nil, err
		}
		if err := a.sleep(ctx, timer); err != nil {
			return nil, err
		}
	}
}

// rest sets the timer after an attempt that was refused. In a queue on the server
// only the first of this process asks without a message; while the lock is free,
// and somebody else has not come for it, it asks less and less often.
func (a *acquisition) rest(timer *time.Timer, pause *engine.Backoff) {
	nap := a.nap()
	switch {
	case a.seat == nil || a.ttl != 0:
		*pause = engine.Backoff{}
	default:
		nap = min(pause.Next(), a.lock.engine.PollCap)
	}
	switch {
	case a.seat == nil:
	case a.sub == nil:
		nap = min(nap, time.Second) // and then it tries to listen again
	case !a.seat.Leads():
		timer.Stop()
		return
	default:
		a.seat.Plan(time.Now().Add(nap))
	}
	timer.Reset(nap)
}

// overdue is how long a reply may take before its absence says something about
// Redis.
const overdue = 500 * time.Millisecond

// cutShort reports whether an attempt that began a moment ago has no outcome
// only because the wait was over. That is no sign of trouble: when Redis was
// last asked, just before, somebody else had the lock.
func (a *acquisition) cutShort(ctx context.Context, err error, began time.Time) bool {
	if !a.set.owner.IsZero() && errors.Is(err, redlatch.ErrUncertain) {
		return false // nobody finds out what became of it
	}
	ended := ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, engine.ErrWaitOver))
	return ended && a.away == nil && time.Since(began) < overdue
}

// sleep waits for a reason to try again. It returns an error when there is a
// reason to stop.
func (a *acquisition) sleep(ctx context.Context, timer *time.Timer) error {
	if a.seat != nil {
		return a.sit(ctx, timer)
	}
	select {
	case event, works := <-a.events():
		if !works {
			return a.deaf()
		}
		if event.Gap {
			a.lock.observeGap()
		}
	case <-timer.C:
	case <-ctx.Done():
		return a.gaveUp(ctx)
	case <-a.lock.engine.Closing():
		return redlatch.ErrClosed
	}
	return nil
}

// nap returns how long to sleep without a message: until the holder's lease
// should be over, the poll cap at most. A lock with no time left is asked for
// again soon, but never at once.
func (a *acquisition) nap() time.Duration {
	limit := a.lock.engine.PollCap
	switch {
	case a.ttl < 0:
		return limit
	case a.ttl == 0:
		return min(limit, 10*time.Millisecond+rand.N(40*time.Millisecond)) //nolint:gosec // spreading load needs no secrets
	}
	return min(limit, min(a.ttl, limit)+time.Millisecond) // what has no end has no room for more
}

// rides reports whether a waiter that met err goes on waiting.
func (a *acquisition) rides(err error) bool {
	if errors.Is(err, redlatch.ErrUncertain) {
		// With a given owner a second attempt could count twice.
		return a.set.owner.IsZero() && !errors.Is(err, redlatch.ErrClosed)
	}
	return engine.Passing(err)
}

// listen sees to it that this hears of the lock: on the line's subscription, or on
// one of its own, whose channel may change with the owner.
func (a *acquisition) listen(ctx context.Context) error {
	channel := a.lock.proto.Channel(&a.hold.acq)
	if a.sub != nil && a.channel == channel {
		return nil
	}
	a.deafen()
	bounded, cancel := ctx, context.CancelFunc(func() {})
	queues := a.lock.proto.Queues()
	if queues {
		// The others in the queue wait for this one: deaf, it asks all the same.
		bounded, cancel = context.WithTimeout(ctx, min(a.lock.engine.PollCap, a.lock.engine.Command))
	}
	defer cancel()
	sub, err := a.subscription(bounded)
	switch {
	case err == nil:
	case !queues || bounded.Err() == nil || errors.Is(err, redlatch.ErrClosed):
		return err
	case ctx.Err() != nil:
		return a.gaveUp(ctx) // err may tell the end of the bound instead
	default:
		return nil
	}
	a.sub, a.channel = sub, channel
	if a.seat != nil {
		a.seat.Hears(true)
	}
	return nil
}

// events returns what is heard, nothing while there is no subscription.
func (a *acquisition) events() <-chan transport.Event {
	if a.sub == nil {
		return nil
	}
	return a.sub.Events()
}

// deafen ends a subscription of this caller's own. That of a line is kept.
func (a *acquisition) deafen() {
	if a.sub != nil && a.line == nil {
		a.sub.Close()
	}
	a.sub, a.spare = nil, nil
	if a.seat != nil {
		a.seat.Hears(false)
	}
}

// subscribe listens to the lock's channel, however long it takes to reach Redis.
func (a *acquisition) subscribe(ctx context.Context) (transport.Subscription, error) {
	e := a.lock.engine
	open, cancel := e.Open(ctx) // ends with the client, too
	defer cancel()
	var pause engine.Backoff
	for {
		sub, err := e.Transport.Subscribe(open, a.lock.proto.Channel(&a.hold.acq))
		switch {
		case err == nil:
			return sub, nil
		case e.IsClosing():
			return nil, redlatch.ErrClosed
		case ctx.Err() != nil:
			return nil, a.gaveUp(ctx)
		case !a.rides(err):
			return nil, err
		}
		a.isAway(err)
		if !e.Sleep(ctx, pause.Next()) && e.IsClosing() {
			return nil, redlatch.ErrClosed
		}
	}
}
