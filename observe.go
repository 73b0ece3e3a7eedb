package redlatch

import (
	"context"

	"github.com/redlatch/redlatch/internal/engine"
)

// Observer is a set of hooks that a client calls when something happens to its locks and
// semaphores, for metrics and traces. Hooks may be nil. Latches are not reported.
//
// In all events, Name is the lock's name as the caller passed it, Kind is its kind, such as "plain"
// or "fair", and Op is "lock", "try-lock", "resume", "acquire" or "try-acquire". A multi-lock is
// reported as its member locks.
//
// Hooks run concurrently, on the goroutine on which the event occurs. A slow hook delays Lock, Do,
// Unlock and renewals; holds are lost if it takes a third of a lease. A hook must not block, end its
// goroutine or call methods of the client, its locks or its holds, except [Client.Stats] and
// [Client.StatsBy]. A panic in a hook is recovered and logged.
//
// The events of a call are ordered, as are the events of a hold: Ended follows Acquired even if the
// hold was lost before Lock returned. A returned context must be ctx or derived from it; nil means
// ctx. Only its values are used, except that the function passed to Do gets the context that
// DoStarted returned.
//
//	function                   gets the context           and returns it for
//	Started                    of the caller              the events of this call
//	Attempted, Queued, Woken,  that Started returned
//	NotAcquired
//	Acquired                   that Started returned      Ended and Released of this hold
//	Ended, Released            that Acquired returned;
//	                           it never ends
//	DoStarted                  of the hold                the function of Do, and DoEnded
//	DoEnded                    that DoStarted returned
type Observer struct {
	// Opened is called when the client has been created. The observer may keep c for Stats.
	Opened func(c *Client)
	// Closed is called when the client is closed and Ended has been called for all its holds. Calls
	// that return later still cause Released, DoEnded, and NotAcquired with [ErrClosed].
	Closed func(c *Client)

	Started     func(ctx context.Context, e Started) context.Context
	Attempted   func(ctx context.Context, e Attempted)
	Queued      func(ctx context.Context, e Queued)
	Woken       func(ctx context.Context, e Woken)
	Acquired    func(ctx context.Context, e Acquired) context.Context
	NotAcquired func(ctx context.Context, e NotAcquired)

	DoStarted func(ctx context.Context, e DoStarted) context.Context
	DoEnded   func(ctx context.Context, e DoEnded)
	Ended     func(ctx context.Context, e Ended)
	Released  func(ctx context.Context, e Released)

	Renewed     func(e Renewed)
	Evicted     func(e Evicted)
	Reconnected func(e Reconnected)
}

// WithObserver adds observers for the client's locks. Each event goes to all observers in order;
// later ones see the context values that earlier ones add.
func WithObserver(o ...Observer) Option {
	return func(s *settings) {
		for i := range o {
			s.observer = s.observer.and(&o[i])
		}
	}
}

func (o Observer) and(next *Observer) Observer {
	return Observer{
		Opened:      then(o.Opened, next.Opened),
		Closed:      then(o.Closed, next.Closed),
		Started:     thenIn(o.Started, next.Started),
		Attempted:   thenWith(o.Attempted, next.Attempted),
		Queued:      thenWith(o.Queued, next.Queued),
		Woken:       thenWith(o.Woken, next.Woken),
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

func (c *Client) hooks(set *settings) engine.Hooks {
	o := set.observer.whole()
	h := engine.Hooks{
		Started: returning(set, "Started", o.Started, func(e engine.Event) Started {
			return Started{Op: e.Op, Name: e.Name, Kind: e.Kind, Locks: e.Number}
		}),
		Attempted: within(set, "Attempted", o.Attempted, func(e engine.Event) Attempted {
			return Attempted{Name: e.Name, Kind: e.Kind, Attempt: e.Number, Took: e.Took, Holder: e.Holder, TTL: e.TTL, Err: e.Err}
		}),
		Queued: within(set, "Queued", o.Queued, func(e engine.Event) Queued {
			return Queued{Name: e.Name, Kind: e.Kind, Position: e.Number}
		}),
		Woken: within(set, "Woken", o.Woken, func(e engine.Event) Woken {
			return Woken{Name: e.Name, Kind: e.Kind, By: e.By}
		}),
		Acquired: returning(set, "Acquired", o.Acquired, func(e engine.Event) Acquired {
			return Acquired{
				Op: e.Op, Name: e.Name, Kind: e.Kind, Owner: e.Owner, Wait: e.Took, Attempts: e.Number,
				Reentry: e.Reentry, Transferred: e.Transferred, NoHold: e.NoHold,
			}
		}),
		NotAcquired: within(set, "NotAcquired", o.NotAcquired, func(e engine.Event) NotAcquired {
			return NotAcquired{
				Op: e.Op, Name: e.Name, Kind: e.Kind, Wait: e.Took, Attempts: e.Number,
				Outcome: outcome(e.Err, e.Number), Err: e.Err,
			}
		}),
		Ended: within(set, "Ended", o.Ended, func(e engine.Event) Ended {
			return Ended{
				Name: e.Name, Kind: e.Kind, Owner: e.Owner, Held: e.Took,
				End: endOf(e.Err), LossReason: lossReason(e.Err), Err: e.Err,
			}
		}),
		Released: within(set, "Released", o.Released, released),
		DoStarted: returning(set, "DoStarted", o.DoStarted, func(e engine.Event) DoStarted {
			return DoStarted{Name: e.Name, Kind: e.Kind, Owner: e.Owner}
		}),
		DoEnded: within(set, "DoEnded", o.DoEnded, func(e engine.Event) DoEnded {
			return DoEnded{Name: e.Name, Kind: e.Kind, Owner: e.Owner, Took: e.Took, Err: e.Err, Panicked: e.Panicked}
		}),
		Renewed: alone(set, "Renewed", o.Renewed, func(e engine.Renewed) Renewed { return Renewed(e) }),
		Evicted: alone(set, "Evicted", o.Evicted, func(e engine.Evicted) Evicted { return Evicted(e) }),
	}
	if o.Closed != nil {
		h.Closed = func() { set.tellOf(c, "Closed", o.Closed) }
	}
	return h
}

func released(e engine.Event) Released {
	r := Released{Name: e.Name, Kind: e.Kind, Owner: e.Owner, Took: e.Took}
	if e.Err != nil {
		r.Err = &LockError{Op: "unlock", Name: e.Name, Owner: e.Owner, Err: e.Err}
	}
	return r
}

func (o Observer) whole() Observer {
	if o.Acquired == nil && (o.Ended != nil || o.Released != nil || o.NotAcquired != nil) {
		o.Acquired = same[Acquired]
	}
	if o.Started == nil && (o.Acquired != nil || o.Attempted != nil || o.Queued != nil || o.Woken != nil) {
		o.Started = same[Started]
	}
	if o.DoStarted == nil && o.DoEnded != nil {
		o.DoStarted = same[DoStarted]
	}
	return o
}

func same[E any](ctx context.Context, _ E) context.Context { return ctx }

// returning returns nil if tell is nil.
func returning[P any](
	set *settings, event string, tell func(context.Context, P) context.Context, public func(engine.Event) P,
) func(context.Context, engine.Event) context.Context {
	if tell == nil {
		return nil
	}
	return func(ctx context.Context, e engine.Event) (next context.Context) {
		if ctx == nil {
			ctx = context.Background()
		}
		defer func() {
			if next == nil { // also runs after a panic
				next = ctx
			}
		}()
		defer set.recovered(event)
		return tell(ctx, public(e))
	}
}

func within[P any](
	set *settings, event string, tell func(context.Context, P), public func(engine.Event) P,
) func(context.Context, engine.Event) {
	if tell == nil {
		return nil
	}
	return func(ctx context.Context, e engine.Event) {
		if ctx == nil {
			ctx = context.Background()
		}
		defer set.recovered(event)
		tell(ctx, public(e))
	}
}

func alone[P, E any](set *settings, event string, tell func(P), public func(E) P) func(E) {
	if tell == nil {
		return nil
	}
	return func(e E) {
		defer set.recovered(event)
		tell(public(e))
	}
}

// recovered must be deferred.
func (set *settings) recovered(event string) {
	if p := recover(); p != nil {
		set.Logger.Error("redlatch: observer panicked", "panic", p, "event", event)
	}
}

func (set *settings) tellOf(c *Client, event string, tell func(*Client)) {
	if tell != nil {
		defer set.recovered(event)
		tell(c)
	}
}
