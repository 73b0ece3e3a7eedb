package rlock_test

import (
	"errors"
	"slices"
	"strconv"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// The model predicts the lock's owner, count and expiry, and how each hold ends. It does not model
// queues, watchdogs or connections.

type mHold struct {
	real      *rlock.Hold
	client    int
	ownership *mOwnership
	parent    *mHold // the hold whose proof was used to acquire it
	outer     *mHold // the hold into which it re-entered
	inner     *mHold

	lease  time.Duration
	fixed  bool
	lossAt time.Time // when a fixed lease is lost
	maxAt  time.Time // zero if there is no maximum

	end      error     // nil while live
	doomed   time.Time // the server has forgotten it, and it ends by then; or zero
	unlocked bool
	result   error // of the first Unlock
}

// mOwnership contains the holds of one owner in one client.
type mOwnership struct {
	owner  string
	shared bool
	holds  []*mHold // counted on the server
}

type mServer struct {
	owner   string // "" if the lock is free
	count   int64
	longest time.Duration // longest lease of this owner
	// exp is the time at which the key expires, as of the last step; renewals extend it.
	exp time.Time
}

type model struct {
	server mServer
	holds  []*mHold
	now    time.Time
	// loose means that renewals ended in this step, so exp is unknown until the server is read.
	loose bool
}

func (m *model) free() { m.server = mServer{} }

func (m *model) grant(h *mHold) {
	h.ownership.holds = append(h.ownership.holds, h)
	m.holds = append(m.holds, h)
	m.server.owner = h.ownership.owner
	m.server.longest = max(m.server.longest, h.lease)
}

func (m *model) onServer(t *mOwnership) bool { return m.server.owner == t.owner }

func (m *model) renewed() bool {
	return slices.ContainsFunc(m.holds, func(h *mHold) bool {
		return h.end == nil && !h.fixed && m.onServer(h.ownership)
	})
}

func (m *model) live() bool {
	return slices.ContainsFunc(m.holds, func(h *mHold) bool { return h.end == nil && m.onServer(h.ownership) })
}

// lost ends a live hold. The last one releases the lock, unless the owner is shared.
func (m *model) lost(h *mHold) {
	if h.end != nil {
		return
	}
	h.end = redlatch.ErrLost
	if m.leave(h) == 0 && !h.ownership.shared && m.onServer(h.ownership) {
		m.free()
	}
}

// uncount subtracts a lost hold of a shared owner.
func (m *model) uncount(t *mOwnership) {
	if t.shared && len(t.holds) > 0 && m.onServer(t) {
		m.server.count--
	}
}

func (h *mHold) enters(outer *mHold) {
	if h.outer = outer; outer != nil {
		outer.inner = h
	}
}

// quits replaces the hold with its own inner hold.
func (h *mHold) quits() {
	if h.outer != nil {
		h.outer.inner = h.inner
	}
	if h.inner != nil {
		h.inner.outer = h.outer
	}
	h.outer, h.inner = nil, nil
}

// mayQuit reports whether an inner hold that has reached its maximum may have been replaced by now,
// and whether it must have been.
func (h *mHold) mayQuit(now time.Time) (may, must bool) {
	if h.end != redlatch.ErrMaxHold { //nolint:errorlint // exactly this
		return false, false
	}
	over := now.Sub(h.maxAt)
	return over >= h.lease*6/10, over > h.lease
}

// leave removes a hold and returns the number of remaining holds.
func (m *model) leave(h *mHold) int {
	h.quits()
	t := h.ownership
	t.holds = slices.DeleteFunc(t.holds, func(o *mHold) bool { return o == h })
	return len(t.holds)
}

// lostAll ends every live hold of an ownership.
func (m *model) lostAll(t *mOwnership) {
	for _, h := range slices.Clone(t.holds) {
		m.lost(h)
	}
}

// shared returns the client's ownership of a shared owner.
func (m *model) shared(client int, owner string) *mOwnership {
	for _, h := range m.holds {
		if t := h.ownership; h.client == client && t.shared && t.owner == owner && len(t.holds) > 0 {
			return t
		}
	}
	return &mOwnership{owner: owner, shared: true}
}

// forget removes the key. Renewed holds notice at their next renewal.
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
			// resolve decides
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
		m.loose = true // the server's clock is finer than its replies
	}
}

// resolve accepts any time within the limit at which a hold notices that its key is gone. It
// returns false after the limit.
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

// prove returns the hold to which a context of h belongs, or the reason why it was lost.
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

// reenter reports whether a re-entry into a live hold succeeds.
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

// unlock returns the result of a hold's first Unlock.
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
		m.server.longest = max(m.server.longest, 30*time.Second) // as Redisson does
	default:
		m.server.count = min(m.server.count, int64(left))
	}
	if m.server.count == 0 {
		m.free()
	}
	return nil
}

// letGo models LetExpire and HandOver, which fail while there are other holds.
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
		m.server.count = 1 // counts of lost inner holds are not handed over
	}
	h.end, h.unlocked, h.result = end, true, nil
	m.leave(h)
	return false, nil
}

// closed ends a client's holds and leaves their leases.
func (m *model) closed(client int) {
	for _, h := range m.holds {
		if h.client == client && h.end == nil {
			h.end = redlatch.ErrClosed
		}
	}
}

func (m *machine) check(rt *rapid.T) {
	synctest.Wait()
	if now := time.Now(); now.After(m.now) {
		m.advance(now)
	}
	for _, h := range m.holds {
		if h.end != nil || h.doomed.IsZero() {
			m.checkEnd(rt, h)
		}
		if end := h.real.Err(); end != nil {
			require.Zero(rt, h.real.Remaining())
		}
	}
	require.True(rt, m.resolve(), "a hold did not notice that the server lost it")
	synctest.Wait()
	m.checkServer(rt)
	m.loose = false
}

// checkEnd ignores the reason for a loss.
func (m *machine) checkEnd(rt *rapid.T, h *mHold) {
	if end := h.real.Err(); h.end == redlatch.ErrLost { //nolint:errorlint // exactly this
		var why redlatch.Loss
		require.ErrorAs(rt, end, &why)
	} else {
		require.Equal(rt, h.end, end)
	}
}

func (m *machine) checkServer(rt *rapid.T) {
	have := owners(m.t, m.srv, "lock")
	left := ttl(m.t, m.srv, "lock")
	if len(have) == 0 {
		require.False(rt, m.live(), "the server has lost a lock that is held")
		if m.server.owner != "" {
			require.True(rt, m.loose, "it was released early")
			m.free()
		}
		return
	}
	require.Equal(rt, map[string]string{m.server.owner: strconv.FormatInt(m.server.count, 10)}, have)
	require.Positive(rt, left)
	require.LessOrEqual(rt, left, m.server.longest)
	for _, h := range m.holds {
		if h.end == nil && m.onServer(h.ownership) {
			require.GreaterOrEqual(rt, left, h.real.Remaining(), "a hold assumes a longer lease than the server's")
		}
	}
	m.server.exp = m.now.Add(left)
}

// checkRest checks that an unlock leaves the longest remaining lease.
func (m *machine) checkRest(rt *rapid.T, t *mOwnership, before int64) {
	if !m.onServer(t) || m.server.count == before || t.shared {
		return
	}
	var owed time.Duration
	for _, h := range t.holds {
		switch {
		case h.end != nil:
			return // it has reached its maximum
		case h.fixed:
			owed = max(owed, h.lossAt.Add(min(h.lease/10, time.Second)).Sub(m.now))
		default:
			owed = max(owed, h.lease)
		}
	}
	require.Equal(rt, owed, ttl(m.t, m.srv, "lock"))
}
