// Package acquire is the loop in which a caller waits for a lock. It is written once and
// knows no kind of lock and no strategy of waiting by name.
//
//	           Enter                 granted
//	caller ───────────▶ attempt ──────────────────────▶ Granted, and the replicas have it
//	  │                  ▲   │ refused                    │ no
//	  │ gave up          │   ▼                            ▼
//	  ▼           listen │  sleep ── gave up, closed ──▶ Leave
//	Leave                └───┘ a message, the strategy's wake-up, or the time that was
//	                           agreed on with the strategy
//
// A [Waitable] says what an attempt asks of the server. A [Strategy] says how the callers of
// one process wait: which of them asks, and what wakes them. A [Claim] is what a granted
// attempt becomes, and takes care of one whose outcome is not known. The loop listens before
// it asks again, so that a release after the attempt is heard. It counts waiters, bounds the
// wait, and ends it when the client closes.
package acquire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

// Acquisition is one call on its way to a lock. It belongs to the caller's goroutine. The
// fields up to Began are what the caller asks for.
type Acquisition struct {
	// Engine is the client's.
	Engine *engine.Engine
	// Kind is the lock, Lock its name, as the caller gave it, and Op what was called.
	Kind     Waitable
	Lock, Op string
	// Claims makes what the lock is acquired for.
	Claims Claims
	// Try is true for a caller that does not wait.
	Try bool
	// Given is true for an owner that others may use, too: a second attempt could count
	// twice.
	Given bool
	// Deaf is true for a caller that listens to nothing, and only polls.
	Deaf bool
	// Unbounded is the caller's context where that of the call has a bound on the wait
	// besides, less than [Overdue], else nil: see [Acquisition.Within].
	Unbounded context.Context //nolint:containedctx // it ends with the call
	// Began is when the call began: see [Acquisition.Start].
	Began time.Time
	// Observed is the context for the observer, which its Started returned; nil without one.
	Observed context.Context //nolint:containedctx // it ends with the call
	// Poll is how long the caller sleeps at most without asking, 0 for the client's poll cap.
	Poll time.Duration

	// Attempts is how often Redis was asked.
	Attempts int
	// Holder is the owner that held the lock at the last attempt, or as the process knows
	// of another one, the zero Owner when that is not known, and TTL what its lease had
	// left.
	Holder codec.Owner
	TTL    time.Duration
	// Available is how many permits of a semaphore were left at the last attempt.
	Available int64
	// Away is why the last attempt got no answer, nil when it got one.
	Away error
	// Answered is true when Redis is known to have answered since the caller began to wait.
	Answered bool
	// Passed is true when the turn came with the lock, from a hold of this client.
	Passed bool

	hint    error // see [Outcome], of the last refusal
	counted bool  // among the callers that wait
	suspect bool  // the key may be that of another program
	looked  bool  // whether it is

	unsubscribed bool // it could not subscribe

	// Transfer is the lock that came with the turn, nil once it was asked for.
	Transfer *Transfer

	waiter  Waiter
	claim   Claim
	inDoubt Claim // what the last attempt was for, if its outcome is not known
	waiting engine.Waiting
	place   int         // in the queue on the server, when it was last put there; 0: never
	timer   *time.Timer // nil unless a sleep ends by itself
}

// Check returns why a call with ctx about a lock cannot begin: err, which is about its name, or that
// ctx has ended. Nil: it can.
func Check(ctx context.Context, err error) error {
	if err == nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", engine.ErrNotSent, engine.EndOf(ctx))
	}
	return err
}

// Ask runs a call about a lock. While it certainly did not run it is tried again for one command
// timeout, or until ctx ends. Guards says that its script publishes.
func Ask(ctx context.Context, e *engine.Engine, k Waitable, guards bool, fill func(*transport.Call)) (reply any, err error) {
	if err := e.Enter(); err != nil {
		return nil, err
	}
	defer e.Leave()
	err = e.Retry(ctx, func() (err error) {
		if guards {
			reply, err = e.RunGuarded(ctx, k.Name(), k.Channel(nil), fill)
			return err
		}
		at := e.Attempt()
		fill(&at.Call)
		reply, err = at.Run(ctx, nil)
		return err
	})
	return reply, e.ExplainKey(ctx, k.Name(), k.Key(), engine.WithEnd(ctx, err))
}

// Within returns ctx with a bound on the wait.
func (a *Acquisition) Within(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	if wait < Overdue {
		a.Unbounded = ctx // one attempt may outlive a short bound
	}
	return context.WithTimeoutCause(ctx, wait, engine.ErrWaitOver)
}

// Run returns when the caller has the lock, or an error that says why not. The claim that was
// made last is the hold then.
func (a *Acquisition) Run(ctx context.Context, s Strategy) error {
	a.waiter = s.Waiter(a)
	err := a.enter(ctx)
	if err != nil {
		a.waiter.Leave(a)
	} else if a.waiter.Granted(a); a.Engine.Replicas > 0 {
		err = a.claim.Replicated(ctx)
	}
	if a.counted {
		a.Engine.EndWait(&a.waiting)
	}
	a.stopTimer()
	if a.waiter = nil; err != nil && a.claim != nil {
		a.claim.Drop()
	}
	if err != nil {
		err = a.Engine.ExplainKey(ctx, a.Kind.Name(), a.Kind.Key(), err)
	}
	if a.hint != nil && errors.Is(err, engine.ErrNotAcquired) {
		return fmt.Errorf("%w: %w", err, a.hint)
	}
	return err
}

func (a *Acquisition) enter(ctx context.Context) error {
	granted, err := a.waiter.Enter(ctx, a)
	if err != nil || granted {
		return err
	}
	granted, err = a.open(ctx)
	switch {
	case granted:
		return nil
	case err != nil:
		return engine.WithEnd(ctx, err)
	case a.Try:
		return engine.ErrNotAcquired
	}
	if err := a.BeginWait(); err != nil {
		return err
	}
	return a.wait(ctx)
}

// BeginWait counts the caller in among those that wait, once. It returns an error when as
// many wait as may.
func (a *Acquisition) BeginWait() error {
	if a.counted {
		return nil
	}
	a.waiting = engine.Waiting{Name: a.Lock, Kind: a.Kind.Name()}
	if err := a.Engine.BeginWait(&a.waiting); err != nil {
		return fmt.Errorf("%w: %w", engine.ErrNotAcquired, err)
	}
	a.counted = true
	a.observeQueued()
	return nil
}

// Claim returns the claim that the next attempt is for.
func (a *Acquisition) Claim() Claim {
	if a.claim == nil {
		a.Renew(nil)
	}
	return a.claim
}

// Renew takes another claim, for an owner that was never used, or, if s is not nil, for
// that of a subscription that is used again.
func (a *Acquisition) Renew(s Reusable) { a.claim = a.Claims.Claim(s) }

// InDoubt returns the claim of the last attempt if its outcome is not known, else nil.
func (a *Acquisition) InDoubt() Claim { return a.inDoubt }

// open makes the first attempt. While Redis does not answer it tries for one command timeout
// since the call began; a caller that has waited already goes on waiting.
func (a *Acquisition) open(ctx context.Context) (bool, error) {
	var granted bool
	began := a.Began
	if a.Answered {
		began = time.Now()
	}
	first, cancel := a.first(ctx)
	defer cancel()
	var before error // why the attempt before had no outcome
	err := a.Engine.RetrySince(ctx, began, func() (err error) {
		sent := time.Now()
		granted, err = a.Attempt(first)
		if before != nil && a.cutShort(ctx, err, sent) {
			return before
		}
		before = err
		return err
	})
	if err == nil {
		return granted, nil
	}
	if a.Answered && a.cutShort(ctx, err, began) {
		return false, a.GaveUp(ctx) // its turn came as it left
	}
	if a.rides(err) {
		a.waiter.Unanswered(err)
		if a.Answered && ctx.Err() == nil {
			a.Away = err
			return false, nil
		}
	}
	return false, err
}

// first returns the context of the first attempt. A wait that is shorter than a reply may
// take does not end it: the caller could not learn whether the lock is held.
func (a *Acquisition) first(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.Unbounded == nil || a.Answered {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(a.Unbounded, Overdue-time.Since(a.Began), engine.ErrWaitOver)
}

// Attempt asks for the lock once. It returns true when the claim is granted, and false without
// an error when another owner has the lock.
func (a *Acquisition) Attempt(ctx context.Context) (bool, error) {
	a.inDoubt = nil
	a.Attempts++
	claim, transfer, at := a.Claim(), a.Transfer, a.Engine.Attempt()
	a.Transfer = nil
	claim.Asks(true)
	sent := time.Now() // before the call is filled, which may tell the server the time
	guarded := false
	if transfer != nil {
		kind, _ := a.Kind.(Transferable) // it is one, else no transfer comes
		kind.Transfer(&at.Call, claim.Request(), transfer.owner)
		at.Call.Urgent = true // what ends a hold goes before the acquires that wait to be sent
	} else {
		a.Kind.Acquire(&at.Call, claim.Request())
		if !a.Engine.MayPublish(a.Kind.Name()) {
			guarded = a.Engine.GuardPublish(&at.Call, a.Kind.Channel(claim.Request().Owner))
		}
	}
	reply, err := at.Run(ctx, claim)
	if s, can := claim.(Settler); can && errors.Is(err, engine.ErrUncertain) {
		reply, err = s.Settle(ctx, err)
	}
	if guarded {
		err = a.Engine.Guarded(a.Kind.Name(), a.Kind.Channel(nil), err)
	}
	granted, again, err := a.answered(claim, transfer, sent, reply, err)
	claim.Asks(false)
	if again {
		return a.Attempt(ctx) // it is free, or another owner has it
	}
	if !granted {
		if err == nil {
			err = a.foreign(ctx)
		}
		a.observeAttempt(sent, err)
	}
	return granted, err
}

// answered takes in what an attempt was answered. Again says that the lock was not there to be
// transferred.
func (a *Acquisition) answered(claim Claim, transfer *Transfer, sent time.Time, reply any, err error) (granted, again bool, _ error) {
	if transfer != nil {
		again, taken := transfer.taken(a.Kind, reply, err)
		switch {
		case again:
			return false, true, nil
		case err == nil && taken != nil:
			claim.Disown()
			return false, false, taken
		}
	}
	if err != nil {
		a.unanswered(err)
		return false, false, err
	}
	out, err := a.Kind.Decode(reply)
	if err != nil {
		if errors.Is(err, transport.ErrBadReply) { // it may have been granted
			claim.Disown()
		}
		return false, false, err
	}
	if a.Available = out.Available; !out.Granted {
		a.Holder, a.TTL, a.Away = out.Holder, a.waiter.Refused(a, out), nil
		a.queuedAt(out.Position)
		a.suspect = out.Foreign
		if a.hint == nil && out.Hint != nil && !a.Try {
			a.Engine.Logger.Warn("redlatch: wait that no release will end", a.Kind.Name(), a.Lock, "reason", out.Hint)
		}
		a.hint = out.Hint
		return false, false, nil
	}
	err = claim.Grant(sent, out)
	return err == nil, false, err
}

// unanswered deals with an attempt that ended with an error. An owner of which it is not
// known what it has is never asked for again.
func (a *Acquisition) unanswered(err error) {
	a.claim.Fail()
	switch {
	case errors.Is(err, engine.ErrUncertain) && a.Given:
		a.waiter.Abandon()
	case errors.Is(err, engine.ErrUncertain):
		a.inDoubt = a.claim
		a.waiter.Abandon()
		a.Renew(nil)
	case engine.Halfway(err):
		// The lock may be held, or the owner have a place in a queue.
		a.claim.Disown()
		a.waiter.Abandon()
		a.claim.Drop()
		a.Renew(nil)
	}
}

// foreign returns an error when the key that refused an attempt certainly is that of another
// program: the lock would be waited for in vain. It asks once in an acquisition, and only where
// the refusal gave rise to that. What it cannot find out, for want of a right or of time, it
// takes for a lock.
func (a *Acquisition) foreign(ctx context.Context) error {
	kind, can := a.Kind.(Foreigner)
	if !a.suspect || !can || a.looked {
		return nil
	}
	a.looked = true
	at := a.Engine.Attempt()
	kind.LookForeign(&at.Call)
	reply, err := at.Run(ctx, nil)
	if err != nil {
		return nil //nolint:nilerr // the lock counts as held
	}
	if field, foreign := kind.Foreign(reply); foreign {
		return engine.Foreign(field)
	}
	return nil
}
