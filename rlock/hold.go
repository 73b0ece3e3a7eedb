package rlock

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/watchdog"
)

// Hold is a lock that was acquired, until it is given up or lost. All methods
// are safe for concurrent use, by any goroutine.
type Hold struct {
	tenure *tenure
	lease  watchdog.Lease
	expiry clock.Deadline         // when the lease ends on the server if it is not renewed; guarded by tenure.mu
	ended  atomic.Pointer[ending] // nil while live
	since  time.Time              // when it became live, by the clock of the attempt
	acq    protocol.Acquisition   // how to acquire it
	placed bool                   // it has stood in a queue on the server
	tries  bool                   // it never stands in one

	entered bool          // it was counted; guarded by tenure.mu
	proof   atomic.Uint32 // that replicas have it

	giveUp sync.Once // Unlock, LetExpire or HandOver, whichever comes first
	result error     // of giveUp

	// mu guards contexts and pruned. It is not held while contexts are ended.
	mu       sync.Mutex
	contexts []*holdContext
	pruned   int

	own tenure // of a hold that is the first of its owner
}

// ending is why a hold is over.
type ending struct{ cause error }

var (
	endLost       = &ending{redlatch.ErrLost}
	endMaxHold    = &ending{redlatch.ErrMaxHold}
	endClosed     = &ending{redlatch.ErrClosed}
	endGiven      = &ending{redlatch.ErrNotHeld}
	endHandedOver = &ending{redlatch.ErrHandedOver}
)

// newHold returns a hold for an owner of its own, or the one in set. Who does not
// use it must drop it.
func newHold(l *Lock, set *settings) *Hold {
	h := &Hold{}
	if set.owner.IsZero() {
		owner := l.engine.NextOwner()
		h.own.owner, h.own.acq.Owner = owner, owner.String()
		h.tenure = &h.own
	} else {
		h.tenure = l.joinShared(set.owner)
	}
	h.begin(l, set)
	return h
}

// newHoldOf returns a hold for the owner of a spare.
func newHoldOf(l *Lock, set *settings, s *engine.Spare) *Hold {
	h := &Hold{}
	h.own.owner, h.own.acq.Owner = s.Owner, s.Text
	h.tenure = &h.own
	h.begin(l, set)
	return h
}

// begin fills in what a hold that is no re-entry needs besides its owner.
func (h *Hold) begin(l *Lock, set *settings) {
	if t := h.tenure; !t.shared {
		t.lock, t.lease, t.acq.Lease = l, set.lease, set.leaseMS
	}
	h.acq = protocol.Acquisition{Owner: h.tenure.acq.Owner, Lease: set.leaseMS}
	if l.proto.Queues() {
		h.acq.Wait = set.waitMillis(l.engine)
	}
	h.prepare(set)
}

// newInner returns a hold that re-enters a tenure.
func newInner(t *tenure, set *settings) *Hold {
	h := &Hold{tenure: t}
	h.prepare(set)
	return h
}

func (h *Hold) prepare(set *settings) {
	h.lease = watchdog.Lease{
		Key:    h.tenure.lock.key,
		Owner:  h.tenure.acq.Owner,
		TTL:    set.lease,
		TTLArg: set.leaseMS,
		Fixed:  set.fixed,
		Max:    set.maxHold,
		Floor:  &h.tenure.floor,
		Least:  &h.tenure.least,
		Holder: (*watched)(h),
	}
}

// live makes the hold live, for a grant whose call was sent at sent. When there
// is no life in it, the error says why, and what was acquired must be given back.
func (h *Hold) live(sent time.Time) error {
	e := h.tenure.lock.engine
	if !h.lease.Hold(sent, e.LossMargin(h.lease.TTL)) {
		return fmt.Errorf("%w: nothing was left of the lease of %v when the reply came",
			redlatch.ErrNotAcquired, h.lease.TTL)
	}
	h.since = sent
	h.tenure.expires(h, clock.After(sent, h.lease.TTL))
	if !e.Watchdog.Add(&h.lease) {
		return redlatch.ErrClosed
	}
	return nil
}

// Name returns the lock's name.
func (h *Hold) Name() string { return h.tenure.lock.name }

// Owner returns the owner under which the lock is held, as others see it on the
// server. Once asked for, before Unlock, it is never used again; else a contended fair
// lock may use it for a later hold.
func (h *Hold) Owner() codec.Owner {
	h.tenure.stained.Store(true)
	return h.tenure.owner
}

// Err returns nil while the lock is held, and afterwards why not: ErrLost,
// ErrMaxHold, ErrNotHeld after Unlock or LetExpire, ErrHandedOver or ErrClosed.
// It asks the clocks and not the server, so it costs nothing and is right at the
// first instruction after the machine was suspended.
func (h *Hold) Err() error {
	return h.errAt(time.Now())
}

func (h *Hold) errAt(now time.Time) error {
	if end := h.ended.Load(); end != nil {
		return end.cause
	}
	switch h.lease.Over(now) {
	case watchdog.EndLease:
		h.lose()
	case watchdog.EndMax:
		h.expire()
	default:
		return nil
	}
	return h.ended.Load().cause
}

// Remaining returns how long the hold lasts if it is not renewed any more, less
// the loss margin; 0 when it is over.
func (h *Hold) Remaining() time.Duration {
	if h.Err() != nil {
		return 0
	}
	now := time.Now()
	return max(0, min(h.lease.Deadline().Remaining(now), h.lease.Ends().Sub(now)))
}

// LetExpire ends the hold without freeing the lock: it is not renewed any more
// and frees itself when its lease is over. A job that must run at most once per
// period takes a lease of the period and ends with LetExpire; Unlock does
// nothing then. It returns ErrNotHeld after Unlock, ErrLost when the hold was
// lost before, and ErrEntered while the lock is entered more than once, since the
// other holds keep it. It sends nothing.
func (h *Hold) LetExpire() error {
	return h.leaveIt("let-expire", endGiven, nil)
}

// leaveIt ends the hold, because of end, and leaves the lock on the server. Then,
// if not nil, is asked before: an error keeps the hold as it is. It has the
// tenure's turn all the while: nothing else changes the count, and nobody enters.
func (h *Hold) leaveIt(op string, end *ending, then func() error) error {
	t := h.tenure
	if err := h.Err(); err != nil {
		return t.lock.wrap(op, t.owner, err)
	}
	if !t.takeFor(t.lock.engine.Command) {
		return t.lock.wrap(op, t.owner, errUnsettled)
	}
	defer t.give()
	if t.others(h) {
		return t.lock.wrap(op, t.owner, redlatch.ErrEntered)
	}
	if then != nil {
		if err := then(); err != nil {
			return t.lock.wrap(op, t.owner, err)
		}
	}
	err := redlatch.ErrNotHeld
	h.giveUp.Do(func() {
		t.lock.engine.Watchdog.Remove(&h.lease)
		err = h.finish(end, time.Now())
		h.result = t.lock.wrap(op, t.owner, err)
		t.leave(h)
		t.passOn(false)
		t.endSpare()
	})
	return t.lock.wrap(op, t.owner, err)
}

var errUnsettled = fmt.Errorf("%w: an earlier re-entry or unlock is not settled yet", redlatch.ErrUncertain)

// finish ends a live hold because its holder gives it up. It returns why it had
// ended before, if it had.
func (h *Hold) finish(why *ending, now time.Time) error {
	if err := h.errAt(now); err != nil {
		return err
	}
	if !h.end(why) {
		return h.ended.Load().cause
	}
	return nil
}

// lose ends a hold whose lease is over or that the server no longer has, and
// frees what may be left on the server: a renewal whose reply was lost may have
// prolonged it.
func (h *Hold) lose() {
	t := h.tenure
	t.lock.engine.Watchdog.Remove(&h.lease)
	if !h.end(endLost) {
		return
	}
	switch left := t.leave(h); {
	case left > 0 && t.shared && h.lease.Over(time.Now()) != 0:
		// The others keep the lock, and this one is still counted.
		t.lock.engine.Go(func() { _ = t.releaseShared(t.lock.engine.Command) }) // it is logged
	case left == 0:
		if !t.shared {
			t.discard()
		}
		t.passOn(false)
	}
}

// expire ends a hold that has reached its maximum. The work may go on for a
// moment, so the lock is left to its lease, or to Unlock.
func (h *Hold) expire() {
	h.tenure.lock.engine.Watchdog.Remove(&h.lease)
	if h.end(endMaxHold) {
		h.tenure.outlive()
		h.tenure.passOn(false)
	}
}

// watched is a hold as the watchdog sees it.
type watched Hold

// LeaseLost is part of watchdog.Holder.
func (w *watched) LeaseLost(cause error) {
	h := (*Hold)(w)
	switch {
	case errors.Is(cause, redlatch.ErrClosed):
		h.end(endClosed)
	case errors.Is(cause, redlatch.ErrMaxHold):
		h.expire()
	default:
		h.lose()
	}
}
