package hold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
)

// ErrNotReentered means that a proof is not valid, because its hold was released or its kind is not reentrant.
var ErrNotReentered = errors.New("not a valid proof")

// Reenter initializes h, which must be zero, as a hold of l for the owner of outer. Unless the role is shared, it waits
// until outer does not have any other inner hold.
func (h *Hold) Reenter(ctx context.Context, l *Lock, terms *Terms, outer *Hold) error {
	h.ownership = outer.ownership
	o, outer, err := l.inRole(outer)
	if err != nil {
		return err
	}
	h.ownership, h.within = o, outer
	if !l.shares() {
		err = h.takeSlot(ctx, outer, terms.Try)
	}
	if err == nil {
		err = o.beginReentry(ctx, outer, !terms.Try)
	}
	if err != nil {
		h.leaveSlot()
		return err
	}
	h.prepare(terms)
	o.mu.Lock()
	o.lasts(h.lease.TTL) // before the call, which may run even if its reply is lost
	o.mu.Unlock()
	h.Asks(true)
	defer h.Asks(false)
	var sent time.Time
	var answer any
	e := o.lock.Engine
	err = e.Retry(ctx, func() (err error) {
		at := e.Attempt()
		r := acquire.Request{Owner: o.final.Owner, Lease: h.lease.TTLArg}
		if !o.shared { // otherwise the count is unknown, and the call adds one
			r.Target = o.count() + 1
		}
		l.Owning.Reenter(&at.Call, &r)
		sent = time.Now()
		answer, err = at.Run(ctx, (*lateReentry)(h))
		return err
	})
	if err != nil {
		h.Drop()
		return h.notEntered(engine.WithEnd(ctx, err))
	}
	held, err := o.reenters(answer)
	return h.entered(outer, held, err, sent)
}

func (o *ownership) reenters(answer any) (bool, error) {
	held, token, err := o.lock.Owning.Reentered(answer)
	o.fence(token)
	return held, err
}

// beginReentry begins a re-entry, which is the current change of the count until endChange is called.
func (o *ownership) beginReentry(ctx context.Context, outer *Hold, waits bool) error {
	if err := o.awaitChange(ctx, outer, waits); err != nil {
		return err
	}
	entered := !o.shared || o.lock.joinShared(o.owner) == o
	var err error
	if entered && o.hasBase() { // another caller may be handing the base over or letting it expire
		if err = o.base.awaitChange(ctx, outer, waits); err == nil {
			defer o.base.endChange()
		}
	}
	if entered && err == nil && o.enter() {
		return nil
	}
	if o.shared {
		o.quitShared()
	}
	o.endChange()
	if err == nil {
		err = ErrNotReentered
	}
	return err
}

// awaitChange is beginChange for a re-entry. If waits is set, it repeats beginChange until outer has ended.
func (o *ownership) awaitChange(ctx context.Context, outer *Hold, waits bool) error {
	err := o.beginChange(ctx)
	for errors.Is(err, errUnresolved) && waits && outer.Err() == nil {
		err = o.beginChange(ctx)
	}
	if err != nil {
		if end := refuse(ctx, outer, engine.ErrNotAcquired); end != nil {
			return end
		}
	}
	return err
}

// enter begins a re-entry, and returns false if the ownership has ended. If it returns true, the caller must call over.
func (o *ownership) enter() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.freed || len(o.holds) == 0 && !o.hasBase() {
		return false
	}
	o.entering++
	o.reentered = true
	o.notReusable.Store(true)
	return true
}

// over ends a re-entry. If that succeeded, its hold must have been added. over reports whether the caller must free the
// lock, because all other holds were removed.
func (o *ownership) over() (free bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.entering--
	free = len(o.holds)+o.entering == 0 && !o.freed && !o.hasBase()
	o.freed = o.freed || free
	return free
}

func (h *Hold) notEntered(err error) error {
	o := h.ownership
	if free := o.over(); free {
		o.passTurn(false)
		if !o.shared {
			o.discard()
		}
	}
	if !errors.Is(err, engine.ErrUncertain) || o.shared {
		h.endEntering() // otherwise its resolver does
	}
	return err
}

func (h *Hold) entered(outer *Hold, held bool, err error, sent time.Time) error {
	o := h.ownership
	switch {
	case err != nil:
		h.Drop()
		h.miscounted()
		return err
	case !held:
		defer h.Drop()
		defer h.endEntering()
		// If over returns true, the outer holds have been released.
		why := outer.gone()
		if free := o.over(); free {
			o.passTurn(false)
		} else {
			o.lose(sent)
			outer.ownership.lose(sent)
		}
		return why
	}
	o.add(h, sent)
	o.over()
	if err := h.live(sent); err != nil {
		o.undoReentry(h)
		return fmt.Errorf("%w (re-entry)", err)
	}
	o.endChange()
	return nil
}

// miscounted ends a re-entry that may have been counted, and corrects the count of an unshared owner.
func (h *Hold) miscounted() {
	o := h.ownership
	free := o.over()
	if free {
		o.passTurn(false)
	}
	switch {
	case o.shared:
		h.endEntering()
	case free:
		o.discard()
		h.endEntering()
	default:
		o.correct(h)
	}
}

func (h *Hold) endEntering() {
	h.leaveSlot()
	h.ownership.endChange()
}

func (o *ownership) undoReentry(h *Hold) {
	left := o.remove(h)
	if left == 0 && o.isFreed() {
		o.passTurn(false)
	}
	switch {
	case o.shared:
		o.lock.Engine.GoBeforeClose(func() { _ = o.releaseShared(o.lock.Engine.Command, nil) })
		o.endChange()
	case left == 0 && o.isFreed():
		o.discard()
		o.endChange()
	default:
		o.correct(nil)
	}
}

// ErrSharedOwner is ErrNotReentered for a shared owner's hold in another role. The owner must acquire the lock like any
// other owner.
var ErrSharedOwner = fmt.Errorf("%w: its owner is shared", ErrNotReentered)

// inRole returns the ownership that a caller with the proof of outer enters in the role of l, and the hold that
// encloses the new hold.
func (l *Lock) inRole(outer *Hold) (*ownership, *Hold, error) {
	o := outer.ownership
	if o.lock.Kind.Name() == l.Kind.Name() {
		return o, outer, nil
	}
	if around := outer.around(l.Kind.Name()); around != nil {
		return around.ownership, around, nil
	}
	if err := l.Owning.Under(); err != nil {
		return nil, nil, err
	}
	if o.shared {
		return nil, nil, ErrSharedOwner
	}
	return o.inOtherRole(l), outer, nil
}

func (h *Hold) around(role string) *Hold {
	for w := h.within; w != nil; w = w.within {
		if w.ownership.lock.Kind.Name() == role && w.Err() == nil {
			return w
		}
	}
	return nil
}

// inOtherRole returns the owner's ownership in the role of l. It is always the same one, because calls in progress
// depend on its count.
func (o *ownership) inOtherRole(l *Lock) *ownership {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.nested == nil {
		o.nested = &ownership{
			lock: l, owner: o.owner, lease: o.lease, base: o,
			final: &acquire.Request{Owner: l.Text(o.owner), Lease: o.lease.Milliseconds()},
		}
	}
	return o.nested
}
