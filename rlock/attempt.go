package rlock

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// attempt runs the acquire script once. It returns true when a.hold is live,
// and false without an error when somebody else has the lock.
func (a *acquisition) attempt(ctx context.Context) (bool, error) {
	e, h := a.lock.engine, a.hold
	a.doubtful = nil
	a.attempts++
	at := e.Attempt()
	transfer := a.transfer
	a.transfer = nil
	switch {
	case transfer != nil:
		a.lock.proto.Pass(&at.Call, h.asked(), transfer.Owner)
	case a.waits():
		a.lock.proto.Acquire(&at.Call, h.asked())
	default:
		a.lock.proto.Try(&at.Call, h.asked())
	}
	sent := time.Now()
	answer, err := at.Run(ctx, h.haunter())
	if transfer != nil {
		var passed bool
		switch passed, err = taken(transfer, answer, err); {
		case errors.Is(err, codec.ErrBadReply):
			h.disown()
			return false, err
		case err == nil && !passed:
			return a.attempt(ctx) // it is free, or somebody else's
		}
	}
	if err != nil {
		h.tenure.stained.Store(true)
		a.unanswered(err)
		return false, err
	}
	acquired, ttl, err := reply.Acquired(answer)
	switch {
	case err != nil:
		h.disown()
		return false, err
	case !acquired:
		a.refused(reply.Refused(answer), ttl)
		return false, nil
	}
	h.tenure.enter(h)
	if e.Replicas > 0 {
		h.proof.Store(unproven)
	}
	if err := h.live(sent); err != nil {
		h.tenure.abort(h)
		return false, err
	}
	return true, nil
}

// haunter returns who deals with an attempt of unknown outcome: nobody for an
// owner that others may use, since what it holds may be theirs.
func (h *Hold) haunter() engine.Ghost {
	switch {
	case h.tenure.lock.proto.Queues():
		return (*wraith)(h)
	case h.tenure.shared:
		return nil
	}
	return (*ghost)(h)
}

// refused takes in that somebody else has the lock.
func (a *acquisition) refused(r reply.Refusal, ttl time.Duration) {
	a.holder, a.ttl, a.away = r.Holder, ttl, nil
	a.passed = false // somebody else came in between
	if a.line != nil {
		a.line.Refused(r.Holder, ttl)
	}
	if a.waits() && a.lock.proto.Queues() {
		a.ttl = a.leaseLeft(r, ttl)
		a.queued(r)
	}
}

// unanswered deals with an attempt that ended with an error.
func (a *acquisition) unanswered(err error) {
	var refusal *transport.ServerError
	given := !a.set.owner.IsZero()
	switch {
	case errors.Is(err, redlatch.ErrUncertain) && given:
		// Nothing is undone: another user of the owner may hold the lock.
		a.unseat() // the ghost gives the place up
	case errors.Is(err, redlatch.ErrUncertain):
		// The owner may be about to acquire the lock. It is never used again.
		a.doubtful = a.hold
		a.abandon()
		a.fresh()
	case given && !a.lock.proto.Queues(): // likewise, and there is no place
	case errors.As(err, &refusal) && !engine.Passing(err) && !refusal.HasCode("WRONGTYPE"):
		// A script that failed half-way may have left the lock held, or a place.
		a.hold.disown()
		a.unseat()
		a.hold.drop()
		a.fresh()
	}
}

// fresh gives the acquisition a hold with an owner that nobody has had, or with
// the one that was given.
func (a *acquisition) fresh() {
	a.hold = newHold(a.lock, &a.set)
	a.hold.tries = !a.waits()
}

// abort gives back what was acquired in vain.
func (t *tenure) abort(h *Hold) {
	if t.leave(h); t.shared {
		t.lock.engine.Go(func() { _ = t.releaseShared(t.lock.engine.Command) }) // the lease ends it, too
		return
	}
	t.discard()
}

// ghost is a hold whose acquire has no known outcome.
type ghost Hold

// Haunt is part of engine.Ghost: it sees to it that a lock acquired for a caller
// who has left is given back.
func (g *ghost) Haunt(at *engine.Attempt, answer any, err error) {
	t := &(*Hold)(g).own
	if errors.Is(err, redlatch.ErrUncertain) {
		t.settle(at)
		t.rest() // this may take long: the others need not wait for it
		return
	}
	at.Free()
	if errors.Is(err, redlatch.ErrNotSent) {
		t.rest()
		return
	}
	if err == nil {
		if acquired, _, decodeErr := reply.Acquired(answer); decodeErr == nil && !acquired {
			t.rest()
			return
		}
	}
	t.doubt(nil, t.rest, func(c *transport.Call) { t.lock.proto.Release(c, &t.acq, 0) })
}
