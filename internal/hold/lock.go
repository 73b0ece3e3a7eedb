// Package hold is what becomes of a lock that was granted: which owner has it on the
// server, for how long, and how it is given up. It knows no kind of lock and no strategy of
// waiting.
//
// A [Hold] begins as the claim of an attempt (acquire.Claim), or re-enters the hold that a
// context proves:
//
//	claim ──Grant──▶ live ──Unlock──▶ released, or transferred to the next caller of the process
//	  │               │ ──LetExpire──▶ left to its lease
//	  │               │ ──HandOver───▶ handed over
//	  │               │ ──lease over, or the server forgot it──▶ lost
//	  │               └ ──maximum────▶ left to its lease, or to Unlock
//	  │ refused, gave up
//	  ├────────────▶ dropped
//	  │ no reply
//	  └────────────▶ in doubt: Late or InDoubt gives back what the attempt acquired
//
// The holds of one owner are an ownership: the server's count is their number. One change of
// that count travels to the server at a time, and says where to arrive, so that it may run late
// or twice. The last hold that is given up frees the lock.
//
// # Inner holds
//
// A hold has a slot for one inner hold, so that two callers with its proof exclude each other.
// The code that has the hold itself is not excluded:
//
//	            Reenter                      granted
//	free ──────────────────────▶ entering ─────────────▶ entered
//	 ▲                            │   │ no reply           │ given up, or lost; at its maximum
//	 │ refused, gave up, not sent │   ▼                    │ when the lease it had then is over
//	 ├────────────────────────────┘  in doubt              │
//	 │                                │ resolved           │
//	 └────────────────────────────────┴────────────────────┘
//
// A caller that finds the slot taken waits in this process, in order, and sends nothing. A slot
// that becomes free goes to the first that waits. What ends the wait without the slot: the
// caller's context, Close and Shutdown, and the end of the outer hold:
//
//	outer hold lost, closed, or at its maximum ──▶ the error that its proof gives
//	outer hold unlocked or handed over ──────────▶ if the context has not ended with it, the
//	                                               next hold that the context proves is
//	                                               entered; without one, the lock is acquired
//
// An inner hold outlives its outer one. When a hold that has an inner one is given up, the
// inner one takes its place: it has the slot of the next hold further out, if there is one. So
// the holds of a slot, and those inside them, are a chain. Each hold of an owner that others may
// use, such as a resumed one, begins a chain of its own. The re-entry of such an owner is never
// resolved, since its count may be another user's: its slot is free at once.
//
// A [Kind] is what is asked of the server. What only some kinds can do is an interface of its
// own, which a kind has or has not.
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

// Lock is what all holds of one lock have in common. It is safe for concurrent use, and does
// not change after [NewLock].
type Lock struct {
	// Engine is the client's.
	Engine *engine.Engine
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is what is asked of the server.
	Kind Kind
	// Strategy is how the callers of this process wait.
	Strategy acquire.Strategy
	// Err is why the name cannot be used, nil when it can.
	Err error

	key   any           // of the lock, boxed once
	proof any           // the proofKey, boxed once
	trust time.Duration // for how long a confirmation of a lease counts; 0: for all of it
}

// Make makes a kind of lock for a mapped name, and how its callers wait.
type Make func(e *engine.Engine, mapped string) (Kind, acquire.Strategy)

// NewLock returns what the holds of a lock called name have in common.
func NewLock(e *engine.Engine, name string, make Make) Lock {
	mapped, err := e.Map(name)
	kind, strategy := make(e, mapped)
	l := Lock{
		Engine: e, Name: name, Kind: kind, Strategy: strategy, Err: err,
		key: kind.Key(), proof: proofKey{e, kind.Family(), kind.Key()},
	}
	if l.shares() {
		l.trust = e.Lease
	}
	return l
}

// newOwner returns an owner that was never used, and its text, boxed.
func (l *Lock) newOwner() (codec.Owner, any) {
	if k, ok := l.Kind.(Identifying); ok {
		return codec.Owner{}, k.NewID()
	}
	owner := l.Engine.NextOwner()
	return owner, l.Text(owner)
}

// Text returns an owner as it stands in the lock's hash.
func (l *Lock) Text(owner codec.Owner) string {
	text := owner.String()
	if f, ok := l.Kind.(Fielding); ok {
		return f.Field(text)
	}
	return text
}

// Prepare finds out what the kind's scripts need.
func (l *Lock) Prepare(ctx context.Context) {
	if p, ok := l.Kind.(Preparing); ok {
		p.Prepare(ctx)
	}
}

// Check returns why a call with ctx about the lock cannot begin, nil when it can.
func (l *Lock) Check(ctx context.Context) error { return acquire.Check(ctx, l.Err) }

// Ask runs a call that may be repeated: see [acquire.Ask].
func (l *Lock) Ask(ctx context.Context, fill func(*transport.Call)) (any, error) {
	return l.ask(ctx, false, fill)
}

// Publish is [Lock.Ask] of a call whose script publishes.
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

// Kind is a kind of lock that gives holds: what is asked of the server about one lock. All
// methods are safe for concurrent use, and pure but for the time of day, which some kinds
// send. Each fills a reset call.
//
// What only some kinds can do is an interface of its own below. A kind that has its methods
// can do it.
type Kind interface {
	acquire.Waitable

	// Family names the kinds whose proofs count for one another, such as those of two roles
	// under one key: see [Role].
	Family() string

	// Release fills c with the call that brings the count of r.Owner down to r.Target, 0 to
	// free the lock. Only for owners that one process alone uses: it may run late or twice,
	// and does nothing for an owner that does not hold the lock. It is sent before the attempts
	// that wait to be sent.
	Release(c *transport.Call, r *acquire.Request)
	// Released reads its reply.
	Released(reply any) (reply.ReleaseOutcome, error)

	// Renewal returns the script that renews the lock's leases.
	Renewal() *watchdog.Renewal
}

// Reentrant is a kind whose owners can hold a lock more than once.
type Reentrant interface {
	// Reenter fills c with the call that enters the lock again for an owner that holds it: up
	// to count r.Target, for one that one process alone uses, which may run more than once;
	// or, with target 0, by one.
	Reenter(c *transport.Call, r *acquire.Request)
	// Reentered reads its reply: false says that the owner does not hold the lock.
	Reentered(reply any) (bool, error)
}

// Fencing is a kind whose grants have tokens: a re-entry has one of its own, and so has a hold
// that was resumed, which is a re-entry up to count 1.
type Fencing interface {
	Reentrant
	// Token reads the token from the reply of a re-entry that was granted.
	Token(reply any) (int64, error)
}

// Shareable is a kind whose owners can be used by several processes and languages.
type Shareable interface {
	// ReleaseShared fills c with the call that lowers the count of such an owner by one. The
	// latch lets it be sent again. The reply is that of a release.
	ReleaseShared(c *transport.Call, r *acquire.Request, latch string)
}

// Forcible is a kind whose locks can be taken from their holders.
type Forcible interface {
	// ForceRelease fills c with the call that frees the lock.
	ForceRelease(c *transport.Call)
	// Forced reads its reply: whether there was a holder.
	Forced(reply any) (bool, error)
}

// Lockable is a kind of which a key that exists does not say that it is held.
type Lockable interface {
	// IsLocked fills c with the call that asks whether the lock is held.
	IsLocked(c *transport.Call)
	// Locked reads its reply.
	Locked(reply any) (bool, error)
}

// Inspectable is a kind that can tell the holders of a lock.
type Inspectable interface {
	// Inspect fills c with the call that reads the lock, and the places of a queue on the
	// server from first to last, from 0, -1 for its end.
	Inspect(c *transport.Call, first, last int64)
	// Inspected reads its reply.
	Inspected(reply any) (reply.Inspection, error)
}

// Replicable is a kind whose locks replicas can be waited for.
type Replicable interface {
	// Replicate fills c with the call that writes the lock of an owner once more, as it is.
	Replicate(c *transport.Call, owner any)
	// Replicated reads its reply: whether the owner holds the lock.
	Replicated(reply any) (bool, error)
}

// Queueing is a kind whose refused attempts put owners in a queue on the server.
type Queueing interface {
	// Dequeue takes the owner of a lock of that name out of the queue, and waits for that, one
	// command timeout at most. It may run more than once.
	Dequeue(lock string, r *acquire.Request) error
	// Leave does the same in the background, and tries again what fails.
	Leave(lock string, r *acquire.Request)
	// Lasts returns for how long at most the place of r can block others.
	Lasts(r *acquire.Request) time.Duration
}

// Identifying is a kind whose holders have ids of another form than owners. Its holds have the
// zero Owner.
type Identifying interface {
	// NewID returns an id that was never used.
	NewID() string
}

// Fielding is a kind whose owners stand in another form in the lock's hash, as the requests
// and renewals name them.
type Fielding interface {
	// Field returns the form of an owner's text.
	Field(owner string) string
}

// Role is a kind of a family of several, such as readers and writers of one lock: an owner may
// hold the lock as more than one of them.
type Role interface {
	Reentrant
	// Under returns nil when an owner that holds the lock as outer, another kind of the
	// family, may enter it as this one, too, else why not. The re-entry grants it, up to
	// count 1.
	Under(outer Kind) error
	// Shares reports whether several owners can hold the lock as this kind. Inner holds of
	// one hold do not wait for each other then. The renewals of other owners, if those are
	// Redisson's, may leave the lock a shorter time to live than a hold was granted, but
	// none shorter than the watchdog timeout, which all clients have in common.
	Shares() bool
}

// Preparing is a kind whose scripts need something that must be known first.
type Preparing interface {
	// Prepare finds it out. It returns when it is known, or ctx ends, or it takes too long.
	Prepare(ctx context.Context)
}

// Asked is what the options of a call ask for, those of package rlock.
type Asked struct {
	Terms
	// Bound is for how long the caller waits at most, if Bounded; else its context alone bounds it.
	Bound time.Duration
	// Poll is how long the caller sleeps at most without asking, 0 for the client's poll cap.
	// Polled is true if it was given for a caller that is woken, Deaf for one that only polls.
	Poll                  time.Duration
	Bounded, Polled, Deaf bool
	// Given is true for an owner that others may use, too.
	Given bool
	// Watchdog is true if the lease of a renewed hold was given, Capped if Max was.
	Watchdog, Capped bool
}

// Ask applies the options of a call about a lock to the defaults, and checks the result.
func Ask[O ~func(*Asked)](l *Lock, opts []O) (Asked, error) {
	e := l.Engine
	if len(opts) == 0 { // without an allocation
		return Asked{Terms: Terms{TTL: e.Lease, TTLArg: e.LeaseArg, Wait: e.FairWaitArg}}, nil
	}
	a := Asked{Terms: Terms{TTL: e.Lease, Wait: e.FairWaitArg}}
	for _, o := range opts {
		if o != nil {
			o(&a)
		}
	}
	err := a.check(l)
	return a, err
}

// check checks what was asked for, and completes it.
func (a *Asked) check(l *Lock) error {
	if a.Bound < time.Millisecond && a.Bound != 0 {
		return fmt.Errorf("%w: WithWait(%v) is neither 0 nor at least 1 ms: write a unit, as in 10*time.Second", limits.ErrInvalid, a.Bound)
	}
	if a.Fixed && a.Watchdog {
		return fmt.Errorf("%w: WithLease and WithWatchdog contradict each other", limits.ErrInvalid)
	}
	if err := a.checkOwner(l); err != nil {
		return err
	}
	if err := a.checkPoll(l); err != nil {
		return err
	}
	if a.Capped && a.Fixed {
		return fmt.Errorf("%w: WithMaxHold is for leases that are renewed, not for WithLease", limits.ErrInvalid)
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
		return fmt.Errorf("%w: a loss margin of %v leaves nothing of a lease of %v", limits.ErrInvalid, l.Engine.Margin, a.TTL)
	}
	a.TTLArg = ms
	if a.Bound > 0 {
		a.Wait = wholeMillis(a.Bound)
	}
	return nil
}

// checkPoll checks how the caller polls.
func (a *Asked) checkPoll(l *Lock) error {
	_, can := l.Strategy.(interface{ CanPoll() })
	switch {
	case !a.Polled && !a.Deaf:
		return nil
	case a.Polled && a.Deaf:
		return fmt.Errorf("%w: WithoutWakeUps says how often to ask, and WithPollCap is for callers that are woken", limits.ErrInvalid)
	case a.Poll < time.Millisecond || a.Poll > limits.Max:
		return fmt.Errorf("%w: asking every %v: write a unit, as in 100*time.Millisecond", limits.ErrInvalid, a.Poll)
	case a.Deaf && !can:
		return fmt.Errorf("%w: WithoutWakeUps is not for a %s lock, whose waiters must listen", limits.ErrInvalid, l.Kind.Name())
	}
	return nil
}

// checkOwner checks the owner that was given, if one was.
func (a *Asked) checkOwner(l *Lock) error {
	if !a.Given {
		return nil
	}
	if a.Owner.IsZero() {
		return fmt.Errorf("%w: the zero Owner", limits.ErrInvalid)
	}
	if _, can := l.Kind.(Shareable); !can {
		return fmt.Errorf("%w: owners of a %s lock cannot be given", limits.ErrInvalid, l.Kind.Name())
	}
	return nil
}

// wholeMillis is the wait that a queue on the server gets: in whole milliseconds, rounded
// up.
func wholeMillis(wait time.Duration) int64 {
	ms := wait.Milliseconds()
	if wait%time.Millisecond > 0 {
		ms++
	}
	return ms
}
