package hold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

// ErrNotReentered says that the hold that a proof stands for was given up, or is of another kind
// within which this one has no role: then the proof counts for nothing.
var ErrNotReentered = errors.New("the proof counts for nothing")

// Reenter makes h, which is zero, a hold of l for the owner of outer, by acquiring the lock
// again, as soon as outer has no other inner hold; in a role that several share it need not
// wait for that. One change of the count at a time travels to the server, and each says where
// to arrive. A caller that does not wait for the lock waits neither for an inner hold nor for
// long for another change.
func (h *Hold) Reenter(ctx context.Context, l *Lock, terms *Terms, outer *Hold) error {
	kind, _ := l.Kind.(Reentrant) // it is one, else Proof has no outer
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
	o.asksFor(h.lease.TTL)
	h.Asks(true)
	defer h.Asks(false)
	var sent time.Time
	var answer any
	e := o.lock.Engine
	err = e.Retry(ctx, func() (err error) {
		at := e.Attempt()
		h.fillReenter(kind, &at.Call)
		sent = time.Now()
		answer, err = at.Run(ctx, (*lateReentry)(h))
		return err
	})
	if err != nil {
		h.Drop()
		return h.notEntered(engine.WithEnd(ctx, err))
	}
	held, err := o.reenters(kind, answer)
	return h.entered(outer, held, err, sent)
}

// reenters reads the reply of a re-entry, and takes in its token if there is one.
func (o *ownership) reenters(kind Reentrant, answer any) (bool, error) {
	held, err := kind.Reentered(answer)
	if fencing, can := kind.(Fencing); can && held && err == nil {
		var token int64
		token, err = fencing.Token(answer)
		o.fence(token)
	}
	return held, err
}

// beginReentry counts a re-entry in, which is the change of the count that is under way then.
func (o *ownership) beginReentry(ctx context.Context, outer *Hold, waits bool) error {
	if err := o.awaitChange(ctx, outer, waits); err != nil {
		return err
	}
	entered := !o.shared || o.lock.joinShared(o.owner) == o
	var err error
	if entered {
		entered, err = o.enterRole(ctx, outer, waits)
	}
	if entered {
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

// awaitChange is beginChange for a re-entry: it waits for one command timeout, or, for a caller
// that waits for the lock, for as long as there is something to enter.
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

// enter counts a re-entry in. It returns false when there is nothing left to re-enter. Each
// enter that returned true needs an over.
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

// over counts a re-entry out, after its hold was added if it succeeded. It reports whether the lock
// must be freed because every hold left in the meantime.
func (o *ownership) over() (free bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.entering--
	free = len(o.holds)+o.entering == 0 && !o.freed && !o.hasBase()
	o.freed = o.freed || free
	return free
}

// fillReenter fills the call that re-enters. For owners that others may use, too, the count is
// not known here: it becomes one more.
func (h *Hold) fillReenter(kind Reentrant, c *transport.Call) {
	o := h.ownership
	r := acquire.Request{Owner: o.final.Owner, Lease: h.lease.TTLArg}
	if !o.shared {
		r.Target = o.count() + 1
	}
	kind.Reenter(c, &r)
}

// notEntered ends a re-entry that failed.
func (h *Hold) notEntered(err error) error {
	o := h.ownership
	if free := o.over(); free {
		o.passTurn(false)
		if !o.shared {
			o.discard()
		}
	}
	if !errors.Is(err, engine.ErrUncertain) || o.shared {
		h.endEntering() // else its resolver does
	}
	return err
}

// entered ends a re-entry that the server answered.
func (h *Hold) entered(outer *Hold, held bool, err error, sent time.Time) error {
	o := h.ownership
	switch {
	case err != nil:
		h.Drop()
		h.miscounted()
		return err
	case !held:
		why := outer.gone()
		if free := o.over(); free {
			o.passTurn(false) // the outer holds were given up meanwhile
		} else {
			o.lose(sent)
			outer.ownership.lose(sent)
		}
		h.endEntering()
		h.Drop()
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

// miscounted ends a re-entry of which it is not known whether it was counted, and sees to it
// that the count is right. An owner that others may use has a count that is theirs.
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

// endEntering ends a re-entry that came to nothing, and that nothing is open about.
func (h *Hold) endEntering() {
	h.leaveSlot()
	h.ownership.endChange()
}

// undoReentry takes back a re-entry that the server granted and that came to nothing, and ends the
// change.
func (o *ownership) undoReentry(h *Hold) {
	left := o.remove(h)
	if left == 0 && o.isFreed() {
		o.passTurn(false)
	}
	switch {
	case o.shared:
		o.lock.Engine.Go(func() { _ = o.releaseShared(o.lock.Engine.Command, nil) }) // the lease ends it, too
		o.endChange()
	case left == 0 && o.isFreed():
		o.discard()
		o.endChange()
	default:
		o.correct(nil)
	}
}

// ErrSharedOwner is ErrNotReentered for a hold whose owner others may use, too, and that was
// acquired in another role: its owner acquires the lock in this one like any other.
var ErrSharedOwner = fmt.Errorf("%w: its owner is shared", ErrNotReentered)

// shares reports whether several owners can hold the lock at a time.
func (l *Lock) shares() bool {
	role, ok := l.Kind.(Role)
	return ok && role.Shares()
}

// inRole returns the ownership that a caller of the lock enters with the proof of outer, and
// the hold that it is within: those of outer, or, when outer has another role, of the same
// owner in this one.
func (l *Lock) inRole(outer *Hold) (*ownership, *Hold, error) {
	o := outer.ownership
	if o.lock.Kind.Name() == l.Kind.Name() {
		return o, outer, nil
	}
	if around := outer.around(l.Kind.Name()); around != nil {
		return around.ownership, around, nil
	}
	role, ok := l.Kind.(Role)
	if !ok {
		return nil, nil, ErrNotReentered
	}
	if err := role.Under(o.lock.Kind); err != nil {
		return nil, nil, err
	}
	if o.shared {
		return nil, nil, ErrSharedOwner
	}
	return o.inOtherRole(l), outer, nil
}

// around returns the nearest hold further out that has a role and is not over, nil when there
// is none.
func (h *Hold) around(role string) *Hold {
	for w := h.within; w != nil; w = w.within {
		if w.ownership.lock.Kind.Name() == role && w.Err() == nil {
			return w
		}
	}
	return nil
}

// inOtherRole returns what the owner holds in the role of l, begun in this one: the same one
// for as long as this lasts, since what is under way about it counts on its number of holds.
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

// hasBase reports whether the owner holds the lock in the role in which this began. The mu of
// the ownership may be held; that of its base is never taken before.
func (o *ownership) hasBase() bool { return o.base != nil && !o.base.isFreed() }

// otherRole returns what the owner holds in the role that was begun in this one, nil when it
// never had such a hold.
func (o *ownership) otherRole() *ownership {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.nested
}

// inSeveralRoles reports whether the owner holds the lock in another role besides, or is about
// to.
func (o *ownership) inSeveralRoles() bool {
	nested := o.otherRole()
	return o.hasBase() || nested != nil && (nested.count() > 0 || nested.isEntering())
}

// isEntering reports whether a re-entry is under way.
func (o *ownership) isEntering() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.entering > 0
}

// enterRole is enter for an owner that may be leaving the role in which this one began: while
// that hold is handed over, or left to its lease, it waits, and then there is nothing to enter.
// The change of the count in this role is under way.
func (o *ownership) enterRole(ctx context.Context, outer *Hold, waits bool) (bool, error) {
	if !o.hasBase() {
		return o.enter(), nil
	}
	if err := o.base.awaitChange(ctx, outer, waits); err != nil {
		return false, err
	}
	defer o.base.endChange()
	return o.enter(), nil
}

// freeAfterEntering is free as soon as no re-entry in the role that was begun in this one is
// under way, so that the release reaches the server after it.
func (o *ownership) freeAfterEntering(bound time.Duration, s *sending) error {
	nested := o.otherRole()
	if nested == nil || !nested.isEntering() {
		return o.free(bound, s)
	}
	began := time.Now()
	if !nested.beginChangeFor(bound) {
		o.discard()
		o.passTurn(false)
		return errUnresolved
	}
	defer nested.endChange()
	return o.free(bound-time.Since(began), s)
}
