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

type ownership struct {
	lock  *Lock
	owner codec.Owner
	final *acquire.Request // of the release that frees the lock
	// shared owners may be used elsewhere: another client may change the count at any time.
	shared bool
	lease  time.Duration // of the first hold

	// floor is when the last fixed hold ends on the server: renewals keep the TTL above it.
	floor clock.Atomic
	// least is the longest lease of the renewed holds, in nanoseconds.
	least atomic.Int64
	// pendingReleases counts abandoned releases that may still run.
	pendingReleases atomic.Int64
	// resent counts corrections of the count.
	resent atomic.Int64
	// notReusable means that something about the owner may be unresolved: it must not be reused.
	notReusable atomic.Bool
	// token is the newest fencing token, 0 for kinds without.
	token atomic.Int64
	// subscription is that of an owner that was queued on the server, nil if it was not. It is set
	// before the hold is returned.
	subscription acquire.Reusable
	// base is the owner's ownership in the outer role, nil if there is none. While it lasts,
	// holds may be added even if there are none.
	base *ownership

	// mu guards the fields below. It is not held during I/O.
	mu        sync.Mutex
	holds     []*Hold
	first     [1]*Hold      // room for the usual number of holds
	asking    []*Hold       // of a shared owner: attempts in progress
	longest   time.Duration // lease of all attempts
	reentered bool          // at least once
	entering  int           // re-entries in progress
	freed     bool          // the last hold was released: re-entry is impossible
	change    chan struct{}
	wait      any          // with which the owner was queued on the server
	turn      acquire.Turn // nil if the owner does not have its process's turn
	resolved  bool         // the attempt in doubt is resolved
	nested    *ownership   // the owner's holds in the inner role
}

// fence records the token of a grant. Tokens may arrive in any order.
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

// lasts records that the lock may last for lease on the server, also in the outer role, mu held.
func (o *ownership) lasts(lease time.Duration) {
	o.longest = max(o.longest, lease)
	if b := o.base; b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.longest = max(b.longest, lease)
	}
}

// mayLast returns how long the lock may last on the server.
func (o *ownership) mayLast() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return max(o.lease, o.longest)
}

// remove removes a hold and returns how many remain, -1 if it was not there. The caller that
// removes the last one must free the lock, unless a re-entry is in progress: then over decides.
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

// IsCounted reports whether the hold is in the ownership: neither released nor lost.
func (h *Hold) IsCounted() bool {
	h.ownership.mu.Lock()
	defer h.ownership.mu.Unlock()
	return slices.Contains(h.ownership.holds, h)
}

// setFloor recomputes floor and least, mu held, without the holds that have ended and wait for
// Unlock.
func (o *ownership) setFloor() {
	var floor clock.Deadline
	var least time.Duration
	var now time.Time // set for fixed holds only
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

// owed returns the number of holds and the lease they need: the rest of fixed ones and of those
// at their maximum, the full lease of renewed ones. Without holds, it is the ownership's lease,
// for a lock that another caller is about to free.
func (o *ownership) owed() (holds int64, lease time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.owes()
}

// owes is owed with mu held.
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

// most returns the longest lease that the holds, or if there are none none, and the current
// attempts need.
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

// others reports whether the ownership has other holds than h.
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

// hasBase reports whether the owner holds the lock in the outer role. Lock order: an ownership's
// mu, then its base's.
func (o *ownership) hasBase() bool { return o.base != nil && !o.base.isFreed() }

// otherRole returns the owner's ownership in the inner role, nil if there never was one.
func (o *ownership) otherRole() *ownership {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.nested
}

// inSeveralRoles reports whether the owner holds, or is about to hold, the lock in another role.
func (o *ownership) inSeveralRoles() bool {
	nested := o.otherRole()
	return o.hasBase() || nested != nil && (nested.count() > 0 || nested.isEntering())
}

func (o *ownership) isEntering() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.entering > 0
}

// lose ends the holds of an owner that did not hold the lock at asked. Later ones may be valid:
// a shared owner can acquire the lock again.
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

// beginChange waits for the right to change the count on the server: one change at a time, so
// that its target is right when it arrives. The caller must call endChange. After one command
// timeout it returns errUnresolved.
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

// beginChangeFor is beginChange for releases: it waits for d, also while the client closes.
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

// passTurn gives the turn, if any, to the next caller. Released: the lock is being freed.
func (o *ownership) passTurn(released bool) {
	o.mu.Lock()
	turn := o.turn
	o.turn = nil
	o.mu.Unlock()
	if turn != nil {
		turn.Pass(released)
	}
}

// transfer gives the turn, if any, and the lock to the next caller, which sends the call. It
// returns nil if it has no next caller.
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
