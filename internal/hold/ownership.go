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

// ownership is what one owner holds of one lock: the first hold and those that re-entered it.
// The server's count is the number of its holds.
type ownership struct {
	lock  *Lock
	owner codec.Owner
	final *acquire.Request // of the release that frees the lock
	// shared owners may be used by others too: another client or language may change the count
	// at any time.
	shared bool
	lease  time.Duration // of the first hold

	// floor is when the last of the fixed holds ends on the server. Renewals do not bring the
	// time to live below it.
	floor clock.Atomic
	// least is the longest lease of the renewed holds, in nanoseconds.
	least atomic.Int64
	// pendingReleases is how many releases may still be under way that no caller waits for.
	pendingReleases atomic.Int64
	// resent is how often the count there is was sent in the background.
	resent atomic.Int64
	// notReusable says that the owner must not be used again when the ownership is over:
	// something about it may be left open.
	notReusable atomic.Bool
	// token is the newest fencing token, 0 for kinds without.
	token atomic.Int64
	// subscription is that of an owner that waited in a queue on the server, nil when there is
	// none. It is set before the hold is given to a caller.
	subscription acquire.Reusable
	// base is what the owner holds of the lock in the role in whose holds this one began; nil
	// for all but such. While that lasts, this may come back from no hold.
	base *ownership

	// mu guards what follows. It is not held across I/O.
	mu        sync.Mutex
	holds     []*Hold
	first     [1]*Hold      // room for the usual number of holds
	asking    []*Hold       // what may become one, of a shared owner: an attempt of it is under way
	longest   time.Duration // of the leases that were asked for
	reentered bool          // at least once
	entering  int           // re-entries that were sent and not answered
	freed     bool          // the last hold was given up: no way back in
	change    chan struct{}
	wait      any          // with which the owner was queued on the server
	turn      acquire.Turn // while this has its process's turn with the lock
	resolved  bool         // it is known what the attempt that was in doubt has done
	nested    *ownership   // what the owner holds of the lock in another role, begun in this one
}

// fence takes in the token of a grant. They may come in any order.
func (o *ownership) fence(token int64) {
	for {
		newest := o.token.Load()
		if token <= newest || o.token.CompareAndSwap(newest, token) {
			return
		}
	}
}

// add adds a hold that was acquired by a call that was sent at sent: from then on others leave it its
// lease.
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
		o.freed = false // others may come and go
	}
	o.setFloor()
}

// lasts says that the lock may last for a lease on the server, mu held: then so does what is open
// about the owner, also in the role in which this began.
func (o *ownership) lasts(lease time.Duration) {
	o.longest = max(o.longest, lease)
	if b := o.base; b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.longest = max(b.longest, lease)
	}
}

// asksFor is lasts for a re-entry that is about to be sent: it may run although no reply tells of it.
func (o *ownership) asksFor(lease time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lasts(lease)
}

// mayLast returns for how long the lock may last on the server.
func (o *ownership) mayLast() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return max(o.lease, o.longest)
}

// remove takes a hold out and returns how many remain. It returns -1 when the hold had left
// before. The caller that takes the last one out must free the lock, unless a re-entry is
// under way, in which case that is decided when it is over.
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

// wasCounted reports whether the hold was ever one of its owner's.
func (h *Hold) wasCounted() bool {
	h.ownership.mu.Lock()
	defer h.ownership.mu.Unlock()
	return h.counted
}

// IsCounted reports whether the hold is one of its owner's: that is so until it was given up
// or lost.
func (h *Hold) IsCounted() bool {
	h.ownership.mu.Lock()
	defer h.ownership.mu.Unlock()
	return slices.Contains(h.ownership.holds, h)
}

// setFloor finds the floor and the least lease anew, mu held. Holds that are over and still
// counted, since they wait for their Unlock, count on nothing.
func (o *ownership) setFloor() {
	var floor clock.Deadline
	var least time.Duration
	var now time.Time // asked for by fixed holds only
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

// outlive is setFloor for when a hold is over that stays counted.
func (o *ownership) outlive() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.setFloor()
}

// owed returns how many holds remain, and the lease that they are owed: what the fixed ones
// still have, the full lease of the renewed ones, and the rest of the lease of those that have
// reached their maximum. Without holds it is the ownership's, for a lock that another caller
// is about to free.
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

// most returns the longest of the lease that the holds are owed, or, without holds, of none, and of
// those that are being asked for.
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

// count returns the number of holds.
func (o *ownership) count() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return int64(len(o.holds))
}

// others reports whether the ownership has live holds besides h.
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

// isFreed reports whether the last hold was given up.
func (o *ownership) isFreed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.freed
}

// lose ends the holds of an owner that did not hold the lock on the server, which was asked at asked.
// Another caller of a shared owner may have acquired it since.
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
// that what each aims at is true when it arrives. The caller ends it with endChange. After a
// command timeout it returns errUnresolved.
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

// beginChangeFor is beginChange for callers that give up: it waits for d, also while the
// client closes.
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

// passTurn gives the turn of an ownership that is over to the next caller. Released says that
// the lock is being freed.
func (o *ownership) passTurn(released bool) {
	o.mu.Lock()
	turn := o.turn
	o.turn = nil
	o.mu.Unlock()
	if turn != nil {
		turn.Pass(released)
	}
}

// transfer gives the turn, if this has it, to the next caller with the lock. That caller sends
// the call that takes it over, so it is its attempt whose outcome may be in doubt. Nil: there
// is none to take it.
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
