// Package acquire implements the loop in which a caller waits for a lock of any kind, with any strategy. A [Waitable]
// makes the calls, a [Strategy] decides which callers in a process send them and what wakes the others, and a [Claim]
// becomes the hold and handles attempts in doubt. The loop subscribes before the second attempt, so that it does not
// miss a release.
//
//	           Enter                 granted
//	caller ───────────▶ attempt ──────────────────────▶ Granted, and the replicas have it
//	  │                  ▲   │ refused                    │ no
//	  │ gave up          │   ▼                            ▼
//	  ▼           listen │  sleep ── gave up, closed ──▶ Leave
//	Leave                └───┘ message, wake-up or timeout
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

// Acquisition is one call that acquires a lock. It belongs to the caller's goroutine. The fields up to Poll are its
// parameters.
type Acquisition struct {
	Engine *engine.Engine
	// Lock is the lock's name, and Op is the operation.
	Kind     Waitable
	Lock, Op string
	Claims   Claims
	// Try is true for a caller that doesn't wait.
	Try bool
	// Given is true for a shared owner, for which a second attempt may count twice.
	Given bool
	// Unbounded is the caller's context if the call's context has a wait limit below [Overdue], otherwise nil; see
	// [Acquisition.Within].
	Unbounded context.Context //nolint:containedctx // it ends with the call
	// Began is set by [Acquisition.Start].
	Began time.Time
	// Observed is the context returned by the observer's Started.
	Observed context.Context //nolint:containedctx // it ends with the call
	// Poll is the time between attempts without a subscription, or 0 if the caller subscribes.
	Poll time.Duration

	Attempts int
	// Holder is the last known holder, and TTL is its remaining lease.
	Holder codec.Owner
	TTL    time.Duration
	// Available is the number of a semaphore's permits at the last attempt.
	Available int64
	// Away is why Redis did not answer the last attempt.
	Away     error
	Answered bool
	// Passed is true if the turn came with the lock.
	Passed bool

	hint    error // see Outcome.Hint
	counted bool
	suspect bool // the key may not be a lock
	looked  bool

	unsubscribed bool

	// Transfer is the lock that came with the turn, or nil once an attempt has used it.
	Transfer *Transfer

	waiter  Waiter
	claim   Claim
	inDoubt Claim // claim of the last attempt, if its outcome is unknown
	waiting engine.Waiting
	place   int // last place in a queue on the server, 0 if never queued
	timer   *time.Timer
}

// Check returns err, an error about the lock's name, or else an error if ctx has ended.
func Check(ctx context.Context, err error) error {
	if err == nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", engine.ErrNotSent, engine.EndOf(ctx))
	}
	return err
}

// Ask runs a call about a lock. It repeats a call that did not run, for one command timeout or until ctx ends. guards
// means that the call publishes.
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

// Within returns ctx with a wait limit.
func (a *Acquisition) Within(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	if wait < Overdue {
		a.Unbounded = ctx // the first attempt may outlast a short limit
	}
	return context.WithTimeoutCause(ctx, wait, engine.ErrWaitOver)
}

// Run acquires the lock. If it returns nil, the last claim is the hold.
func (a *Acquisition) Run(ctx context.Context, s Strategy) error {
	a.waiter = s.Waiter(a)
	defer a.leave() // if the observer ends the goroutine
	err := a.enter(ctx)
	if err != nil {
		a.leave()
	} else if a.granted(); a.Engine.Replicas > 0 {
		if err = a.claim.Replicated(ctx); err != nil {
			a.claim.Drop()
		}
	}
	if err != nil {
		err = a.Engine.ExplainKey(ctx, a.Kind.Name(), a.Kind.Key(), err)
	}
	if a.hint != nil && errors.Is(err, engine.ErrNotAcquired) {
		return fmt.Errorf("%w: %w", err, a.hint)
	}
	return err
}

func (a *Acquisition) granted() {
	w := a.waiter
	a.waiter = nil
	a.stopTimer()
	w.Granted(a)
}

// leave ends a wait that was not granted and has not been left.
func (a *Acquisition) leave() {
	w := a.waiter
	if w == nil {
		return
	}
	a.waiter = nil
	a.stopTimer()
	w.Leave(a)
	if a.claim != nil {
		a.claim.Drop()
	}
}

func (a *Acquisition) enter(ctx context.Context) error {
	defer a.endWait()
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
	if err := a.BeginWait(ctx); err != nil {
		return err
	}
	return a.wait(ctx)
}

// BeginWait counts the caller once as a waiter, or fails if there are too many.
func (a *Acquisition) BeginWait(ctx context.Context) error {
	if a.counted {
		return nil
	}
	a.waiting = engine.Waiting{Name: a.Lock, Kind: a.Kind.Name()}
	if err := a.Engine.BeginWait(&a.waiting); err != nil {
		return fmt.Errorf("%w: %w", engine.ErrNotAcquired, err)
	}
	a.counted = true
	a.Engine.Nest(ctx, &a.waiting, a.Kind.Key())
	a.observeQueued()
	return nil
}

func (a *Acquisition) endWait() {
	if a.counted {
		a.Engine.EndWait(&a.waiting)
	}
}

// Claim returns the claim for the next attempt.
func (a *Acquisition) Claim() Claim {
	if a.claim == nil {
		a.claim = a.Claims.Claim(nil)
	}
	return a.claim
}

// Renew makes a claim for a new owner, or for the owner of s if s is not nil.
func (a *Acquisition) Renew(s Reusable) { a.claim = a.Claims.Claim(s) }

// InDoubt returns the last attempt's claim if its outcome is unknown.
func (a *Acquisition) InDoubt() Claim { return a.inDoubt }

// open makes the first attempt. It retries for one command timeout from the start of the call.
func (a *Acquisition) open(ctx context.Context) (bool, error) {
	var granted bool
	began := a.Began
	if a.Answered {
		began = time.Now()
	}
	first := ctx
	if a.Unbounded != nil && !a.Answered {
		// A short wait limit doesn't end the attempt, because the caller could not tell whether the lock is held.
		var cancel context.CancelFunc
		first, cancel = context.WithTimeoutCause(a.Unbounded, Overdue-time.Since(a.Began), engine.ErrWaitOver)
		defer cancel()
	}
	var before error
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
		return false, a.GaveUp(ctx)
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

// Attempt makes one attempt. It returns false without an error if the lock is held.
func (a *Acquisition) Attempt(ctx context.Context) (bool, error) {
	a.inDoubt = nil
	a.Attempts++
	claim, transfer, at := a.Claim(), a.Transfer, a.Engine.Attempt()
	a.Transfer = nil
	claim.Asks(true)
	defer claim.Asks(false)
	sent := time.Now() // before Acquire, which may read the clock
	guarded := false
	if transfer != nil {
		kind, _ := a.Kind.(Transferable)
		kind.Transfer(&at.Call, claim.Request(), transfer.owner)
		at.Call.Urgent = true // sent before waiting attempts, because it ends a hold
	} else {
		a.Kind.Acquire(&at.Call, claim.Request())
		if !a.Engine.MayPublish(a.Kind.Name()) {
			guarded = a.Engine.GuardPublish(&at.Call, a.Kind.Channel(claim.Request().Owner))
		}
	}
	reply, err := at.Run(ctx, claim)
	if errors.Is(err, engine.ErrUncertain) {
		reply, err = claim.Settle(ctx, err)
	}
	if guarded {
		err = a.Engine.Guarded(a.Kind.Name(), a.Kind.Channel(nil), err)
	}
	granted, again, err := a.answered(claim, transfer, sent, reply, err)
	if again {
		return a.Attempt(ctx)
	}
	if !granted {
		if err == nil {
			err = a.foreign(ctx)
		}
		a.observeAttempt(sent, err)
	}
	return granted, err
}

// answered handles the reply. If again is true, the holder did not have the lock that it wanted to transfer.
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
		if errors.Is(err, transport.ErrBadReply) { // the lock may have been granted
			claim.Disown()
		}
		return false, false, err
	}
	if a.Available = out.Available; !out.Granted {
		a.Holder, a.TTL, a.Away = out.Holder, a.waiter.Refused(a, out), nil
		if out.Position != 0 && !a.Try {
			if a.place = out.Position; a.counted {
				a.observeQueued()
			}
		}
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

// unanswered handles a failed attempt. If the outcome is unknown, the owner is not used again.
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
		// The owner may have the lock or a place in a queue.
		a.claim.Disown()
		a.waiter.Abandon()
		a.claim.Drop()
		a.Renew(nil)
	}
}

// foreign returns an error if the key that refused an attempt definitely belongs to another program, which will never
// free it. It checks this once per acquisition.
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
