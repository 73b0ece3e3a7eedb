package rlock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/localqueue"
	"github.com/redlatch/redlatch/internal/protocol"
)

// tenure is one owner's time with one lock: the first hold and those that
// re-entered it. The server's count is the number of its holds.
type tenure struct {
	lock  *Lock
	owner codec.Owner
	acq   protocol.Acquisition
	// shared owners may be used by others too: another client or language may
	// change the count at any time.
	shared bool
	lease  time.Duration // of the first hold

	// floor is when the last of the fixed holds ends on the server. Renewals do
	// not bring the time to live below it.
	floor clock.Atomic
	// least is the longest lease of the renewed holds, in nanoseconds.
	least atomic.Int64
	// strays is how many releases may still be under way that nobody waits for.
	strays atomic.Int64
	// arrivals is how often the count there is was sent in the background.
	arrivals atomic.Int64
	// stained says that the owner must not be used again when the tenure is over:
	// something about it may be left open, or somebody knows it.
	stained atomic.Bool
	// spare has the subscription of an owner that waited in a queue on the server,
	// nil when there is none. It is set before the hold is anybody's.
	spare *engine.Spare

	// mu guards what follows. It is not held across I/O.
	mu        sync.Mutex
	holds     []*Hold
	first     [1]*Hold // room for the usual number of holds
	reentered bool     // at least once
	entering  int      // re-entries that were sent and not answered
	freed     bool     // the last hold was given up: no way back in
	turn      chan struct{}
	wait      any               // with which the owner was queued on the server
	line      *localqueue.Queue // while this has its process's turn with the lock
	atRest    bool              // no attempt for this owner is in flight
}

// enter adds a hold that was acquired.
func (t *tenure) enter(h *Hold) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holds == nil {
		t.holds = t.first[:0]
	}
	t.holds = append(t.holds, h)
	h.entered = true
	if t.shared {
		t.freed = false // others may come and go
	}
	t.setFloor()
}

// leave takes a hold out and returns how many remain. It returns -1 when the
// hold had left before. Whoever takes the last one out must free the lock,
// unless a re-entry is under way, in which case that is decided when it is over.
func (t *tenure) leave(h *Hold) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, other := range t.holds {
		if other == h {
			t.holds = append(t.holds[:i], t.holds[i+1:]...)
			t.setFloor()
			left := len(t.holds) + t.entering
			t.freed = t.freed || left == 0
			if t.shared {
				t.quitShared()
			}
			return left
		}
	}
	return -1
}

// expires says when a hold's lease ends on the server if it is not renewed.
func (t *tenure) expires(h *Hold, at clock.Deadline) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h.expiry = at
	t.setFloor()
}

// setFloor finds the floor and the least lease anew, mu held. Holds that are over
// and still counted, since they wait for their Unlock, count on nothing.
func (t *tenure) setFloor() {
	var floor clock.Deadline
	var least time.Duration
	var now time.Time // asked for by fixed holds only
	for _, h := range t.holds {
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
	t.floor.Store(floor)
	t.least.Store(int64(least))
}

// outlive is setFloor for when a hold is over that stays counted.
func (t *tenure) outlive() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setFloor()
}

// remaining returns the lease that the remaining holds are owed.
func (t *tenure) remaining() time.Duration {
	_, lease := t.owed()
	return lease
}

// owed returns how many holds remain, and the lease that they are owed: what the
// fixed ones still have, the full lease of the renewed ones, and the rest of the
// lease of those that have reached their maximum. Without holds it is the tenure's,
// for a lock that somebody else is about to free.
func (t *tenure) owed() (holds int64, lease time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.holds) == 0 {
		return 0, t.lease
	}
	var most time.Duration
	now := time.Now()
	for _, h := range t.holds {
		d := h.lease.TTL
		switch {
		case h.lease.Fixed:
			d = h.expiry.Remaining(now)
		case h.ended.Load() != nil:
			d = h.lease.Deadline().Remaining(now)
		}
		most = max(most, d)
	}
	return int64(len(t.holds)), max(most, time.Millisecond)
}

// count returns the number of holds.
func (t *tenure) count() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.holds))
}

// others reports whether the tenure has live holds besides h.
func (t *tenure) others(h *Hold) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, other := range t.holds {
		if other != h {
			return true
		}
	}
	return t.entering > 0
}

// begin counts a re-entry in. It returns false when there is nothing left to
// re-enter. Each begin that returned true needs an over.
func (t *tenure) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.freed || len(t.holds) == 0 {
		return false
	}
	t.entering++
	t.reentered = true
	t.stained.Store(true)
	return true
}

// over counts a re-entry out, with its hold if it succeeded. It reports whether
// the lock must be freed because every hold left in the meantime.
func (t *tenure) over(h *Hold) (free bool) {
	if h != nil {
		t.enter(h)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entering--
	free = len(t.holds)+t.entering == 0 && !t.freed
	t.freed = t.freed || free
	return free
}

// take waits for the right to change the count on the server: one at a time, so
// that what each aims at is true when it arrives. The caller gives it back. After a
// command timeout it returns errUnsettled.
func (t *tenure) take(ctx context.Context) error {
	turn := t.turns()
	timer := time.NewTimer(t.lock.engine.Command)
	defer timer.Stop()
	select {
	case turn <- struct{}{}:
		return nil
	case <-timer.C:
		return errUnsettled
	case <-ctx.Done():
		return engine.EndOf(ctx)
	case <-t.lock.engine.Closing():
		return redlatch.ErrClosed
	}
}

// takeFor is take for those who give up: it waits while the client closes, too.
func (t *tenure) takeFor(d time.Duration) bool {
	turn := t.turns()
	select {
	case turn <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case turn <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

func (t *tenure) give() { <-t.turns() }

func (t *tenure) turns() chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.turn == nil {
		t.turn = make(chan struct{}, 1)
	}
	return t.turn
}

// lose ends every hold because the server no longer has the lock.
func (t *tenure) lose() {
	t.mu.Lock()
	holds := append([]*Hold(nil), t.holds...)
	t.mu.Unlock()
	for _, h := range holds {
		h.lose()
	}
}

// isFreed reports whether the last hold was given up.
func (t *tenure) isFreed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.freed
}
