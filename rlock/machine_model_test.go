package rlock_test

import (
	"errors"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// This file is the rules of the lock in plain Go: which owner holds it, with
// which count, until when, and how each hold ends. It knows nothing of queues,
// watchdogs or connections. machine_test.go compares the package with it.

// mHold is one hold.
type mHold struct {
	real      *rlock.Hold
	client    int
	ownership *mOwnership
	parent    *mHold // whose proof it was acquired with
	outer     *mHold // whose inner hold it is
	inner     *mHold

	lease  time.Duration
	fixed  bool
	lossAt time.Time // of a fixed one
	maxAt  time.Time // zero: no maximum

	end      error     // nil while live
	doomed   time.Time // the server has forgotten it: it ends by then; zero: not so
	unlocked bool
	result   error // of the first Unlock
}

// mOwnership is an owner's time with the lock in one client.
type mOwnership struct {
	owner  string
	shared bool
	holds  []*mHold // those that the count counts
}

// mServer is the key.
type mServer struct {
	owner   string // "": the lock is free
	count   int64
	longest time.Duration // no lease of this owner was longer
	// exp is when the time to live ends, as read after the last step; renewals
	// move it.
	exp time.Time
}

type model struct {
	server mServer
	holds  []*mHold
	now    time.Time
	// loose says that renewals ended in the step: then only the next look at the
	// server tells when the time to live ends.
	loose bool
}

func (m *model) free() { m.server = mServer{} }

// grant makes owner the holder, or counts one more.
func (m *model) grant(h *mHold) {
	h.ownership.holds = append(h.ownership.holds, h)
	m.holds = append(m.holds, h)
	m.server.owner = h.ownership.owner
	m.server.longest = max(m.server.longest, h.lease)
}

func (m *model) onServer(t *mOwnership) bool { return m.server.owner == t.owner }

// renewed reports whether a hold renews the lock.
func (m *model) renewed() bool {
	return slices.ContainsFunc(m.holds, func(h *mHold) bool {
		return h.end == nil && !h.fixed && m.onServer(h.ownership)
	})
}

// live reports whether the server's owner has a live hold.
func (m *model) live() bool {
	return slices.ContainsFunc(m.holds, func(h *mHold) bool { return h.end == nil && m.onServer(h.ownership) })
}

// lost ends a live hold. The last of an owner that is ours alone frees the lock.
func (m *model) lost(h *mHold) {
	if h.end != nil {
		return
	}
	h.end = redlatch.ErrLost
	if m.leave(h) == 0 && !h.ownership.shared && m.onServer(h.ownership) {
		m.free()
	}
}

// uncount takes a lost hold of a shared owner out of the count, which the other
// holds keep.
func (m *model) uncount(t *mOwnership) {
	if t.shared && len(t.holds) > 0 && m.onServer(t) {
		m.server.count--
	}
}

// enters makes h the inner hold of outer.
func (h *mHold) enters(outer *mHold) {
	if h.outer = outer; outer != nil {
		outer.inner = h
	}
}

// quits ends being an inner hold: its own inner one takes its place.
func (h *mHold) quits() {
	if h.outer != nil {
		h.outer.inner = h.inner
	}
	if h.inner != nil {
		h.inner.outer = h.outer
	}
	h.outer, h.inner = nil, nil
}

// mayQuit reports whether an inner hold that has reached its maximum may have left its place
// by now, and whether it must have: it keeps it for what was left of its lease.
func (h *mHold) mayQuit(now time.Time) (may, must bool) {
	if h.end != redlatch.ErrMaxHold { //nolint:errorlint // exactly this
		return false, false
	}
	over := now.Sub(h.maxAt)
	return over >= h.lease*6/10, over > h.lease
}

// leave takes a hold out of its tenure and returns how many remain.
func (m *model) leave(h *mHold) int {
	h.quits()
	t := h.ownership
	t.holds = slices.DeleteFunc(t.holds, func(o *mHold) bool { return o == h })
	return len(t.holds)
}

// lostAll ends every live hold of a tenure: the server does not have it.
func (m *model) lostAll(t *mOwnership) {
	for _, h := range slices.Clone(t.holds) {
		m.lost(h)
	}
}

// shared returns a client's tenure of an owner that travels: all its holds of that
// owner are one.
func (m *model) shared(client int, owner string) *mOwnership {
	for _, h := range m.holds {
		if t := h.ownership; h.client == client && t.shared && t.owner == owner && len(t.holds) > 0 {
			return t
		}
	}
	return &mOwnership{owner: owner, shared: true}
}

// forget is the key's end by other hands, or by its time to live. Renewed holds
// learn of it with their next renewal.
func (m *model) forget() {
	for _, h := range m.holds {
		if h.end == nil && m.onServer(h.ownership) && h.doomed.IsZero() {
			h.doomed = m.now.Add(h.lease)
			if !h.fixed {
				h.doomed = m.now.Add(h.lease/3 + time.Millisecond)
			}
		}
	}
	m.free()
}

// advance is time passing until now.
func (m *model) advance(now time.Time) {
	renewed := m.renewed()
	exp := m.server.exp
	m.now = now
	for _, h := range m.holds {
		switch {
		case h.end != nil:
		case h.fixed && !now.Before(h.lossAt):
			m.lost(h)
			m.uncount(h.ownership)
		case !h.doomed.IsZero():
			// It may have learnt of it, or not: resolve asks it.
		case !h.maxAt.IsZero() && !now.Before(h.maxAt):
			h.end = redlatch.ErrMaxHold // and is counted until it is unlocked
		}
	}
	switch {
	case m.server.owner == "" || m.renewed():
	case renewed:
		m.loose = true
	case now.Sub(exp) >= time.Millisecond:
		m.forget()
	case !now.Before(exp):
		m.loose = true // the server counts finer than it says
	}
}

// resolve settles what the rules leave open: when exactly a hold that the server
// has forgotten learns of that. It returns false when that is against the rules.
func (m *model) resolve() bool {
	for _, h := range m.holds {
		if h.end != nil || h.doomed.IsZero() {
			continue
		}
		switch err := h.real.Err(); {
		case err == nil && m.now.Before(h.doomed):
		case errors.Is(err, redlatch.ErrLost):
			m.lost(h)
		case err == redlatch.ErrMaxHold && !h.maxAt.IsZero() && !m.now.Before(h.maxAt): //nolint:errorlint // exactly this
			h.end = err
		default:
			return false
		}
	}
	return true
}

// prove finds the hold that a context made from h's proves. An error is that of
// a hold that was lost.
func (h *mHold) prove() (*mHold, error) {
	for x := h; x != nil; x = x.parent {
		switch {
		case x.end == nil:
			return x, nil
		case errors.Is(x.end, redlatch.ErrNotHeld), errors.Is(x.end, redlatch.ErrHandedOver):
		default:
			return nil, x.end
		}
	}
	return nil, nil
}

// reenter is the rule for a re-entry into a live hold's tenure. It returns
// whether that succeeds.
func (m *model) reenter(t *mOwnership) bool {
	switch {
	case !m.onServer(t):
		m.lostAll(t)
		return false
	case t.shared:
		m.server.count++
	default:
		m.server.count = max(m.server.count, int64(len(t.holds))+1)
	}
	return true
}

// unlock is the rule for the first Unlock of a hold.
func (m *model) unlock(h *mHold) error {
	if h.end != nil && h.end != redlatch.ErrMaxHold { //nolint:errorlint // exactly this
		return h.end
	}
	ended := h.end
	h.end = redlatch.ErrNotHeld
	if ended != nil {
		h.end = ended
	}
	err := m.lower(h.ownership, m.leave(h))
	if ended != nil {
		return ended
	}
	return err
}

func (m *model) lower(t *mOwnership, left int) error {
	switch {
	case !m.onServer(t):
		if left > 0 && !t.shared {
			m.lostAll(t)
		}
		return redlatch.ErrLost
	case t.shared:
		m.server.count--
		m.server.longest = max(m.server.longest, 30*time.Second) // as Redisson
	default:
		m.server.count = min(m.server.count, int64(left))
	}
	if m.server.count == 0 {
		m.free()
	}
	return nil
}

// letGo is the rule for LetExpire and HandOver. Refused is true while there are
// other holds.
func (m *model) letGo(h *mHold, end error) (refused bool, err error) {
	switch {
	case h.end != nil:
		return false, h.end
	case len(h.ownership.holds) > 1:
		return true, nil
	case end == redlatch.ErrHandedOver && !m.onServer(h.ownership): //nolint:errorlint // exactly this
		m.lostAll(h.ownership)
		return false, redlatch.ErrLost
	}
	if end == redlatch.ErrHandedOver && !h.ownership.shared { //nolint:errorlint // exactly this
		m.server.count = 1 // what lost inner holds left is not handed over
	}
	h.end, h.unlocked, h.result = end, true, nil
	m.leave(h)
	return false, nil
}

// closed is the end of a client: its holds end, and their leases go on.
func (m *model) closed(client int) {
	for _, h := range m.holds {
		if h.client == client && h.end == nil {
			h.end = redlatch.ErrClosed
		}
	}
}
