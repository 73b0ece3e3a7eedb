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
