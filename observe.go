package redlatch

import (
	"context"

	"github.com/redlatch/redlatch/internal/engine"
)

// Observer has the functions that a client calls when something happens to its locks: one for each
// kind of event. Any of them may be nil, and those cost nothing. Metrics and traces are built on it.
//
// It covers all kinds of locks, semaphores included. A multi-lock is reported as the locks that it is
// made of; those that it takes with one script have one Started, in the name of the first, and an
// Acquired each. Latches are not reported.
//
// A function is called on the goroutine on which the event happened: a caller's, so that Lock, Do or
// Unlock wait for it, or one of the client's own, so that the renewal of all leases waits for it. One
// that takes 10 ms makes each lock 10 ms slower, and one that takes a third of a lease costs holds: it
// must not block, not on the network, not on a channel that may be full. It must not call the client,
// its locks or holds, not even Close; start a goroutine for that. [Client.Stats] and [Client.StatsBy]
// are the only methods that it may call. Several calls may run at once. A panic in a function is
// caught and logged.
//
// The events of one call come one after the other; those of one hold, too, and its Ended comes after
// its Acquired, even when the hold was lost before Lock returned.
//
// Of a context that a function gets, only the values count, and so of one that it returns: the client
// never waits for that, and the call goes on with its caller's. But the function of Do gets the one
// that DoStarted returned as it is. What is returned must be ctx or made from ctx; nil stands for ctx.
//
//	function                   gets the context           and returns that for
//	Started                    of the caller              the events of this call
//	Attempted, Queued, Woken,  that Started returned
//	Gap, NotAcquired
//	Acquired                   that Started returned      Ended and Released of this hold
//	Ended, Released            that Acquired returned;
//	                           it never ends
//	DoStarted                  of the hold                the function of Do, and DoEnded
//	DoEnded                    that DoStarted returned
type Observer struct {
	// Opened is called when the client was made, by whichever function. The observer may keep it, and
	// ask for its Stats at any time.
	Opened func(c *Client)
	// Closed is called when the client was closed: all its holds have Ended. What follows is of calls
	// that the program makes, or that return, later: Released, DoEnded, and Started with NotAcquired,
	// which has [ErrClosed].
	Closed func(c *Client)

	// Started is called when a call has begun that ends with Acquired or NotAcquired.
	Started func(ctx context.Context, e Started) context.Context
	// Attempted is called for each attempt that did not get the lock.
	Attempted func(ctx context.Context, e Attempted)
	// Queued is called when a call begins to wait.
	Queued func(ctx context.Context, e Queued)
	// Woken is called each time that a call which waits is woken.
	Woken func(ctx context.Context, e Woken)
	// Gap is called when messages for a waiter may have been missed.
	Gap func(ctx context.Context, e Gap)
	// Acquired is called when a call returns a hold.
	Acquired func(ctx context.Context, e Acquired) context.Context
	// NotAcquired is called when a call returns an error.
	NotAcquired func(ctx context.Context, e NotAcquired)

	// DoStarted is called before the function of Do.
	DoStarted func(ctx context.Context, e DoStarted) context.Context
	// DoEnded is called after the function of Do.
	DoEnded func(ctx context.Context, e DoEnded)
	// Ended is called when a hold is over.
	Ended func(ctx context.Context, e Ended)
	// Released is called when the first Unlock of a hold returns.
	Released func(ctx context.Context, e Released)

	// Renewed is called after each renewal script.
	Renewed func(e Renewed)
	// Evicted is called when this client took a dead waiter out of a queue.
	Evicted func(e Evicted)
	// Reconnected is called when a connection was made in place of one that was lost.
	Reconnected func(e Reconnected)
}

// WithObserver sets the observer of what happens to the client's locks.
// Default: none, which costs nothing. Redisson has no counterpart for locks.
func WithObserver(o Observer) Option { return func(s *settings) { s.observer = o } }

// Observers returns an observer that calls the functions of all of those given, in their order. The
// values that one of them adds to a context are seen by those after it, and by the function of Do. A
// panic in one keeps the event from those after it, and the contexts that those before it returned for
// this event are lost.
func Observers(all ...Observer) Observer {
	var joint Observer
	for i := range all {
		joint = joint.and(&all[i])
	}
	return joint
}

// and returns an observer that calls the functions of o, then those of next.
func (o Observer) and(next *Observer) Observer {
	return Observer{
		Opened:      then(o.Opened, next.Opened),
		Closed:      then(o.Closed, next.Closed),
		Started:     thenIn(o.Started, next.Started),
		Attempted:   thenWith(o.Attempted, next.Attempted),
		Queued:      thenWith(o.Queued, next.Queued),
		Woken:       thenWith(o.Woken, next.Woken),
		Gap:         thenWith(o.Gap, next.Gap),
		Acquired:    thenIn(o.Acquired, next.Acquired),
		NotAcquired: thenWith(o.NotAcquired, next.NotAcquired),
		DoStarted:   thenIn(o.DoStarted, next.DoStarted),
		DoEnded:     thenWith(o.DoEnded, next.DoEnded),
		Ended:       thenWith(o.Ended, next.Ended),
		Released:    thenWith(o.Released, next.Released),
		Renewed:     then(o.Renewed, next.Renewed),
		Evicted:     then(o.Evicted, next.Evicted),
		Reconnected: then(o.Reconnected, next.Reconnected),
	}
}

// then returns a function that calls both, of which either may be nil.
func then[E any](first, second func(E)) func(E) {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(e E) {
		first(e)
		second(e)
	}
}

// thenWith is then for functions that get a context.
func thenWith[E any](first, second func(context.Context, E)) func(context.Context, E) {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(ctx context.Context, e E) {
		first(ctx, e)
		second(ctx, e)
	}
}

// thenIn is then for functions that return a context.
func thenIn[E any](first, second func(context.Context, E) context.Context) func(context.Context, E) context.Context {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(ctx context.Context, e E) context.Context {
		for _, tell := range [...]func(context.Context, E) context.Context{first, second} {
			if next := tell(ctx, e); next != nil {
				ctx = next
			}
		}
		return ctx
	}
}

// hooks makes the hooks of the parts below out of the observer. What it does not observe has none.
func (c *Client) hooks(set *settings) engine.Hooks {
	o := set.observer.whole()
	h := engine.Hooks{
		Started:     returning(set, "Started", o.Started, func(e engine.Started) Started { return Started(e) }),
		Attempted:   within(set, "Attempted", o.Attempted, func(e engine.Attempted) Attempted { return Attempted(e) }),
		Queued:      within(set, "Queued", o.Queued, func(e engine.Queued) Queued { return Queued(e) }),
		Woken:       within(set, "Woken", o.Woken, func(e engine.Woken) Woken { return Woken(e) }),
		Acquired:    returning(set, "Acquired", o.Acquired, func(e engine.Acquired) Acquired { return Acquired(e) }),
		NotAcquired: within(set, "NotAcquired", o.NotAcquired, func(e engine.NotAcquired) NotAcquired { return NotAcquired(e) }),
		Ended:       within(set, "Ended", o.Ended, func(e engine.Ended) Ended { return Ended(e) }),
		Released:    within(set, "Released", o.Released, released),
		DoStarted:   returning(set, "DoStarted", o.DoStarted, func(e engine.DoStarted) DoStarted { return DoStarted(e) }),
		DoEnded:     within(set, "DoEnded", o.DoEnded, func(e engine.DoEnded) DoEnded { return DoEnded(e) }),
		Gap:         within(set, "Gap", o.Gap, func(e engine.Gap) Gap { return Gap(e) }),
		Renewed:     alone(set, "Renewed", o.Renewed, func(e engine.Renewed) Renewed { return Renewed(e) }),
		Evicted:     alone(set, "Evicted", o.Evicted, func(e engine.Evicted) Evicted { return Evicted(e) }),
	}
	if o.Closed != nil {
		h.Closed = func() { set.tellOf(c, "Closed", o.Closed) }
	}
	return h
}

// released adds to what a release returned of which hold it was.
func released(e engine.Released) Released {
	if e.Err != nil {
		e.Err = &LockError{Op: "unlock", Name: e.Name, Owner: e.Owner, Err: e.Err}
	}
	return Released(e)
}

// whole returns the observer with the functions that pass contexts on to others that it has.
func (o Observer) whole() Observer {
	if o.Acquired == nil && (o.Ended != nil || o.Released != nil || o.NotAcquired != nil) {
		o.Acquired = same[Acquired]
	}
	if o.Started == nil && (o.Acquired != nil || o.Attempted != nil || o.Queued != nil || o.Woken != nil || o.Gap != nil) {
		o.Started = same[Started]
	}
	if o.DoStarted == nil && o.DoEnded != nil {
		o.DoStarted = same[DoStarted]
	}
	return o
}

func same[E any](ctx context.Context, _ E) context.Context { return ctx }

// returning makes a hook that returns a context out of a function of the observer, nil out of nil.
func returning[P, E any](
	set *settings, event string, tell func(context.Context, P) context.Context, public func(E) P,
) func(context.Context, E) context.Context {
	if tell == nil {
		return nil
	}
	return func(ctx context.Context, e E) (next context.Context) {
		if ctx == nil {
			ctx = context.Background()
		}
		defer func() {
			if next == nil { // also after a panic
				next = ctx
			}
		}()
		defer set.recovered(event)
		return tell(ctx, public(e))
	}
}

// within makes a hook that gets a context, as returning does.
func within[P, E any](set *settings, event string, tell func(context.Context, P), public func(E) P) func(context.Context, E) {
	if tell == nil {
		return nil
	}
	return func(ctx context.Context, e E) {
		if ctx == nil {
			ctx = context.Background()
		}
		defer set.recovered(event)
		tell(ctx, public(e))
	}
}

// alone makes a hook of what belongs to no call, as returning does.
func alone[P, E any](set *settings, event string, tell func(P), public func(E) P) func(E) {
	if tell == nil {
		return nil
	}
	return func(e E) {
		defer set.recovered(event)
		tell(public(e))
	}
}

// recovered logs a panic of the observer. It must be deferred.
func (set *settings) recovered(event string) {
	if p := recover(); p != nil {
		set.logger.Error("redlatch: the observer panicked", "panic", p, "event", event)
	}
}

// tellOf tells the observer of the begin or the end of a client.
func (set *settings) tellOf(c *Client, event string, tell func(*Client)) {
	if tell != nil {
		defer set.recovered(event)
		tell(c)
	}
}

// reconnected returns what tells the observer of connections made in place of lost ones, nil
// without an observer.
func (set *settings) reconnected() func(connection string) {
	return alone(set, "Reconnected", set.observer.Reconnected, func(c string) Reconnected { return Reconnected{Connection: c} })
}
