package hold

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/internal/engine"
)

// ownership is the state that all holds of one owner share.
type ownership struct {
	lock  *Lock
	owner codec.Owner
	final *acquire.Request // arguments of the release that frees the lock
	// shared means that the owner may also be used elsewhere, so its count may change at any time.
	shared bool
	lease  time.Duration // lease of the first hold

	// floor is when the last fixed hold ends. Renewals must not shorten the TTL below it.
	floor clock.Atomic
	// least is the longest lease of the renewed holds, in nanoseconds.
	least atomic.Int64
	// pendingReleases counts abandoned releases that may still run, and a shared owner's releases that continue in the
	// background.
	pendingReleases atomic.Int64
	// resent counts how often the count was corrected.
	resent atomic.Int64
	// notReusable means that the owner must not be used again, because something about it may be unresolved.
	notReusable atomic.Bool
	token       atomic.Int64
	// subscription is the subscription of a queued owner. It is set before the hold is returned.
	subscription acquire.Reusable
	// base is the owner's ownership in the outer role, or nil. While it lasts, holds may be added even if this ownership
	// is empty.
	base *ownership

	// mu guards the fields below. It is not held during I/O.
	mu        sync.Mutex
	holds     []*Hold
	first     [1]*Hold
	asking    []*Hold       // attempts in progress; only used for a shared owner
	longest   time.Duration // longest lease of all attempts
	reentered bool
	entering  int  // re-entries in progress
	freed     bool // all holds were removed, so re-entry is impossible
	change    chan struct{}
	wait      any          // Request.Wait with which the owner was queued on the server
	turn      acquire.Turn // nil if the owner does not have the turn
	resolved  bool         // see leaveDoubt
	nested    *ownership   // the owner's ownership in the inner role, or nil
}

// fence records a fencing token. Tokens may arrive in any order.
func (o *ownership) fence(token int64) {
	for {
		newest := o.token.Load()
		if token <= newest || o.token.CompareAndSwap(newest, token) {
			return
		}
	}
}

func (o *ownership) add(h *Hold, sent time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h.since, h.expiry = sent, clock.After(sent, h.lease.TTL)
	if o.holds == nil {
		o.holds = o.first[:0]
	}
	o.holds = append(o.holds, h)
	o.lasts(h.lease.TTL)
	h.counted = true
	if o.shared {
		o.freed = false
	}
	o.setFloor()
}

// lasts records that the lock may remain on the server for lease. mu must be held.
func (o *ownership) lasts(lease time.Duration) {
	o.longest = max(o.longest, lease)
	if b := o.base; b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.longest = max(b.longest, lease)
	}
}

func (o *ownership) mayLast() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return max(o.lease, o.longest)
}

// remove returns how many holds and re-entries remain, or -1 if h was not there. The caller that removes the last hold
// must free the lock. If a re-entry is in progress, over decides that.
func (o *ownership) remove(h *Hold) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.Index(o.holds, h)
	if i < 0 {
		return -1
	}
	o.holds = append(o.holds[:i], o.holds[i+1:]...)
	h.unlink()
	o.setFloor()
	left := len(o.holds) + o.entering
	o.freed = o.freed || left == 0 && !o.hasBase()
	if o.shared {
		o.quitShared()
	}
	return left
}

// IsCounted reports whether the hold is neither released nor lost.
func (h *Hold) IsCounted() bool {
	h.ownership.mu.Lock()
	defer h.ownership.mu.Unlock()
	return slices.Contains(h.ownership.holds, h)
}

// setFloor recomputes floor and least from the holds that have not ended. mu must be held.
func (o *ownership) setFloor() {
	var floor clock.Deadline
	var least time.Duration
	var now time.Time
	for _, h := range o.holds {
		switch {
		case h.ended.Load() != nil:
			continue
		case !h.lease.Fixed:
			least = max(least, h.lease.TTL)
			continue
		case now.IsZero():
			now = time.Now()
		}
		if h.expiry.Remaining(now) > floor.Remaining(now) {
			floor = h.expiry
		}
	}
	o.floor.Store(floor)
	o.least.Store(int64(least))
}

// owed returns the number of holds and the lease that they need. Fixed holds, and ended holds that wait for Unlock,
// need the rest of their leases; all others need a full lease. If no holds remain, it returns the lease of the first
// hold.
func (o *ownership) owed() (holds int64, lease time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.owes()
}

// owes is like owed, but mu must be held.
func (o *ownership) owes() (holds int64, lease time.Duration) {
	if len(o.holds) == 0 {
		return 0, o.lease
	}
	var most time.Duration
	now := time.Now()
	for _, h := range o.holds {
		d := h.lease.TTL
		switch {
		case h.lease.Fixed:
			d = h.expiry.Remaining(now)
		case h.ended.Load() != nil:
			d = h.lease.Deadline().Remaining(now)
		}
		most = max(most, d)
	}
	return int64(len(o.holds)), max(most, time.Millisecond)
}

// most returns the longest lease that the holds and the attempts in progress need. If no holds remain, it uses none
// instead of their lease.
func (o *ownership) most(none time.Duration) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	holds, most := o.owes()
	if holds == 0 {
		most = none
	}
	for _, h := range o.asking {
		most = max(most, h.lease.TTL)
	}
	return most
}

func (o *ownership) count() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return int64(len(o.holds))
}

func (o *ownership) others(h *Hold) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, other := range o.holds {
		if other != h {
			return true
		}
	}
	return o.entering > 0
}

func (o *ownership) isFreed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.freed
}

// hasBase reports whether the owner holds the lock in the outer role. Lock order: an ownership's mu, then its base's.
func (o *ownership) hasBase() bool { return o.base != nil && !o.base.isFreed() }

func (o *ownership) otherRole() *ownership {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.nested
}

func (o *ownership) inSeveralRoles() bool {
	nested := o.otherRole()
	return o.hasBase() || nested != nil && (nested.count() > 0 || nested.isEntering())
}

func (o *ownership) isEntering() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.entering > 0
}

// lose ends the holds of an owner that did not hold the lock at the time asked. Later holds of a shared owner may be
// valid.
func (o *ownership) lose(asked time.Time) {
	o.mu.Lock()
	holds := slices.Clone(o.holds)
	o.mu.Unlock()
	for _, h := range holds {
		if !h.since.After(asked) {
			h.lose(h.gone())
		}
	}
}

// beginChange waits for the right to change the count. Changes are made one at a time, because each states the new
// count. The caller must call endChange. After one command timeout, beginChange returns errUnresolved.
func (o *ownership) beginChange(ctx context.Context) error {
	change := o.changes()
	timer := time.NewTimer(o.lock.Engine.Command)
	defer timer.Stop()
	select {
	case change <- struct{}{}:
		return nil
	case <-timer.C:
		return errUnresolved
	case <-ctx.Done():
		return engine.EndOf(ctx)
	case <-o.lock.Engine.Closing():
		return engine.ErrClosed
	}
}

// beginChangeFor is beginChange for releases. It waits for at most d, even while the client is closing.
func (o *ownership) beginChangeFor(d time.Duration) bool {
	change := o.changes()
	select {
	case change <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case change <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

func (o *ownership) endChange() { <-o.changes() }

func (o *ownership) changes() chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.change == nil {
		o.change = make(chan struct{}, 1)
	}
	return o.change
}

// passTurn passes on the turn if the owner has it. released means that the lock is being freed.
func (o *ownership) passTurn(released bool) {
	o.mu.Lock()
	turn := o.turn
	o.turn = nil
	o.mu.Unlock()
	if turn != nil {
		turn.Pass(released)
	}
}

// transfer passes the turn and the lock to the next caller, or returns nil if that is impossible.
func (o *ownership) transfer() *acquire.Transfer {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.turn == nil {
		return nil
	}
	t := o.turn.Transfer(o.final.Owner)
	if t != nil {
		o.turn = nil
	}
	return t
}
