package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// Resolver takes care of a call whose Run returned an error that wraps ErrUncertain: one of
// its methods is called, once. It runs on any goroutine and must not block.
type Resolver interface {
	// Late gets the outcome that the call had in the end: a reply, or an error, such as one
	// that wraps ErrNotSent, which says that nothing was run.
	Late(reply any, err error)
	// InDoubt returns what resolves a call that may have run, and may run yet. Nil: nothing.
	InDoubt() *InDoubt
}

// Follower acts as soon as a call was started. It is an interface since a function that is
// bound to a value costs an allocation.
type Follower interface {
	// Started runs once, on the goroutine that started the call.
	Started()
}

// Attempt is one call and the wait for its reply. Get one from
// [Engine.Attempt], fill Call, and run it once.
type Attempt struct {
	// Call is what Run sends.
	Call transport.Call
	// Sent, if not nil, is notified as soon as the call was started, before its reply
	// is waited for: calls started then go to the server after this one.
	Sent Follower

	engine   *Engine
	resolver Resolver
	state    atomic.Uint32
	result   chan outcome   // room for the outcome and an alarm
	done     transport.Done // bound once: a method value costs an allocation
	closes   bool           // it ends when the client closes
	leads    atomic.Bool    // the runner is in Lead, which an alarm has to interrupt

	// Of the engine's timeouts.
	prev, next *Attempt
	due        time.Duration
	listed     bool
	alarmed    bool // an alarm was sent that was not received yet; while not listed, the runner's
}

// outcome is what the transport says of a call, or an alarm: its time is over, or the
// client closes.
type outcome struct {
	reply any
	err   error
	alarm bool
}

// errNotYet says that a call was not sent in its time. It says nothing of why.
var errNotYet = errors.New("not sent")

const (
	attemptAwaited uint32 = iota
	attemptAnswered
	attemptLeft
)

// Attempt returns an attempt with an empty call.
func (e *Engine) Attempt() *Attempt {
	if a, ok := e.attempts.Get().(*Attempt); ok {
		return a
	}
	a := &Attempt{engine: e, result: make(chan outcome, 2)}
	a.done = a.complete
	return a
}

// free gives the attempt back.
func (a *Attempt) free() {
	a.Call.Reset()
	a.resolver, a.Sent, a.closes = nil, nil, false
	a.state.Store(attemptAwaited)
	a.engine.attempts.Put(a)
}

// Run starts the call and waits for its outcome, at most one command timeout,
// less when ctx ends or the client closes. The error wraps ErrNotSent when the
// call certainly did not run, ErrUncertain when it may have; together with the
// context's error, or ErrClosed, when these ended the wait. With ErrUncertain
// the resolver, if any, takes care of what becomes of the call. The attempt must not
// be used after Run.
func (a *Attempt) Run(ctx context.Context, r Resolver) (any, error) {
	a.resolver = r
	a.closes = true
	return a.run(ctx, a.engine.Command, nil)
}

// RunFor is Run for calls that may be repeated and that go on while the client
// closes: bound is all that ends the wait.
func (a *Attempt) RunFor(bound time.Duration, r Resolver) (any, error) {
	a.resolver = r
	return a.run(context.Background(), bound, nil)
}

// run has the first half of bound for the sending, and all of it for the reply: among
// many calls, what would be sent at the last moment would be answered too late, and be in
// doubt. It ends with stop, too.
func (a *Attempt) run(ctx context.Context, bound time.Duration, stop <-chan struct{}) (any, error) {
	rest := bound / 2
	a.engine.timeouts.add(a, bound-rest)
	a.start(ctx, stop)
	for {
		out, why := a.await(ctx, stop)
		switch {
		case why != nil:
		case !out.alarm:
			return a.finish(out)
		case a.closes && a.engine.IsClosing():
			why = ErrClosed
		case a.Call.Withdraw():
			why = fmt.Errorf("%w within %v", errNotYet, (bound - bound/2).Round(time.Millisecond))
		case rest > 0:
			a.engine.timeouts.add(a, rest)
			rest = 0
			continue
		default:
			why = fmt.Errorf("no reply within %v", bound.Round(time.Millisecond))
		}
		return a.leave(why)
	}
}

// start starts the call, on this goroutine if the transport can and nothing but ctx and an
// alarm ends the wait.
func (a *Attempt) start(ctx context.Context, stop <-chan struct{}) {
	if l := a.engine.leader; l != nil && stop == nil {
		a.leads.Store(true)
		l.Lead(ctx, &a.Call, a.done, a)
		a.leads.Store(false)
		return
	}
	a.engine.Transport.Start(&a.Call, a.done)
	a.Started()
}

// Started is part of transport.Caller.
func (a *Attempt) Started() {
	if a.Sent != nil {
		a.Sent.Started()
	}
}

// Waits is part of transport.Caller: there is neither an outcome nor an alarm.
func (a *Attempt) Waits() bool { return len(a.result) == 0 }

// await returns what comes first: the outcome, an alarm, or the end of ctx or stop.
func (a *Attempt) await(ctx context.Context, stop <-chan struct{}) (out outcome, ended error) {
	select {
	case out = <-a.result:
		if out.alarm {
			a.alarmed = false // this was the one
		}
		return out, nil
	case <-ctx.Done():
		return out, EndOf(ctx)
	case <-stop:
		return out, ErrClosed
	}
}

// rest ends the attempt's timeout. An alarm that has come too late is received, with the
// outcome if that has come before.
func (a *Attempt) rest() (out outcome, came bool) {
	if !a.engine.timeouts.remove(a) {
		return out, false
	}
	for a.alarmed {
		next := <-a.result
		if next.alarm {
			a.alarmed = false
		} else {
			out, came = next, true
		}
	}
	return out, came
}

// finish ends an attempt whose outcome was waited for.
func (a *Attempt) finish(out outcome) (any, error) {
	a.rest()
	if isUncertain(out.err) {
		a.resolve()
	} else {
		a.free()
	}
	return out.reply, out.err
}

// leave ends the wait for an attempt that has no outcome yet. The order matters:
// once the state says left, complete may free the attempt at any moment.
func (a *Attempt) leave(why error) (any, error) {
	out, came := a.rest()
	withdrawn := a.Call.Abandon()
	a.engine.open.add(1)
	if !a.state.CompareAndSwap(attemptAwaited, attemptLeft) {
		a.engine.open.add(-1)
		if !came {
			out = <-a.result
		}
		reply, err := a.finish(out)
		if err != nil {
			err = fmt.Errorf("%w: %w", err, why)
		}
		return reply, err
	}
	if withdrawn {
		return nil, fmt.Errorf("%w: %w", ErrNotSent, why)
	}
	return nil, fmt.Errorf("%w: %w", ErrUncertain, why)
}

// complete is the call's done. It runs once for every attempt.
func (a *Attempt) complete(reply any, err error) {
	if a.state.CompareAndSwap(attemptAwaited, attemptAnswered) {
		a.result <- outcome{reply: reply, err: err}
		return
	}
	e := a.engine
	switch r := a.resolver; {
	case r == nil || !a.Call.Abandoned(): // or withdrawn, as Run has said
		a.free()
	case isUncertain(err):
		a.resolve()
	default:
		a.free()
		r.Late(reply, err)
	}
	e.open.add(-1)
}

// resolve ends an attempt whose call may have run.
func (a *Attempt) resolve() {
	if r := a.resolver; r != nil {
		if d := r.InDoubt(); d != nil {
			d.attempt = a
			a.engine.Resolve(d)
			return
		}
	}
	a.free()
}
