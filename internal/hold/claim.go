package hold

import (
	"errors"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

var _ acquire.Claim = (*Hold)(nil)

// Request is part of acquire.Claim. An owner that has other holds here asks for no shorter
// lease than these count on.
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

// Asks is part of acquire.Claim. What is sent meanwhile for an owner that others may use, too, may
// reach the server after this attempt.
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

// Grant is part of acquire.Claim.
func (h *Hold) Grant(sent time.Time, out acquire.Outcome) error {
	o := h.ownership
	o.fence(out.Token)
	o.add(h, sent)
	if o.lock.Engine.Replicas > 0 {
		h.known.Store(unknown)
	}
	err := h.live(sent)
	if err == nil {
		return nil
	}
	if o.remove(h); o.shared {
		o.lock.Engine.Go(func() { _ = o.releaseShared(o.lock.Engine.Command, nil) }) // the lease ends it, too
	} else {
		o.discard()
	}
	return err
}

// Fail is part of acquire.Claim.
func (h *Hold) Fail() { h.ownership.notReusable.Store(true) }

// Disown is part of acquire.Claim: it frees the lock if the owner has it, and takes it out of
// a queue. What an owner that others may use holds is left alone.
func (h *Hold) Disown() {
	if d := h.cleanUp(); d != nil {
		h.ownership.lock.Engine.Resolve(d)
	}
}

// Drop is part of acquire.Claim. A hold that was counted has left.
func (h *Hold) Drop() {
	if o := h.ownership; o.shared && !h.wasCounted() {
		o.quitShared()
	}
}

// Placed is part of acquire.Claim. The callers of one owner have one place, and leave it with
// the wait that it has.
func (h *Hold) Placed(now bool) {
	h.queued = true
	if now {
		h.ownership.queueWith(h.request.Wait)
	}
}

// Place is part of acquire.Claim.
func (h *Hold) Place() acquire.Request {
	r := h.request
	if wait := h.ownership.queuedWith(); wait != nil {
		r.Wait = wait
	}
	return r
}

// InDoubt is part of engine.Resolver. That may take long, and the next caller need not wait
// for it.
func (h *Hold) InDoubt() *engine.InDoubt {
	h.ownership.leaveDoubt()
	return h.cleanUp()
}

// cleanUp returns what undoes an attempt that may have run. Nil: nothing may be undone, since
// another user of the owner may hold the lock.
func (h *Hold) cleanUp() *engine.InDoubt {
	o := h.ownership
	queue, queues := o.lock.Kind.(Queueing)
	queues = queues && !h.request.Try // an attempt that does not wait has no place
	if o.shared && !queues {
		return nil
	}
	d := o.inDoubt()
	d.Lease = h.lease.TTL
	place := h.Place()
	d.Undo = func(run engine.Run) (freed bool, err error) {
		if !o.shared {
			freed, err = o.undo(run, &place)
		}
		if err == nil && queues {
			err = queue.Dequeue(o.lock.Name, &place)
		}
		return freed, err
	}
	if queues {
		d.Lasts = max(d.Lease, queue.Lasts(&place))
	}
	return d
}

// Late is part of engine.Resolver: the reply came when the caller had left. A lock that was
// acquired is given back; so is a place in a queue.
func (h *Hold) Late(reply any, err error) {
	o := h.ownership
	queue, queues := o.lock.Kind.(Queueing)
	if queues = queues && !h.request.Try; o.shared && !queues {
		return
	}
	notSent := errors.Is(err, engine.ErrNotSent)
	refused := false
	if err == nil {
		out, decodeErr := o.lock.Kind.Decode(reply)
		refused = decodeErr == nil && !out.Granted
	}
	switch {
	case !notSent && !refused:
		d := h.cleanUp()
		d.Done = func(bool) { o.leaveDoubt() }
		o.lock.Engine.Resolve(d)
		return
	case queues && (refused || h.queued):
		place := h.Place()
		queue.Leave(o.lock.Name, &place)
	}
	o.leaveDoubt()
}

// KeepTurn is part of acquire.Claim.
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

// PassWhenResolved is part of acquire.Claim.
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

// KeepSubscription is part of acquire.Claim.
func (h *Hold) KeepSubscription(s acquire.Reusable) { h.ownership.subscription = s }

// leaveDoubt says that it is known what the attempt in doubt has done, or that the next caller need
// not wait for that: a turn that was left here is passed on.
func (o *ownership) leaveDoubt() {
	o.mu.Lock()
	o.resolved = true
	turn := o.turn
	o.turn = nil
	o.mu.Unlock()
	if turn != nil {
		turn.Pass(false)
	}
}

// undo runs a release, and reports whether that freed the lock.
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

// inDoubt returns an in-doubt call of the owner, without what undoes it.
func (o *ownership) inDoubt() *engine.InDoubt {
	o.notReusable.Store(true)
	text, _ := o.final.Owner.(string) // always one
	return &engine.InDoubt{Name: o.lock.Name, Owner: text, Lease: o.mayLast()}
}

// discard frees the lock in the background if this owner has it. If it has not, it leaves its
// former place.
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

// formerPlace returns the queue in which the owner waited before it was granted the lock, nil if
// it did not. A failover that lost the grant may have brought the place back.
func (o *ownership) formerPlace() (Queueing, *acquire.Request) {
	queue, queues := o.lock.Kind.(Queueing)
	wait := o.queuedWith()
	if !queues || wait == nil || o.shared { // a shared one may wait again
		return nil, nil
	}
	place := *o.final
	place.Wait = wait
	return queue, &place
}

// correct brings the count to the number of holds in the background, and ends the change that
// the caller has begun when it is done. Entering, if not nil, has the slot of its outer hold
// until then.
func (o *ownership) correct(entering *Hold) { o.lock.Engine.Resolve(o.correction(entering)) }

// correction is what brings the count to the number of holds. It does not free the lock: the
// caller that gives the last hold up does, and would be told that the lock was lost.
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
		o.resent.Add(1) // after the count: a hold that has left before it sees this
		r := acquire.Request{Owner: o.final.Owner, Lease: lease.Milliseconds(), Target: holds}
		if o.base == nil {
			r.Target = max(holds, 1)
		}
		_, err := o.undo(run, &r)
		return false, err // what it was about may run yet
	}
	return d
}

// lateRelease is an ownership with a release that no caller waits for any more.
type lateRelease ownership

func (l *lateRelease) Late(any, error) { l.pendingReleases.Add(-1) }

// InDoubt is part of engine.Resolver: it finds out when the release cannot run any more.
func (l *lateRelease) InDoubt() *engine.InDoubt {
	return &engine.InDoubt{Done: func(over bool) {
		if over {
			l.pendingReleases.Add(-1)
		}
	}}
}

// lateReentry is a hold whose re-entry has an outcome that is not known. It is the change of
// the count that is under way.
type lateReentry Hold

func (l *lateReentry) Late(any, error) {
	if o := l.ownership; !o.shared {
		o.correct((*Hold)(l))
	}
}

// InDoubt is part of engine.Resolver. An owner that others may use has a count that is theirs.
func (l *lateReentry) InDoubt() *engine.InDoubt {
	if l.ownership.shared {
		return nil
	}
	return l.ownership.correction((*Hold)(l))
}
