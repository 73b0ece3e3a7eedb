package hold

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/watchdog"
	"github.com/redlatch/redlatch/transport"
)

// Hold is a lock that was acquired, until it is given up or lost. All methods are safe for
// concurrent use, by any goroutine, once it was granted.
type Hold struct {
	ownership *ownership
	lease     watchdog.Lease
	expiry    clock.Deadline         // when the lease ends on the server if it is not renewed; guarded by ownership.mu
	ended     atomic.Pointer[ending] // nil while live
	since     time.Time              // when the call was sent that was granted; set by ownership.add
	request   acquire.Request        // of its attempts

	nesting               // in a chain of inner holds; guarded by ownership.mu
	within  *Hold         // the hold by whose proof it was entered again, nil for one that was not
	counted bool          // it was added to the ownership; guarded by ownership.mu
	queued  bool          // it has stood in a queue on the server
	known   atomic.Uint32 // whether its caller knows of it, and its observer
	// observed is the context for the observer; written before known becomes reported.
	observed unending
	group    atomic.Pointer[Group]
	deferred *deferred // nil but for a caller that waits for the replicas of several locks

	result error         // of giveUp
	giveUp sync.Once     // Unlock, LetExpire or HandOver, the first one
	took   time.Duration // how long that was, of an Unlock that is observed

	mu       sync.Mutex // guards contexts, and is not held while they are ended
	contexts contexts

	own ownership // of a hold that is the first of its owner
}

// Terms are how a hold is acquired, and for how long.
type Terms struct {
	// Owner is the owner that was given, the zero Owner for one of its own.
	Owner codec.Owner
	// TTL is the lease; TTLArg the same in milliseconds, an int64 boxed once.
	TTL    time.Duration
	TTLArg any
	// Max is the time after which a lease that is renewed ends, 0 for never.
	Max time.Duration
	// Wait is for how long a queue on the server keeps the owner's place, in milliseconds, an
	// int64 boxed once.
	Wait any
	// Fixed is true for a lease that is not renewed.
	Fixed bool
	// Try is true for a caller that does not wait.
	Try bool
	// Several is true for a caller that waits for the replicas of several locks at once, with
	// [AwaitReplicas].
	Several bool
}

// ending is why a hold is over.
type ending struct {
	cause error
	// kept says that the lock was left to its lease, or to Unlock, whichever comes first.
	kept bool
}

// The endings that are no losses.
var (
	endMaxHold    = &ending{engine.ErrMaxHold, true}
	endClosed     = &ending{cause: engine.ErrClosed}
	endGiven      = &ending{cause: engine.ErrNotHeld}
	endHandedOver = &ending{cause: engine.ErrHandedOver}
)

// Init makes h, which is zero, a claim for an owner of its own, for the one that the terms
// give, or for that of a subscription that is used again. A claim that is not granted must be
// dropped.
func (h *Hold) Init(l *Lock, terms *Terms, s acquire.Reusable) {
	h.request = acquire.Request{Lease: terms.TTLArg, Wait: terms.Wait, Try: terms.Try}
	if terms.Several && l.Engine.Replicas > 0 {
		h.deferred = &deferred{}
	}
	if !terms.Owner.IsZero() {
		h.ownership = l.joinShared(terms.Owner)
		h.request.Owner = h.ownership.final.Owner
	} else {
		o := &h.own
		h.ownership = o
		o.lock, o.lease, o.final = l, terms.TTL, &h.request
		if s != nil {
			o.owner, h.request.Owner = s.Owner()
		} else {
			o.owner, h.request.Owner = l.newOwner()
		}
	}
	h.prepare(terms)
}

// prepare fills in the lease.
func (h *Hold) prepare(terms *Terms) {
	o := h.ownership
	h.lease = watchdog.Lease{
		Key:     o.lock.key,
		Owner:   o.final.Owner,
		TTL:     terms.TTL,
		TTLArg:  terms.TTLArg,
		Fixed:   terms.Fixed,
		Max:     terms.Max,
		Trust:   o.lock.trust,
		Floor:   &o.floor,
		Least:   &o.least,
		Renewal: o.lock.Kind.Renewal(),
		Holder:  (*watched)(h),
	}
}

// live makes the hold live, for a grant whose call was sent at sent. When nothing is left of
// its lease, the error says so, and what was acquired must be given back.
func (h *Hold) live(sent time.Time) error {
	e := h.ownership.lock.Engine
	if !h.lease.Hold(sent, e.LossMargin) {
		return fmt.Errorf("%w: nothing was left of the lease of %v when the reply came",
			engine.ErrNotAcquired, h.lease.TTL)
	}
	h.awaitReport()
	if !e.Watchdog.Add(&h.lease) {
		return engine.ErrClosed
	}
	return nil
}

// Lock returns the lock.
func (h *Hold) Lock() *Lock { return h.ownership.lock }

// Lasts returns for how long the lock may last on the server: the longest of the leases that were asked
// for under its owner.
func (h *Hold) Lasts() time.Duration { return h.ownership.mayLast() }

// ID returns the owner under which the lock is held. It is part of acquire.Claim.
func (h *Hold) ID() codec.Owner { return h.ownership.owner }

// Token returns the newest fencing token of the hold's owner, 0 for kinds without: that of its
// grant, or of a re-entry after it.
func (h *Hold) Token() int64 { return h.ownership.token.Load() }

// Err returns nil while the lock is held, and afterwards why not: one of engine.Losses, ErrMaxHold,
// ErrNotHeld after Unlock or LetExpire, ErrHandedOver or ErrClosed. It asks the clocks.
func (h *Hold) Err() error { return h.errAt(time.Now()) }

func (h *Hold) errAt(now time.Time) error {
	if end := h.ended.Load(); end != nil {
		return end.cause
	}
	switch h.lease.Over(now) {
	case watchdog.EndLease:
		h.lose(h.overdue())
	case watchdog.EndMax:
		h.expire()
	default:
		return nil
	}
	return h.ended.Load().cause
}

// Remaining returns how long the hold lasts if it is not renewed any more, less the loss
// margin; 0 when it is over.
func (h *Hold) Remaining() time.Duration {
	if h.Err() != nil {
		return 0
	}
	now := time.Now()
	return max(0, min(h.lease.Deadline().Remaining(now), h.lease.Ends().Sub(now)))
}

// LetExpire ends the hold without freeing the lock. It sends nothing.
func (h *Hold) LetExpire() error { return h.leaveIt(endGiven, nil) }

// leaveIt ends the hold, because of end, and leaves the lock on the server. Then, if not nil,
// is asked before: an error keeps the hold as it is. The count does not change meanwhile.
func (h *Hold) leaveIt(end *ending, then func() error) error {
	o := h.ownership
	if err := h.Err(); err != nil {
		return err
	}
	// First that of the other role, as a re-entry does.
	for _, role := range []*ownership{o.otherRole(), o} {
		if role == nil {
			continue
		}
		if !role.beginChangeFor(o.lock.Engine.Command) {
			return errUnresolved
		}
		defer role.endChange()
	}
	if o.others(h) || o.inSeveralRoles() {
		return engine.ErrReentered
	}
	if then != nil {
		if err := then(); err != nil {
			return err
		}
	}
	err := engine.ErrNotHeld
	h.giveUp.Do(func() {
		o.lock.Engine.Watchdog.Remove(&h.lease)
		err = h.finish(end, time.Now())
		h.result = err
		o.remove(h)
		o.passTurn(false)
		o.closeSubscription()
	})
	return err
}

var errUnresolved = fmt.Errorf("%w: an earlier re-entry or unlock is not resolved yet", engine.ErrUncertain)

// finish ends a live hold because its holder gives it up. It returns why it had ended before,
// if it had.
func (h *Hold) finish(why *ending, now time.Time) error {
	if err := h.errAt(now); err != nil {
		return err
	}
	if !h.end(why) {
		return h.ended.Load().cause
	}
	return nil
}

// lose ends a hold whose lease is over or that the server no longer has, and frees what may
// be left on the server: a renewal whose reply was lost may have prolonged it.
func (h *Hold) lose(why error) {
	o := h.ownership
	o.lock.Engine.Watchdog.Remove(&h.lease)
	if !h.end(&ending{cause: why}) {
		return
	}
	switch left := o.remove(h); {
	case left > 0 && o.shared && h.lease.Over(time.Now()) != 0:
		// The others keep the lock, and this one is still counted.
		o.lock.Engine.Go(func() { _ = o.releaseShared(o.lock.Engine.Command, nil) }) // it is logged
	case left == 0 && o.base != nil && !o.isFreed():
		// The owner keeps the lock in another role.
		o.lock.Engine.Go(func() { _ = o.step(o.lock.Engine.Command, nil) }) // the lease ends it, too
	case left == 0:
		if !o.shared {
			o.discard()
		}
		o.passTurn(false)
	}
}

// overdue is why a hold was lost whose lease is over.
func (h *Hold) overdue() error {
	why := &h.ownership.lock.Engine.Losses
	if h.lease.Fixed && !time.Now().Before(h.lease.Final()) {
		return why.LeaseOver
	}
	var refusal *transport.ServerError
	if errors.As(h.lease.Failure(), &refusal) {
		return fmt.Errorf("%w: the server refused to renew it: %w", why.NotRenewed, refusal)
	}
	return why.NotRenewed
}

// gone is why a hold was lost of which the server says that its owner does not hold the lock.
// That the server has forgotten it, in a restart or a failover, is known by the connection that
// was lost since the server said last that it has it.
func (h *Hold) gone() error {
	e := h.ownership.lock.Engine
	if e.Watchdog.Doubted(&h.lease) {
		return e.Losses.Forgotten
	}
	return e.Losses.Taken
}

// expire ends a hold that has reached its maximum. The work may go on for a moment, so the
// lock is left to its lease, or to Unlock; and so is the slot of an outer hold.
func (h *Hold) expire() { h.endKept(endMaxHold) }

// endKept ends a hold whose lock is left to its lease, or to Unlock.
func (h *Hold) endKept(why *ending) {
	e := h.ownership.lock.Engine
	e.Watchdog.Remove(&h.lease)
	if h.end(why) {
		left := h.lease.Deadline().Remaining(time.Now()) + e.LossMargin(h.lease.TTL)
		h.leaveSlotAfter(left)
		h.ownership.outlive()
		h.ownership.passTurn(false)
		if _, in := h.Lock().Kind.(Role); in && !h.Lock().shares() {
			e.Go(func() {
				if e.Wait(left) {
					h.leaveRole()
				}
			})
		}
	}
}

// leaveRole frees what a hold that has reached its maximum has in its role, if Unlock has not:
// its lease is over, and the owner's other role keeps the key: by its renewals, or, when it is over,
// too, by a longer lease that it had.
func (h *Hold) leaveRole() {
	o := h.ownership
	if o.otherRole() != nil && o.remove(h) == 0 && o.isFreed() {
		o.discard()
	}
}

// watched is a hold as the watchdog sees it.
type watched Hold

func (w *watched) LeaseLost(end watchdog.End) {
	h := (*Hold)(w)
	switch end {
	case watchdog.EndClosed:
		h.end(endClosed)
	case watchdog.EndMax:
		h.expire()
	case watchdog.EndLease:
		h.lose(h.overdue())
	case watchdog.EndTaken:
		h.lose(h.ownership.lock.Engine.Losses.Taken)
	case watchdog.EndForgotten:
		h.lose(h.ownership.lock.Engine.Losses.Forgotten)
	}
}

// Do runs fn with the context of h, a public hold of the subject, and gives h up, also when fn
// panics. An error of giving up is joined to fn's.
func Do(ctx context.Context, s Subject, h interface {
	Context(parent context.Context) context.Context
	Unlock() error
}, fn func(ctx context.Context) error) (err error) {
	defer func() {
		// Joined, not replaced: the caller's own error comes first.
		if unlockErr := h.Unlock(); unlockErr != nil {
			err = errors.Join(err, unlockErr)
		}
	}()
	return s.run(h.Context(ctx), fn)
}

// LockHandle has the lock of a public type. A public type embeds it under an unexported name,
// so that packages of this module reach the lock, and the type's documentation shows nothing
// of it.
type LockHandle struct{ lock Lock }

// Internal returns the lock.
func (h *LockHandle) Internal() *Lock { return &h.lock }

// Handle has the hold of a public type, as [LockHandle] has the lock.
type Handle struct{ hold Hold }

// Internal returns the hold.
func (h *Handle) Internal() *Hold { return &h.hold }
