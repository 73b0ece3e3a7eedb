package hold

import (
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

// Hold is an acquired lock, or a claim for one until the claim is granted. A granted Hold is safe for concurrent use.
type Hold struct {
	life
	ownership *ownership
	lease     watchdog.Lease
	expiry    clock.Deadline // when the lease expires on the server unless it is renewed; guarded by ownership.mu
	since     time.Time      // send time of the granted call
	request   acquire.Request

	// Guarded by ownership.mu.
	outer   *Hold         // the hold whose slot this hold has or is waiting for
	inner   *Hold         // the hold that has this hold's slot
	waiters []innerCaller // callers waiting for this slot
	warned  bool
	counted bool // added to the ownership

	queued bool // in a queue on the server
	frees  bool
	known  atomic.Uint32 // see replicas.go
	within *Hold         // the hold whose proof was used to re-enter
	// observed has the values of the observer's context. It is written before known becomes reported.
	observed unending
	group    atomic.Pointer[Group]
	deferred *engine.Event // event to report later; nil unless the caller waits for replicas of several locks

	result error // set while giveUp runs
	giveUp once  // the first Unlock, LetExpire or HandOver that ends the hold
	took   time.Duration
	begun  func() // called once the release has been started, or nil

	own ownership // used by the owner's first hold
}

// once is like sync.Once, but other code may lock mu and set done itself.
type once struct {
	mu   sync.Mutex
	done bool // guarded by mu
}

func (o *once) Do(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.done {
		o.done = true
		f()
	}
}

type ending struct {
	cause error
	// kept means that the lock stays held until the lease expires or Unlock is called.
	kept bool
}

var (
	endMaxHold    = &ending{engine.ErrMaxHold, true}
	endClosed     = &ending{cause: engine.ErrClosed}
	endGiven      = &ending{cause: engine.ErrNotHeld}
	endHandedOver = &ending{cause: engine.ErrHandedOver}
)

// Init initializes h, which must be zero, as a claim. The claim's owner is terms.Owner if that is set, owner if text is
// not nil, or else a new owner. Callers must Drop a claim that was not granted.
func (h *Hold) Init(l *Lock, terms *Terms, owner codec.Owner, text any) {
	h.request = acquire.Request{Lease: terms.TTLArg, Wait: terms.Wait, Try: terms.Try}
	if terms.Several && l.Engine.Replicas > 0 {
		h.deferred = &engine.Event{}
	}
	if !terms.Owner.IsZero() {
		h.ownership = l.joinShared(terms.Owner)
		h.request.Owner = h.ownership.final.Owner
	} else {
		o := &h.own
		h.ownership = o
		o.lock, o.lease, o.final = l, terms.TTL, &h.request
		if text == nil {
			owner, text = l.newOwner()
		}
		o.owner, h.request.Owner = owner, text
	}
	h.prepare(terms)
}

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
		Renewal: o.lock.Kind.Renewal(),
		Holder:  (*watched)(h),
	}
}

// live starts the lease of a lock that was granted to a call sent at the time sent. After an error, the caller must
// release the lock.
func (h *Hold) live(sent time.Time) error {
	e := h.ownership.lock.Engine
	if !h.lease.Hold(sent, e.LossMargin) {
		return fmt.Errorf("%w: the lease of %v had expired when the reply arrived",
			engine.ErrNotAcquired, h.lease.TTL)
	}
	if h.known.Load() == reported { // otherwise the caller is waiting for replicas
		h.known.Store(h.whenKnown())
	}
	if !e.Watchdog.Add(&h.lease) {
		return engine.ErrClosed
	}
	return nil
}

// Lock returns the lock.
func (h *Hold) Lock() *Lock { return h.ownership.lock }

// Lasts returns how long the lock may remain on the server.
func (h *Hold) Lasts() time.Duration { return h.ownership.mayLast() }

// ID implements acquire.Claim.
func (h *Hold) ID() codec.Owner { return h.ownership.owner }

// Token returns the owner's newest fencing token, or 0 for kinds without tokens.
func (h *Hold) Token() int64 { return h.ownership.token.Load() }

// Err returns nil while the lock is held. Otherwise it returns one of engine.Losses, ErrMaxHold, ErrNotHeld after
// Unlock or LetExpire, ErrHandedOver, or ErrClosed.
func (h *Hold) Err() error { return h.errAt(time.Now()) }

func (h *Hold) errAt(now time.Time) error {
	if end := h.ended.Load(); end != nil {
		return end.cause
	}
	switch h.lease.Over(now) {
	case watchdog.EndLease:
		h.lose(h.overdue())
	case watchdog.EndMax:
		h.endKept(endMaxHold)
	default:
		return nil
	}
	return h.ended.Load().cause
}

// Remaining returns how long the hold will last if it is not renewed again, less the loss margin.
func (h *Hold) Remaining() time.Duration {
	if h.Err() != nil {
		return 0
	}
	now := time.Now()
	return max(0, min(h.lease.Deadline().Remaining(now), h.lease.Ends().Sub(now)))
}

// LetExpire ends the hold without freeing the lock.
func (h *Hold) LetExpire() error { return h.leaveIt(endGiven, nil) }

// leaveIt ends the hold without freeing the lock, unless then, which is called first, fails. The count does not change
// in between.
func (h *Hold) leaveIt(end *ending, then func() error) error {
	o := h.ownership
	if err := h.Err(); err != nil {
		return err
	}
	// The inner role comes first, as in a re-entry.
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
	if o.shared && o.pendingReleases.Load() > 0 {
		return errUnresolved // the release would shorten the lease or free the lock
	}
	if then != nil {
		if err := then(); err != nil {
			return err
		}
	}
	if !h.giveUp.mu.TryLock() {
		return engine.ErrNotHeld // Unlock has begun, and may be waiting for the other role
	}
	o.lock.Engine.Watchdog.Remove(&h.lease)
	err := h.finish(end, time.Now())
	h.giveUp.done = h.giveUp.done || err == nil // if it has reached its maximum, Unlock must still release the lock
	h.giveUp.mu.Unlock()
	if err != nil {
		return err
	}
	o.remove(h)
	o.passTurn(false)
	o.closeSubscription()
	h.observeEnd(end)
	return nil
}

var errUnresolved = fmt.Errorf("%w: an earlier reentry or unlock is still unresolved", engine.ErrUncertain)

// finish ends the hold, or returns why it has ended. If it returns nil, the caller must call observeEnd.
func (h *Hold) finish(why *ending, now time.Time) error {
	if err := h.errAt(now); err != nil {
		return err
	}
	if !h.end(why) {
		return h.ended.Load().cause
	}
	return nil
}

// lose ends a lost hold and frees the lock, because a renewal whose reply was lost may have extended the lease.
func (h *Hold) lose(why error) {
	o := h.ownership
	o.lock.Engine.Watchdog.Remove(&h.lease)
	end := &ending{cause: why}
	if !h.end(end) {
		return
	}
	defer h.observeEnd(end)
	switch left := o.remove(h); {
	case left > 0 && o.shared && h.lease.Over(time.Now()) != 0:
		// The owner's other holds keep the lock, and the server still counts this hold.
		o.lock.Engine.GoBeforeClose(func() { _ = o.releaseShared(o.lock.Engine.Command, nil) })
	case left == 0 && o.base != nil && !o.isFreed():
		// The owner keeps the lock in another role.
		o.lock.Engine.GoBeforeClose(func() { _ = o.step(o.lock.Engine.Command, nil) })
	case left == 0:
		if !o.shared {
			o.discard()
		}
		o.passTurn(false)
	}
}

func (h *Hold) overdue() error {
	why := &h.ownership.lock.Engine.Losses
	if h.lease.Fixed && !time.Now().Before(h.lease.Final()) {
		return why.LeaseOver
	}
	var refusal *transport.ServerError
	if errors.As(h.lease.Failure(), &refusal) {
		return fmt.Errorf("%w: the server rejected its renewal: %w", why.NotRenewed, refusal)
	}
	return why.NotRenewed
}

// gone returns the likely reason why the server no longer has the lock.
func (h *Hold) gone() error {
	e := h.ownership.lock.Engine
	if e.Watchdog.Doubted(&h.lease) {
		return e.Losses.Forgotten
	}
	return e.Losses.Taken
}

// endKept ends a hold but keeps its lock, and its slot in the outer hold, until the lease expires or Unlock is called.
func (h *Hold) endKept(why *ending) {
	o, e := h.ownership, h.ownership.lock.Engine
	e.Watchdog.Remove(&h.lease)
	if !h.end(why) {
		return
	}
	defer h.observeEnd(why)
	left := h.lease.Deadline().Remaining(time.Now()) + e.LossMargin(h.lease.TTL)
	o.mu.Lock()
	if h.outer != nil {
		time.AfterFunc(left, h.leaveSlot)
	}
	o.setFloor() // this hold no longer counts
	o.mu.Unlock()
	o.passTurn(false)
	if o.lock.HasRoles() && !o.lock.shares() {
		e.Go(func() {
			// The owner's other role may keep the key after this lease has expired.
			if e.Wait(left) && o.otherRole() != nil && o.remove(h) == 0 && o.isFreed() {
				o.discard()
			}
		})
	}
}

type watched Hold

func (w *watched) LockOf() (name, kind string) {
	l := w.ownership.lock
	return l.Name, l.Kind.Name()
}

func (w *watched) Owed() time.Duration {
	owed := time.Duration(w.ownership.least.Load())
	if floor := w.ownership.floor.Load(); !floor.IsZero() {
		owed = max(owed, floor.Remaining(time.Now()))
	}
	return owed
}

func (w *watched) LeaseLost(end watchdog.End) {
	h := (*Hold)(w)
	switch end {
	case watchdog.EndClosed:
		if h.end(endClosed) {
			h.observeEnd(endClosed)
		}
	case watchdog.EndMax:
		h.endKept(endMaxHold)
	case watchdog.EndLease:
		h.lose(h.overdue())
	case watchdog.EndTaken:
		h.lose(h.ownership.lock.Engine.Losses.Taken)
	case watchdog.EndForgotten:
		h.lose(h.ownership.lock.Engine.Losses.Forgotten)
	}
}

// LockHandle is embedded in public types and contains their lock. Other packages in this module access the lock with
// [Of].
type LockHandle struct{ lock Lock }

func (h *LockHandle) internal() *Lock { return &h.lock }

// Handle is embedded in public types and contains their hold.
type Handle struct{ hold Hold }

func (h *Handle) internal() *Hold { return &h.hold }

// AnyLock is a public type that embeds a [LockHandle].
type AnyLock interface{ internal() *Lock }

// AnyHold is a public type that embeds a [Handle].
type AnyHold interface{ internal() *Hold }

// Of returns the lock or the hold of a public type.
func Of[T any](public interface{ internal() *T }) *T { return public.internal() }
