package hold

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

var _ acquire.Claim = (*Hold)(nil)

// Request implements acquire.Claim.
func (h *Hold) Request() *acquire.Request {
	if !h.ownership.shared {
		return &h.request
	}
	most := h.ownership.most(0)
	if most <= h.lease.TTL {
		return &h.request
	}
	r := h.request
	r.Lease = most.Milliseconds()
	return &r
}

// Asks implements acquire.Claim. A release that is sent during a shared owner's attempt must keep the attempt's lease.
func (h *Hold) Asks(yes bool) {
	o := h.ownership
	if !o.shared {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if yes {
		o.asking = append(o.asking, h)
	} else {
		o.asking = slices.DeleteFunc(o.asking, func(other *Hold) bool { return other == h })
	}
}

// Grant implements acquire.Claim.
func (h *Hold) Grant(sent time.Time, out acquire.Outcome) error {
	o := h.ownership
	if out.Token != 0 {
		o.fence(out.Token)
	}
	o.add(h, sent)
	if o.lock.Engine.Replicas > 0 {
		h.known.Store(unknown)
	}
	err := h.live(sent)
	if err == nil {
		return nil
	}
	if o.remove(h); o.shared {
		o.lock.Engine.GoBeforeClose(func() { _ = o.releaseShared(o.lock.Engine.Command, nil) })
	} else {
		o.discard()
	}
	return err
}

// Fail implements acquire.Claim.
func (h *Hold) Fail() { h.ownership.notReusable.Store(true) }

// Disown implements acquire.Claim. A shared owner keeps the lock.
func (h *Hold) Disown() {
	if d := h.cleanUp(); d != nil {
		h.ownership.lock.Engine.Resolve(d)
	}
}

// Drop implements acquire.Claim. If the hold was added to its ownership, remove has already called quitShared.
func (h *Hold) Drop() {
	o := h.ownership
	if !o.shared {
		return
	}
	o.mu.Lock()
	counted := h.counted
	o.mu.Unlock()
	if !counted {
		o.quitShared()
	}
}

// Placed implements acquire.Claim. All callers with the same owner share one place in the queue.
func (h *Hold) Placed(now bool) {
	h.queued = true
	if now {
		o := h.ownership
		o.mu.Lock()
		o.wait = h.request.Wait
		o.mu.Unlock()
	}
}

// Place implements acquire.Claim.
func (h *Hold) Place() acquire.Request {
	r := h.request
	if wait := h.ownership.queuedWith(); wait != nil {
		r.Wait = wait
	}
	return r
}

// cleanUp returns an InDoubt that undoes an attempt that may have run. For a shared owner, whose lock may belong to
// another user, it only leaves the queue; without a queue, cleanUp returns nil.
func (h *Hold) cleanUp() *engine.InDoubt {
	o := h.ownership
	queue := h.queue()
	if o.shared && queue == nil {
		return nil
	}
	d := o.inDoubt()
	d.Lease = h.lease.TTL
	place := h.Place()
	d.Undo = func(run engine.Run) (freed bool, err error) {
		if !o.shared {
			freed, err = o.undo(run, &place)
		}
		if err == nil && queue != nil {
			err = queue.Dequeue(o.lock.Name, &place)
		}
		return freed, err
	}
	if queue != nil {
		d.Lasts = max(d.Lease, queue.Lasts(&place))
	}
	return d
}

func (h *Hold) queue() Queueing {
	queue, _ := h.ownership.lock.Kind.(Queueing)
	if h.request.Try {
		return nil
	}
	return queue
}

// Late implements engine.Resolver.
func (h *Hold) Late(reply any, err error) *engine.InDoubt {
	o := h.ownership
	if errors.Is(err, engine.ErrUncertain) {
		o.leaveDoubt()
		return h.cleanUp()
	}
	queue := h.queue()
	if o.shared && queue == nil {
		return nil
	}
	refused := false
	if err == nil {
		out, decodeErr := o.lock.Kind.Decode(reply)
		refused = decodeErr == nil && !out.Granted
	}
	switch {
	case !refused && !errors.Is(err, engine.ErrNotSent):
		d := h.cleanUp()
		d.Done = func(bool) { o.leaveDoubt() }
		return d
	case queue != nil && (refused || h.queued):
		place := h.Place()
		queue.Leave(o.lock.Name, &place)
	}
	o.leaveDoubt()
	return nil
}

// KeepTurn implements acquire.Claim.
func (h *Hold) KeepTurn(t acquire.Turn) bool {
	o := h.ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.freed || h.ended.Load() != nil {
		return false
	}
	o.turn = t
	return true
}

// PassWhenResolved implements acquire.Claim.
func (h *Hold) PassWhenResolved(t acquire.Turn) bool {
	o := h.ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.resolved {
		return false
	}
	o.turn = t
	return true
}

// Settle implements acquire.Claim.
func (h *Hold) Settle(_ context.Context, err error) (any, error) { return nil, err }

// KeepSubscription implements acquire.Claim.
func (h *Hold) KeepSubscription(s acquire.Reusable) { h.ownership.subscription = s }

// leaveDoubt records that the next caller need not wait for the attempt in doubt. It passes on the turn if
// PassWhenResolved has kept it.
func (o *ownership) leaveDoubt() {
	o.mu.Lock()
	o.resolved = true
	o.mu.Unlock()
	o.passTurn(false)
}

func (o *ownership) undo(run engine.Run, r *acquire.Request) (freed bool, _ error) {
	answer, err := run(func(c *transport.Call) {
		o.lock.Kind.Release(c, r)
		c.Urgent = true
	})
	if err != nil {
		return false, err
	}
	out, err := o.lock.Kind.Released(answer)
	return out == reply.Free, err
}

func (o *ownership) inDoubt() *engine.InDoubt {
	o.notReusable.Store(true)
	text, _ := o.final.Owner.(string)
	return &engine.InDoubt{Name: o.lock.Name, Owner: text, Lease: o.mayLast()}
}

// discard frees the owner's lock in the background or, if the owner does not hold it, removes the owner from the queue
// where it was waiting before the grant.
func (o *ownership) discard() {
	d := o.inDoubt()
	queue, place := o.formerPlace()
	d.Undo = func(run engine.Run) (bool, error) {
		freed, err := o.undo(run, o.final)
		if err == nil && !freed && queue != nil {
			err = queue.Dequeue(o.lock.Name, place)
		}
		return freed, err
	}
	if queue != nil {
		d.Lasts = max(d.Lease, queue.Lasts(place))
	}
	o.lock.Engine.Resolve(d)
}

// formerPlace returns the queue in which the owner was waiting before the grant, and the owner's place in it, which a
// failover may have restored.
func (o *ownership) formerPlace() (Queueing, *acquire.Request) {
	queue, queues := o.lock.Kind.(Queueing)
	wait := o.queuedWith()
	if !queues || wait == nil || o.shared { // a shared owner may be waiting again
		return nil, nil
	}
	place := *o.final
	place.Wait = wait
	return queue, &place
}

// correct sets the count to the number of holds in the background, and then ends the current change. Until then,
// entering, if not nil, keeps its slot.
func (o *ownership) correct(entering *Hold) { o.lock.Engine.Resolve(o.correction(entering)) }

// correction returns the InDoubt for correct. It never frees the lock, because that would look like a loss to the
// caller that releases the last hold.
func (o *ownership) correction(entering *Hold) *engine.InDoubt {
	d := o.inDoubt()
	d.Done = func(bool) {
		if entering != nil {
			entering.leaveSlot()
		}
		o.endChange()
	}
	d.Superseded = o.isFreed
	d.Undo = func(run engine.Run) (bool, error) {
		holds, lease := o.owed()
		o.resent.Add(1) // after owed, so that a hold removed before that notices it
		r := acquire.Request{Owner: o.final.Owner, Lease: lease.Milliseconds(), Target: holds}
		if o.base == nil {
			r.Target = max(holds, 1)
		}
		_, err := o.undo(run, &r)
		return false, err // the call in doubt may still run
	}
	return d
}

type lateRelease ownership

// Late implements engine.Resolver. The release counts as pending until it can no longer run.
func (l *lateRelease) Late(_ any, err error) *engine.InDoubt {
	if !errors.Is(err, engine.ErrUncertain) {
		l.pendingReleases.Add(-1)
		return nil
	}
	o := (*ownership)(l)
	return &engine.InDoubt{
		Lease: o.mayLast(),
		// A shared owner may get new holds, and another role may still be handed over.
		Superseded: func() bool { return !o.shared && o.isFreed() && !o.inSeveralRoles() },
		Done: func(over bool) {
			if over {
				o.pendingReleases.Add(-1)
			}
		},
	}
}

// lateReentry is a hold whose re-entry is in doubt. The re-entry is still the current change of the count.
type lateReentry Hold

// Late implements engine.Resolver. The count of a shared owner is not corrected, because it may include holds of other
// users.
func (l *lateReentry) Late(any, error) *engine.InDoubt {
	if l.ownership.shared {
		return nil
	}
	return l.ownership.correction((*Hold)(l))
}
