package rlock

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// queueThere waits in the queue on the server. Whoever leaves without the lock
// gives its place up, whatever the reason.
func (a *acquisition) queueThere(ctx context.Context) (*Hold, error) {
	a.lock.keepTime(ctx)
	hold, err := a.startThere(ctx)
	if err != nil {
		a.deafen()
		a.leave()
		return nil, err
	}
	waited := a.seat != nil
	a.unseat() // the server took it out
	a.linger(waited)
	return hold, nil
}

// keepTime is for locks whose scripts are told the time.
func (l *Lock) keepTime(ctx context.Context) {
	if l.proto.Queues() {
		l.engine.KeepTime(ctx)
	}
}

// queued takes in that the server has this owner in its queue.
func (a *acquisition) queued(r reply.Refusal) {
	a.hold.placed = true
	if r.Queued {
		a.hold.tenure.queueWith(a.hold.acq.Wait)
	}
	switch {
	case a.seat == nil:
		w := protocol.Waiter{Owner: a.hold.tenure.owner.String(), Wait: a.hold.tenure.queuedWith()}
		if w.Wait == nil {
			w.Wait = a.hold.acq.Wait
		}
		a.seat = a.lock.engine.Room(a.lock.name, a.lock.proto, w)
		a.seat.Hears(a.sub != nil)
	case r.Queued:
		a.seat.Back() // its place was lost
	}
	if r.Free {
		a.seat.Tell(r.Head)
	}
}

// leaseLeft returns what the holder has left, from the number in a refusal: when
// the owner was queued behind others just now, that number is about them.
func (a *acquisition) leaseLeft(r reply.Refusal, told time.Duration) time.Duration {
	switch {
	case r.Queued && r.Free:
		return 0
	case r.Queued && r.Head != a.hold.acq.Owner:
		return codec.NoTTL // not known
	case told == 0 && !r.Free:
		return codec.NoTTL // the script makes no difference for who is queued
	}
	return told
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
		doubt := a.hold.departure(nil)
		doubt.Place = a.seat.Place()
		doubt.Done = a.seat.CallTwins // it was their place, too
		a.unseat()
		a.lock.engine.Depart(doubt)
	}
}

// disown frees the lock in the background if this owner has it, and gives its
// place up if it has one.
func (h *Hold) disown() {
	l := h.tenure.lock
	switch {
	case l.proto.Queues():
		l.engine.Settle(h.departure(h.letGo()))
	case !h.tenure.shared:
		h.tenure.discard()
	}
}

// letGo returns what frees the lock if this owner has it: nothing for an owner
// that others may use.
func (h *Hold) letGo() func(*transport.Call) {
	if h.tenure.shared {
		return nil
	}
	return func(c *transport.Call) { h.tenure.lock.proto.Release(c, &h.acq, 0) }
}

// departure is what is left to do for an owner that does not want the lock.
func (h *Hold) departure(release func(*transport.Call)) *engine.Doubt {
	l := h.tenure.lock
	return &engine.Doubt{
		Name:    l.name,
		Owner:   h.tenure.owner.String(),
		Lease:   h.lease.TTL,
		Release: release,
		GiveUp:  h.givesUp(),
		Queue:   l.proto.Key(),
	}
}

// givesUp returns what takes the owner out of the queue. A call that never queues
// has nothing to give up, and what others queued for a given owner is theirs.
func (h *Hold) givesUp() func(*transport.Call) {
	if h.tries {
		return nil
	}
	l, acq := h.tenure.lock, h.acq
	if wait := h.tenure.queuedWith(); wait != nil {
		acq.Wait = wait
	}
	return func(c *transport.Call) { l.proto.GiveUp(c, &acq) }
}

// wraith is a hold whose acquire has no known outcome, and that may have a place
// in a queue on the server.
type wraith Hold

// Haunt is part of engine.Ghost: it sees to it that neither a lock nor a place is
// left behind by a caller who has left. What an owner that others may use has
// acquired is left alone.
func (w *wraith) Haunt(at *engine.Attempt, answer any, err error) {
	h := (*Hold)(w)
	l := h.tenure.lock
	if h.tries && h.tenure.shared {
		at.Free() // what there is may be another's
		return
	}
	if errors.Is(err, redlatch.ErrUncertain) {
		doubt := h.departure(h.letGo())
		doubt.Attempt = at
		l.engine.Settle(doubt)
		return
	}
	at.Free()
	acquired, _, _ := reply.Acquired(answer)
	switch {
	case errors.Is(err, redlatch.ErrNotSent) && !h.placed: // nothing has happened
	case h.tries && err == nil && !acquired: // likewise
	case err == nil && !acquired || errors.Is(err, redlatch.ErrNotSent):
		l.engine.Depart(h.departure(nil))
	default:
		l.engine.Settle(h.departure(h.letGo()))
	}
}

// sit waits for a reason to ask. Without one the first in the room asks when it is
// time; the others have been told by it, or by a message.
func (a *acquisition) sit(ctx context.Context, timer *time.Timer) error {
	for {
		select {
		case event, works := <-a.events():
			switch {
			case !works:
				return a.sub.Err()
			case !event.Gap:
				return nil
			}
			a.lock.observeGap()
			a.seat.Gap()
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
