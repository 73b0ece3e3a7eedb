// Package hold implements acquired locks: their owners and leases, and how they are released and re-entered. A [Kind]
// makes the calls. A [Hold] begins as the claim of an attempt, and ends when it is released, handed over or lost. All
// holds of one owner belong to an ownership, and the count on the server is the number of these holds. Changes to the
// count are sent one at a time and state the new count, so they may run late or twice. A hold has a slot for one inner
// hold. Other callers that have the hold's proof wait for the slot in FIFO order.
//
//	claim ──Grant──▶ live ──Unlock──▶ released, or transferred to the next caller of the process
//	  │               │ ──LetExpire──▶ held until its lease expires
//	  │               │ ──HandOver───▶ handed over
//	  │               │ ──expired, or forgotten by the server──▶ lost
//	  │               └ ──maximum────▶ held until its lease expires, or Unlock
//	  │ refused
//	  ├────────────▶ dropped
//	  │ no reply
//	  └────────────▶ in doubt: Late releases what the attempt acquired
package hold

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/watchdog"
	"github.com/redlatch/redlatch/transport"
)

// Lock is shared by all holds of a lock. It is immutable.
type Lock struct {
	Engine *engine.Engine
	// Name is the lock's name before mapping.
	Name string
	Kind Kind
	// Owning is Kind, or nil if the lock's holders are IDs.
	Owning   Owning
	Strategy acquire.Strategy
	// Err is why the name is invalid, or nil if it is valid.
	Err error

	key   any
	proof any           // the proofKey, boxed
	trust time.Duration // how long a confirmation is trusted, or 0 for the whole lease
}

// Make makes the kind and the strategy for a mapped name.
type Make func(e *engine.Engine, mapped string) (Kind, acquire.Strategy)

// NewLock returns the lock with the given name.
func NewLock(e *engine.Engine, name string, make Make) Lock {
	mapped, err := e.Map(name)
	kind, strategy := make(e, mapped)
	l := Lock{
		Engine: e, Name: name, Kind: kind, Strategy: strategy, Err: err,
		key: kind.Key(), proof: proofKey{e, kind.Family(), kind.Key()},
	}
	if l.Owning, _ = kind.(Owning); l.shares() {
		l.trust = e.Lease
	}
	return l
}

// HasRoles reports whether the lock can be held in several roles, such as read and write.
func (l *Lock) HasRoles() bool { return l.Kind.Family() != l.Kind.Name() }

func (l *Lock) shares() bool { return l.Owning != nil && l.Owning.Shares() }

func (l *Lock) newOwner() (codec.Owner, any) {
	if k, ok := l.Kind.(Identifying); ok {
		return codec.Owner{}, k.NewID()
	}
	owner := l.Engine.NextOwner()
	return owner, l.Text(owner)
}

// Text returns owner's field in the lock's hash.
func (l *Lock) Text(owner codec.Owner) string { return l.Owning.Field(owner.String()) }

// Check returns why a call with ctx cannot begin.
func (l *Lock) Check(ctx context.Context) error { return acquire.Check(ctx, l.Err) }

// Ask runs an idempotent call; see [acquire.Ask].
func (l *Lock) Ask(ctx context.Context, fill func(*transport.Call)) (any, error) {
	return l.ask(ctx, false, fill)
}

// Publish is like [Lock.Ask], for a script that publishes.
func (l *Lock) Publish(ctx context.Context, fill func(*transport.Call)) (any, error) {
	return l.ask(ctx, true, fill)
}

func (l *Lock) ask(ctx context.Context, guards bool, fill func(*transport.Call)) (any, error) {
	engine.NeedContext(ctx)
	if err := l.Check(ctx); err != nil {
		return nil, err
	}
	return acquire.Ask(ctx, l.Engine, l.Kind, guards, fill)
}

// Kind builds the calls for one lock and decodes their replies. It is safe for concurrent use. Calls to be filled must
// have been reset.
type Kind interface {
	acquire.Waitable

	// Family returns a name shared by all kinds whose proofs are valid for each other. By default, it is the kind's name.
	Family() string

	// Prepare reads the state that the scripts depend on, for a limited time.
	Prepare(ctx context.Context)

	// Release fills c with the call that lowers r.Owner's count to r.Target; 0 frees the lock. The owner must not be
	// shared, because the call may run late or twice. It has no effect if the owner does not hold the lock. It is sent
	// before waiting attempts.
	Release(c *transport.Call, r *acquire.Request)
	Released(reply any) (reply.ReleaseOutcome, error)

	Renewal() *watchdog.Renewal

	// Replicate fills c with the call that writes the lock again without changing it.
	Replicate(c *transport.Call, owner any)
	// Replicated decodes its reply, and reports whether the owner holds the lock.
	Replicated(reply any) (bool, error)
}

// Owning is implemented by kinds whose holders are owners. An owner can hold a lock more than once.
type Owning interface {
	// Field returns an owner's field in the lock's hash.
	Field(owner string) string

	// Reenter fills c with the call that enters the lock again. It raises the count to r.Target, which is idempotent, or
	// by one if the target is 0, as for a shared owner.
	Reenter(c *transport.Call, r *acquire.Request)
	// Reentered decodes its reply. The token is the new token of a fenced kind, or 0.
	Reentered(reply any) (held bool, token int64, err error)
	// Fences reports whether grants have fencing tokens.
	Fences() bool

	// Under returns why an owner that holds the lock in another role cannot enter this one, or nil if it can.
	Under() error
	// Shares reports whether several owners can hold the lock. If so, inner holds don't exclude each other, and Redisson's
	// renewals may shorten the TTL, but not below the watchdog timeout.
	Shares() bool

	// ReleaseShared fills c with the call that lowers the owner's count by one. The latch makes the call idempotent.
	ReleaseShared(c *transport.Call, r *acquire.Request, latch string)

	// ForceRelease fills c with the call that frees the lock.
	ForceRelease(c *transport.Call)
	// Forced decodes its reply, and reports whether there was a holder.
	Forced(reply any) (bool, error)

	// IsLocked fills c with the call that checks whether the lock is held.
	IsLocked(c *transport.Call)
	Locked(reply any) (bool, error)

	// Inspect fills c with the call that reads the lock and places first to last of its queue, counting from 0; -1 is the
	// last place.
	Inspect(c *transport.Call, first, last int64)
	Inspected(reply any) (reply.Inspection, error)
}

// Identifying is implemented by kinds whose holders are IDs. Their claims have the zero Owner.
type Identifying interface {
	NewID() string
}

// Queueing is implemented by kinds that queue refused owners on the server.
type Queueing interface {
	// Dequeue removes the owner from the queue, within one command timeout. It is idempotent.
	Dequeue(lock string, r *acquire.Request) error
	// Leave is like Dequeue, but it runs in the background and retries.
	Leave(lock string, r *acquire.Request)
	// Lasts returns how long r's place in the queue can block other owners.
	Lasts(r *acquire.Request) time.Duration
}

// Terms contains the parameters of an acquisition.
type Terms struct {
	// Owner is a shared owner if Given is true.
	Owner codec.Owner
	Given bool
	// TTL is the lease, and TTLArg is the same in milliseconds, as a boxed int64. Watchdog is true if the caller has set
	// the lease of a renewed hold.
	TTL      time.Duration
	TTLArg   any
	Watchdog bool
	Fixed    bool
	// Max is the maximum duration of a renewed hold if Capped is true.
	Max    time.Duration
	Capped bool
	// Wait is how long a queue keeps the owner's place, in milliseconds, as a boxed int64.
	Wait    any
	Bound   time.Duration
	Bounded bool
	// Poll is the time between attempts without a subscription if Polled is true.
	Poll   time.Duration
	Polled bool
	Try    bool
	// Several is true if the caller will call [AwaitReplicas].
	Several bool
}

// Ask applies options to the defaults and checks the result.
func Ask[O ~func(*Terms)](l *Lock, opts []O) (Terms, error) {
	e := l.Engine
	if len(opts) == 0 {
		return Terms{TTL: e.Lease, TTLArg: e.LeaseArg, Wait: e.FairWaitArg}, nil
	}
	a := Terms{TTL: e.Lease, Wait: e.FairWaitArg}
	for _, o := range opts {
		if o != nil {
			o(&a)
		}
	}
	err := a.check(l)
	return a, err
}

func (a *Terms) check(l *Lock) error {
	if err := CheckWait(a.Bound); err != nil {
		return err
	}
	if a.Fixed && a.Watchdog {
		return fmt.Errorf("%w: WithLease and WithWatchdog are mutually exclusive", limits.ErrInvalid)
	}
	if err := a.checkOwner(l); err != nil {
		return err
	}
	if err := a.checkPoll(l); err != nil {
		return err
	}
	if a.Capped && a.Fixed {
		return fmt.Errorf("%w: WithMaxHold requires a renewed lease, not WithLease", limits.ErrInvalid)
	}
	if a.Capped && (a.Max < time.Millisecond || a.Max > limits.Max) {
		return fmt.Errorf("%w: a maximum of %v", limits.ErrInvalid, a.Max)
	}
	ms, err := limits.Lease(a.TTL)
	if err != nil {
		return err
	}
	if a.Watchdog {
		if err := limits.Renewed(a.TTL); err != nil {
			return err
		}
	}
	a.TTL = time.Duration(ms) * time.Millisecond
	if a.TTL <= l.Engine.Margin {
		return fmt.Errorf("%w: loss margin %v must be shorter than the lease %v", limits.ErrInvalid, l.Engine.Margin, a.TTL)
	}
	a.TTLArg = ms
	if a.Bound > 0 {
		wait := a.Bound.Milliseconds()
		if a.Bound%time.Millisecond > 0 {
			wait++
		}
		a.Wait = wait
	}
	return nil
}

// CheckWait returns an error if d is not a valid wait limit.
func CheckWait(d time.Duration) error {
	switch {
	case d > 0 && d < time.Millisecond:
		return fmt.Errorf("%w: WithWait(%v) must be 0 or at least 1ms: add a unit, as in 10*time.Second", limits.ErrInvalid, d)
	case d < 0:
		return fmt.Errorf("%w: WithWait(%v) must be 0 or at least 1ms", limits.ErrInvalid, d)
	}
	return nil
}

func (a *Terms) checkPoll(l *Lock) error {
	_, can := l.Strategy.(interface{ CanPoll() })
	switch {
	case !a.Polled:
		return nil
	case a.Poll > 0 && a.Poll < time.Millisecond:
		return fmt.Errorf("%w: WithPolling(%v) must be at least 1ms: add a unit, as in 100*time.Millisecond", limits.ErrInvalid, a.Poll)
	case a.Poll <= 0:
		return fmt.Errorf("%w: WithPolling(%v) must be at least 1ms", limits.ErrInvalid, a.Poll)
	case a.Poll > limits.Max:
		return fmt.Errorf("%w: WithPolling(%v) is more than 100 years", limits.ErrInvalid, a.Poll)
	case !can:
		return fmt.Errorf("%w: WithPolling is not supported for kind %s: its waiters must subscribe", limits.ErrInvalid, l.Kind.Name())
	}
	return nil
}

func (a *Terms) checkOwner(l *Lock) error {
	if !a.Given {
		return nil
	}
	if a.Owner.IsZero() {
		return fmt.Errorf("%w: the zero Owner", limits.ErrInvalid)
	}
	if l.Owning == nil {
		return fmt.Errorf("%w: WithOwner is not supported for kind %s", limits.ErrInvalid, l.Kind.Name())
	}
	return nil
}
