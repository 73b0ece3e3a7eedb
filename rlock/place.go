package rlock

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/core"
	"github.com/redlatch/redlatch/transport"
)

// queueThere waits in the queue on the server. Whoever leaves without the lock
// gives its place up, whatever the reason.
func (a *acquisition) queueThere(ctx context.Context) (*Hold, error) {
	a.lock.engine.KeepTime(ctx)
	hold, err := a.run(ctx)
	if err != nil {
		a.leave()
		return nil, err
	}
	a.unseat() // the server took it out
	return hold, nil
}

// queued takes in that the server has this owner in its queue.
func (a *acquisition) queued(r codec.Refusal) {
	a.hold.placed = true
	switch {
	case a.seat == nil:
		a.seat = a.lock.engine.Room(a.lock.kind(), a.lock.proto.Key(), a.hold.Owner().String())
	case r.Queued:
		a.seat.Back() // its place was lost
	}
	if r.Free {
		a.seat.Tell(r.Head)
	}
}

// unseat leaves the room, but not the queue.
func (a *acquisition) unseat() {
	if a.seat != nil {
		a.seat.Leave()
		a.seat = nil
	}
}

// leave gives the place in the queue up, if there is one.
func (a *acquisition) leave() {
	if a.seat != nil {
		a.unseat()
		a.lock.engine.Depart(a.hold.departure(nil))
	}
}

// departure is what is left to do for an owner that does not want the lock.
func (h *Hold) departure(release func(*transport.Call)) *core.Doubt {
	l := h.tenure.lock
	return &core.Doubt{
		Name:    l.name,
		Owner:   h.Owner().String(),
		Lease:   h.lease.TTL,
		Release: release,
		GiveUp:  func(c *transport.Call) { l.proto.GiveUp(c, h.request()) },
	}
}

// wraith is a hold whose acquire has no known outcome, and that may have a place
// in a queue on the server.
type wraith Hold

// Haunt is part of core.Ghost: it sees to it that neither a lock nor a place is
// left behind by a caller who has left. What an owner that others may use has
// acquired is left alone.
func (w *wraith) Haunt(at *core.Attempt, reply any, err error) {
	h := (*Hold)(w)
	l := h.tenure.lock
	var release func(*transport.Call)
	if !h.tenure.shared {
		release = func(c *transport.Call) { l.proto.Release(c, h.request(), 0) }
	}
	if errors.Is(err, redlatch.ErrUncertain) {
		doubt := h.departure(release)
		doubt.Attempt = at
		l.engine.Settle(doubt)
		return
	}
	at.Free()
	acquired, _, _ := codec.Acquired(reply)
	switch {
	case errors.Is(err, redlatch.ErrNotSent) && !h.placed: // nothing has happened
	case err == nil && !acquired || errors.Is(err, redlatch.ErrNotSent):
		l.engine.Depart(h.departure(nil))
	default:
		l.engine.Settle(h.departure(release))
	}
}

// sit waits for a reason to ask. Without one the first in the room asks when it is
// time; the others have been told by it, or by a message.
func (a *acquisition) sit(ctx context.Context, timer *time.Timer) error {
	for {
		select {
		case event, works := <-a.sub.Events():
			switch {
			case !works:
				return a.sub.Err()
			case !event.Gap:
				return nil
			}
			a.lock.observeGap()
			if a.seat.Leads() {
				return nil
			}
			a.seat.TellFirst() // what was missed shows in the answer
		case <-a.seat.Call:
			return nil
		case <-a.seat.Lead:
			timer.Reset(max(time.Until(a.seat.Planned()), time.Millisecond))
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return a.gaveUp(ctx)
		case <-a.lock.engine.Closing():
			return redlatch.ErrClosed
		}
	}
}
