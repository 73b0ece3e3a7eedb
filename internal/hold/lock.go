// Package hold implements acquired locks: their owners, leases, release and re-entry. A [Kind] makes the calls. A
// [Hold] begins as the claim of an attempt, and ends when it is released, handed over or lost. The holds of one owner
// are an ownership, and the server's count is their number. Changes to the count are sent one at a time and state the
// target count, so they may run late or twice. A hold has a slot for one inner hold: other callers with its proof wait
// in FIFO order.
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
	// Engine of the client.
	Engine *engine.Engine
	// Name of the lock, before mapping.
	Name string
	// Kind makes the lock's calls.
	Kind Kind
	// Owning is Kind, or nil if its holders are IDs.
	Owning Owning
	// Strategy is how callers in this process wait.
	Strategy acquire.Strategy
	// Err is why the name is invalid, or nil if it is valid.
	Err error

	key   any
	proof any           // the proofKey, boxed
	trust time.Duration // how long a confirmed lease counts, or 0 for its whole length
}

// Make returns the kind and the strategy for a mapped name.
type Make func(e *engine.Engine, mapped string) (Kind, acquire.Strategy)

// NewLock returns the lock called name.
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

// HasRoles reports whether a lock has several roles.
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

// Ask runs an idempotent call: see [acquire.Ask].
func (l *Lock) Ask(ctx context.Context, fill func(*transport.Call)) (any, error) {
	return l.ask(ctx, false, fill)
}

// Publish is [Lock.Ask] for a script that publishes.
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

// Kind builds the calls for one lock and decodes their replies. Its methods are safe for concurrent use. A call to be
// filled must have been reset.
type Kind interface {
	acquire.Waitable

	// Family groups kinds whose proofs are valid for each other; by default the kind's name.
	Family() string

	// Prepare reads the state that the scripts depend on, for a limited time.
	Prepare(ctx context.Context)

	// Release fills c with the call that lowers r.Owner's count to r.Target; 0 frees the lock. The owner must not be
	// shared: the call may run late or twice. It has no effect if the owner does not hold the lock. It is sent before
	// waiting attempts.
	Release(c *transport.Call, r *acquire.Request)
	// Released decodes its reply.
	Released(reply any) (reply.ReleaseOutcome, error)

	// Renewal returns the script that renews leases.
	Renewal() *watchdog.Renewal

	// Replicate fills c with the call that rewrites a lock unchanged.
	Replicate(c *transport.Call, owner any)
	// Replicated decodes whether the owner holds the lock.
	Replicated(reply any) (bool, error)
}

// Owning is a kind whose holders are owners, which can hold a lock more than once.
type Owning interface {
	// Field returns an owner's field in the lock's hash.
	Field(owner string) string

	// Reenter fills c with the call that enters the lock again: idempotently up to the count r.Target, or by one if the
	// target is 0, as for a shared owner.
	Reenter(c *transport.Call, r *acquire.Request)
	// Reentered decodes its reply. Token is the new token of a fenced kind, otherwise 0.
	Reentered(reply any) (held bool, token int64, err error)
	// Fences reports whether grants have tokens.
	Fences() bool

	// Under returns why an owner that holds the lock in another role cannot enter this one, or nil if it can.
	Under() error
	// Shares reports whether several owners can hold the lock. If so, inner holds don't exclude each other, and
	// Redisson's renewals may shorten the TTL, but not below the watchdog timeout.
	Shares() bool

	// ReleaseShared fills c with the call that lowers the owner's count by one. The latch makes it idempotent.
	ReleaseShared(c *transport.Call, r *acquire.Request, latch string)

	// ForceRelease fills c with the call that frees the lock.
	ForceRelease(c *transport.Call)
	// Forced decodes whether there was a holder.
	Forced(reply any) (bool, error)

	// IsLocked fills c with its call.
	IsLocked(c *transport.Call)
	// Locked decodes its reply.
	Locked(reply any) (bool, error)

	// Inspect fills c with the call that reads the lock, and its queue from first to last, counting from 0; -1 is the end.
	Inspect(c *transport.Call, first, last int64)
	// Inspected decodes its reply.
	Inspected(reply any) (reply.Inspection, error)
}

// Identifying is a kind whose holders are IDs, with the zero Owner.
type Identifying interface {
	// NewID returns an unused ID.
	NewID() string
}

// Queueing is a kind that queues refused owners on the server.
type Queueing interface {
	// Dequeue removes the owner from the queue, within one command timeout. It is idempotent.
	Dequeue(lock string, r *acquire.Request) error
	// Leave is Dequeue in the background, with retries.
	Leave(lock string, r *acquire.Request)
	// Lasts returns how long r's place can block others.
	Lasts(r *acquire.Request) time.Duration
}

// Terms are the terms of an acquisition.
type Terms struct {
	// Owner is a shared owner if Given, otherwise zero.
	Owner codec.Owner
	Given bool
	// TTL is the lease, and TTLArg is the same in milliseconds, as a boxed int64. Watchdog is true if the lease was
	// given for a renewed hold.
	TTL      time.Duration
	TTLArg   any
	Watchdog bool
	// Fixed leases are not renewed.
	Fixed bool
	// Max is the maximum duration of a renewed hold if Capped.
	Max    time.Duration
	Capped bool
	// Wait is how long a queue keeps the owner's place, in milliseconds, a boxed int64.
	Wait any
	// Bound limits the wait if Bounded.
	Bound   time.Duration
	Bounded bool
	// Poll is the time between attempts without a subscription if Polled.
	Poll   time.Duration
	Polled bool
	// Try is true for a caller that doesn't wait.
	Try bool
	// Several is true for a caller of [AwaitReplicas].
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

// CheckWait checks the wait of an acquisition.
func CheckWait(d time.Duration) error {
	if d < time.Millisecond && d != 0 {
		return fmt.Errorf("%w: WithWait(%v) is neither 0 nor at least 1 ms: write a unit, as in 10*time.Second", limits.ErrInvalid, d)
	}
	return nil
}

func (a *Terms) checkPoll(l *Lock) error {
	_, can := l.Strategy.(interface{ CanPoll() })
	switch {
	case !a.Polled:
		return nil
	case a.Poll < time.Millisecond:
		return fmt.Errorf("%w: WithPolling(%v) is not at least 1 ms: write a unit, as in 100*time.Millisecond", limits.ErrInvalid, a.Poll)
	case a.Poll > limits.Max:
		return fmt.Errorf("%w: WithPolling(%v) is more than 100 years", limits.ErrInvalid, a.Poll)
	case !can:
		return fmt.Errorf("%w: a %s lock does not support WithPolling: its waiters must subscribe", limits.ErrInvalid, l.Kind.Name())
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
		return fmt.Errorf("%w: a %s lock does not support WithOwner", limits.ErrInvalid, l.Kind.Name())
	}
	return nil
}
