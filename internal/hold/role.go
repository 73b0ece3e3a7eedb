package hold

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
)

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
