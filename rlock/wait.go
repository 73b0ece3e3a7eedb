package rlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/core"
	"github.com/redlatch/redlatch/transport"
)

// wait tries again whenever the lock may have become free, until it is acquired
// or there is a reason to stop.
func (a *acquisition) wait(ctx context.Context, sub transport.Subscription) (*Hold, error) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var pause core.Backoff
	for {
		began := time.Now()
		held, err := a.attempt(ctx)
		switch {
		case held:
			return a.hold, nil
		case err == nil:
			pause = core.Backoff{}
			timer.Reset(a.nap())
		case a.cutShort(ctx, err, began):
			return nil, a.gaveUp(ctx)
		case a.rides(err):
			// Redis is away, which is no reason to stop waiting.
			a.isAway(err)
			timer.Reset(pause.Next())
		default:
			return nil, err
		}
		if err := a.sleep(ctx, sub, timer); err != nil {
			return nil, err
		}
	}
}

// overdue is how long a reply may take before its absence says something about
// Redis.
const overdue = 500 * time.Millisecond

// cutShort reports whether an attempt that began a moment ago has no outcome
// only because the wait was over. That is no sign of trouble: when Redis was
// last asked, just before, somebody else had the lock.
func (a *acquisition) cutShort(ctx context.Context, err error, began time.Time) bool {
	ended := ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, core.ErrWaitOver))
	return ended && a.away == nil && time.Since(began) < overdue
}

// sleep waits for a reason to try again. It returns an error when there is a
// reason to stop.
func (a *acquisition) sleep(ctx context.Context, sub transport.Subscription, timer *time.Timer) error {
	select {
	case event, works := <-sub.Events():
		if !works {
			return a.deaf(sub)
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
	return min(limit, a.ttl+time.Millisecond)
}

// rides reports whether a waiter that met err goes on waiting.
func (a *acquisition) rides(err error) bool {
	if errors.Is(err, redlatch.ErrUncertain) {
		// With a given owner a second attempt could count twice.
		return a.set.owner.IsZero() && !errors.Is(err, redlatch.ErrClosed)
	}
	return core.Passing(err)
}

// subscribe listens to the lock's channel, however long it takes to reach Redis.
func (a *acquisition) subscribe(ctx context.Context) (transport.Subscription, error) {
	e := a.lock.engine
	open, cancel := e.Open(ctx) // ends with the client, too
	defer cancel()
	var pause core.Backoff
	for {
		sub, err := e.Transport.Subscribe(open, a.lock.proto.Channel(&a.hold.own.acq))
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
