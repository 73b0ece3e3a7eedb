package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// proofKey is the key under which a hold's context carries the hold: a proof for
// this kind of lock of this name and client, and for no other.
type proofKey struct {
	engine    *engine.Engine
	kind, key string
}

// errNoWayBack says that the hold that a proof stands for was given up: then the
// proof counts for nothing.
var errNoWayBack = errors.New("the proof counts for nothing")

// proof returns the hold that ctx proves. None, without an error, when there is
// no proof or it counts for nothing; an error when the hold was lost.
func (a *acquisition) proof(ctx context.Context) (*Hold, error) {
	h, ok := ctx.Value(a.lock.proofKey).(*Hold)
	if !ok || !a.set.owner.IsZero() {
		return nil, nil
	}
	err := h.Err()
	if errors.Is(err, redlatch.ErrNotHeld) || errors.Is(err, redlatch.ErrHandedOver) {
		return nil, nil
	}
	return h, err
}

// reenter acquires the lock again for the owner of outer. One change of the count
// at a time travels to the server, and each says where to arrive.
func (a *acquisition) reenter(ctx context.Context, outer *Hold) (*Hold, error) {
	t := outer.tenure
	if err := a.takeTurn(ctx, t); err != nil {
		return nil, a.refuse(ctx, err)
	}
	if t.shared && t.lock.joinShared(t.owner) != t || !t.begin() {
		if t.shared {
			t.quitShared()
		}
		t.give()
		return nil, errNoWayBack
	}
	h := newInner(t, &a.set)
	a.hold, a.inner = h, true
	var sent time.Time
	var reply any
	err := t.lock.engine.Retry(ctx, func() (err error) {
		at := t.lock.engine.Attempt()
		h.fillReenter(&at.Call)
		sent = time.Now()
		reply, err = at.Run(ctx, (*echo)(t))
		return err
	})
	if err != nil {
		h.drop()
		return nil, t.notEntered(withEnd(ctx, err))
	}
	return t.entered(h, reply, sent)
}

// takeTurn waits for the turn to change the count: one command timeout, or, for a
// caller who waits, for as long as there is something to enter.
func (a *acquisition) takeTurn(ctx context.Context, t *tenure) error {
	for {
		err := t.take(ctx)
		if !errors.Is(err, errUnsettled) || !a.waits() || a.outer.Err() != nil {
			return err
		}
	}
}

// refuse returns why a re-entry did not get its turn.
func (a *acquisition) refuse(ctx context.Context, err error) error {
	end := a.outer.Err()
	switch {
	case errors.Is(end, redlatch.ErrLost):
		return end
	case ctx.Err() != nil:
		return a.gaveUp(ctx)
	}
	return err
}

// fillReenter fills the call that re-enters. For owners that others may use, too,
// nobody here knows the count: it becomes one more.
func (h *Hold) fillReenter(c *transport.Call) {
	t := h.tenure
	acq := t.acq
	acq.Lease = h.lease.TTLArg
	var target int64
	if !t.shared {
		target = t.count() + 1
	}
	t.lock.proto.Reenter(c, &acq, target)
}

// notEntered ends a re-entry that failed.
func (t *tenure) notEntered(err error) error {
	if free := t.over(nil); free {
		t.passOn(false)
		if !t.shared {
			t.discard()
		}
	}
	if !errors.Is(err, redlatch.ErrUncertain) || t.shared {
		t.give() // else the echo has the turn
	}
	return err
}

// entered ends a re-entry that the server answered.
func (t *tenure) entered(h *Hold, answer any, sent time.Time) (*Hold, error) {
	held, err := reply.Reentered(answer)
	if err != nil {
		h.drop()
		t.miscounted()
		return nil, err
	}
	if !held {
		if free := t.over(nil); free {
			t.passOn(false) // the outer holds were given up meanwhile
		} else {
			t.lose()
		}
		t.give()
		h.drop()
		return nil, redlatch.ErrLost
	}
	t.over(h)
	if err := h.live(sent); err != nil {
		t.undo(h)
		return nil, fmt.Errorf("%w (re-entry)", err)
	}
	t.give()
	return h, nil
}

// miscounted ends a re-entry of which nobody knows whether it was counted, and sees to
// it that the count is right. An owner that others may use has a count that is theirs.
func (t *tenure) miscounted() {
	free := t.over(nil)
	if free {
		t.passOn(false)
	}
	switch {
	case t.shared:
		t.give()
	case free:
		t.discard()
		t.give()
	default:
		t.arrive(nil)
	}
}

// undo takes back a re-entry that the server granted and that came to nothing,
// and gives the turn back.
func (t *tenure) undo(h *Hold) {
	left := t.leave(h)
	if left == 0 {
		t.passOn(false)
	}
	switch {
	case t.shared:
		t.lock.engine.Go(func() { _ = t.releaseShared(t.lock.engine.Command) }) // the lease ends it, too
		t.give()
	case left == 0:
		t.discard()
		t.give()
	default:
		t.arrive(nil)
	}
}

// echo is a tenure with a re-entry whose outcome is not known. It has the turn.
type echo tenure

// Haunt is part of engine.Ghost: it brings the count to the number of holds.
func (o *echo) Haunt(at *engine.Attempt, _ any, err error) {
	t := (*tenure)(o)
	if t.shared {
		at.Free()
		return
	}
	if !errors.Is(err, redlatch.ErrUncertain) {
		at.Free()
		at = nil
	}
	t.arrive(at)
}
