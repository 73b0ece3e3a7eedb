package rlock

import (
	"context"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/engine"
)

// startThere finds the way into a queue on the server that costs the fewest requests.
//
//   - With a spare, an owner whose subscription stands: one attempt, which queues it.
//   - While others of this process wait, or did just now: it subscribes, and then is
//     queued by an attempt that needs no second one.
//   - Else, one attempt: as a rule the lock is free, and nothing else is needed.
func (a *acquisition) startThere(ctx context.Context) (*Hold, error) {
	if !a.waits() {
		return a.run(ctx)
	}
	l := a.lock
	var spare *engine.Spare
	var contended bool
	if a.set.owner.IsZero() {
		spare, contended = l.engine.Spare(l.proto.Kind(), l.proto.Key())
	}
	switch {
	case spare != nil:
		a.hold = newHoldOf(l, &a.set, spare)
		a.spare, a.sub, a.channel = spare, spare.Sub, l.proto.Channel(&a.hold.acq)
	case contended && a.hasTime(ctx):
		a.fresh()
		a.listenFirst(ctx)
		switch {
		case l.engine.IsClosing():
			return nil, redlatch.ErrClosed
		case ctx.Err() != nil:
			return nil, a.gaveUp(ctx)
		}
	}
	return a.run(ctx)
}

// hasTime reports whether a caller can afford to subscribe before it asks: with little
// time left it might not come to ask at all.
func (a *acquisition) hasTime(ctx context.Context) bool {
	end, bounded := ctx.Deadline()
	return !bounded || time.Until(end) > 4*overdue
}

// listenFirst listens to the channel of an owner that is not queued yet. When that
// fails, or takes long, nothing is lost but the time.
func (a *acquisition) listenFirst(ctx context.Context) {
	e := a.lock.engine
	open, cancel := e.Open(ctx)
	defer cancel()
	open, stop := context.WithTimeout(open, overdue)
	defer stop()
	channel := a.lock.proto.Channel(&a.hold.acq)
	if sub, err := e.Transport.Subscribe(open, channel); err == nil {
		a.sub, a.channel = sub, channel
	}
}

// linger leaves the subscription of an acquisition that has succeeded with its hold,
// for a second. That of an owner that others may use ends.
func (a *acquisition) linger(waited bool) {
	t := a.hold.tenure
	if a.sub == nil || t.shared {
		a.deafen()
		return
	}
	if a.spare == nil {
		a.spare = &engine.Spare{Owner: t.owner, Text: t.acq.Owner, Sub: a.sub}
	}
	t.spare = a.spare
	t.lock.engine.Linger(t.lock.proto.Kind(), t.lock.proto.Key(), a.spare, waited)
}

// abandon leaves the room, as somebody whose outcome is not known. Nobody is to think
// that its place, if it has one, is that of a living waiter.
func (a *acquisition) abandon() {
	if a.lock.proto.Queues() {
		a.deafen()
	}
	a.unseat()
}

// leaveSpare leaves the owner and its subscription to the next acquisition of the
// lock, if it was freed and nothing about the owner can be under way any more, on
// either side:
//
//   - every attempt for it was answered, so none can queue it or take the lock later;
//   - it did not give up, and nothing settles a doubt about it;
//   - it never was renewed, so no renewal can shorten the next lease;
//   - it was not entered again, handed over or given away, and nobody has asked the
//     hold for it, so nobody else can act as it;
//   - its release was sent once, and the server said that this freed the lock.
//
// What may still come is harmless: a heartbeat, here or of others, only puts a place
// off; an eviction needs the deadline that was seen, and costs a place; a message
// makes the next one ask once in vain.
func (h *Hold) leaveSpare() {
	t := h.tenure
	if t.spare == nil {
		return
	}
	if h.result != nil || t.stained.Load() || t.lock.engine.Watchdog.Tried(&h.lease) {
		t.endSpare()
		return
	}
	t.lock.engine.Offer(t.spare)
}

// endSpare ends the subscription that was left with the hold, if there is one.
func (t *tenure) endSpare() {
	if t.spare != nil {
		t.lock.engine.End(t.spare)
	}
}
