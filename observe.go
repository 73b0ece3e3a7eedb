package redlatch

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/engine"
)

// Observer receives an event for each thing that happens to a client's locks. Metrics
// and traces are built on it; see [WithObserver].
//
// Observe is called on the goroutine on which the event happened, a caller's or
// one of the client's own, and several calls may run at once. It must return soon
// and must not call the client, its locks or holds, not even Close, because the
// client's work waits for it meanwhile: renewals, for one. Start a goroutine for
// that. A panic in it is caught and logged. Kinds of events are added from time to
// time, so a type switch needs no default.
type Observer interface {
	// Observe receives one event.
	Observe(event Event)
}

// Event is one of [Acquired], [NotAcquired], [Ended], [Released], [Renewed],
// [Gap], [Evicted] and [Reconnected], and for a [ContextObserver] also one of
// [Opened], [Closed], [Started], [Attempted], [Queued], [Woken], [DoStarted] and
// [DoEnded].
type Event interface{ event() }

// WithObserver sets the observer of what happens to the client's locks.
// Default: none, which costs nothing. Redisson has no counterpart for locks.
func WithObserver(o Observer) Option { return func(s *settings) { s.observer = o } }

// Acquired says that Lock, TryLock or Resume returned a hold.
type Acquired struct {
	// Op is "lock", "trylock" or "resume".
	Op string
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is the lock's kind, such as "plain" or "fair".
	Kind string
	// Owner is the hold's. That of a fair lock may come again, with a later hold.
	Owner Owner
	// Wait is how long the call took.
	Wait time.Duration
	// Attempts is how often Redis was asked for the lock, 0 for re-entries and
	// resumptions.
	Attempts int
	// Reentry is true when a proof was used: the lock was held already.
	Reentry bool
	// Transferred is true when the lock came from another hold of this client, which
	// passed its turn on when it was given up.
	Transferred bool
	// NoHold is true for a plain semaphore, whose permits are no hold: no Ended follows.
	NoHold bool
}

// NotAcquired says that Lock, TryLock or Resume returned an error.
type NotAcquired struct {
	// Op is "lock", "trylock" or "resume".
	Op string
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is the lock's kind, such as "plain" or "fair".
	Kind string
	// Wait is how long the call took.
	Wait time.Duration
	// Attempts is how often Redis was asked for the lock.
	Attempts int
	// Err is what the call returned.
	Err error
}

// Ended says that a hold is over. Those left when the client is closed end with
// ErrClosed.
type Ended struct {
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is the lock's kind, such as "plain" or "fair".
	Kind string
	// Owner is the hold's.
	Owner Owner
	// Held is how long it was held, from the moment its acquisition was sent.
	Held time.Duration
	// Err is why it ended: nil when it was given up by Unlock or LetExpire, else
	// ErrLost, ErrMaxHold, ErrHandedOver or ErrClosed. Of a loss it is a [Loss], which
	// tells the reason.
	Err error
}

// Released says that Unlock returned for the first time. It follows the hold's
// [Ended].
type Released struct {
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is the lock's kind, such as "plain" or "fair".
	Kind string
	// Owner is the hold's.
	Owner Owner
	// Took is how long Unlock took.
	Took time.Duration
	// Err is what Unlock returned.
	Err error
}

// Renewed says how one renewal script went, which covers up to 100 holds.
type Renewed struct {
	// Holds is how many it was for.
	Holds int
	// Lost is how many of them the server no longer had; 0 with an error.
	Lost int
	// Took is the time until the reply.
	Took time.Duration
	// Slack is how much time was left, when the reply came, before the first of the holds that
	// it confirmed would have been lost; 0 when it confirmed none. Of a lease that is renewed
	// in time it is about two thirds of the lease, less the loss margin.
	Slack time.Duration
	// Err is why there was no reply. It is tried again within the leases.
	Err error
}

// Gap says that messages for a waiter may have been missed, because its
// subscription was lost and has been made anew. The waiter asks Redis at once.
type Gap struct {
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is the lock's kind, such as "plain" or "fair".
	Kind string
}

// Evicted says that this client took a dead waiter out of the queue of a fair lock:
// its channel had no subscriber for longer than a live waiter needs to reconnect.
// See [WithDeadWaiterGrace].
type Evicted struct {
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is the lock's kind: "fair".
	Kind string
	// Owner is the waiter's owner as it stands in Redis; see ParseOwner.
	Owner string
	// Absent is for how long no subscriber was known.
	Absent time.Duration
	// IsRedlatch is true for a waiter of this library, false for one of Redisson's.
	IsRedlatch bool
	// WasSubscribed is true when the waiter had been subscribed before.
	WasSubscribed bool
}

// Reconnected says that a connection was made in place of one that was lost. Only
// the built-in transport tells.
type Reconnected struct {
	// Connection is "commands" or "subscriptions".
	Connection string
}

func (Acquired) event()    {}
func (NotAcquired) event() {}
func (Ended) event()       {}
func (Released) event()    {}
func (Renewed) event()     {}
func (Gap) event()         {}
func (Evicted) event()     {}
func (Reconnected) event() {}

// hooks makes the hooks of the parts below out of an observer. Without one there
// are none.
func (c *Client) hooks(set *settings) engine.Hooks {
	if set.observer == nil {
		return engine.Hooks{}
	}
	tell := set.tell
	h := engine.Hooks{
		Renewed: func(e engine.Renewed) { tell(Renewed(e)) },
		Evicted: func(e engine.Evicted) { tell(Evicted(e)) },
	}
	if in, can := set.observer.(ContextObserver); can {
		c.inContext(&h, set, in)
		return h
	}
	h.Acquired = func(_ context.Context, e engine.Acquired) context.Context { tell(Acquired(e)); return nil }
	h.NotAcquired = func(_ context.Context, e engine.NotAcquired) { tell(NotAcquired(e)) }
	h.Ended = func(_ context.Context, e engine.Ended) { tell(Ended(e)) }
	h.Released = func(_ context.Context, e engine.Released) { tell(released(e)) }
	h.Gap = func(_ context.Context, e engine.Gap) { tell(Gap(e)) }
	return h
}

// released adds to what a release returned of which hold it was.
func released(e engine.Released) Released {
	if e.Err != nil {
		e.Err = &LockError{Op: "unlock", Name: e.Name, Owner: e.Owner, Err: e.Err}
	}
	return Released(e)
}

// tell passes an event on to the observer. A panic is logged.
func (set *settings) tell(event Event) {
	defer set.recovered(event)
	set.observer.Observe(event)
}

// recovered logs a panic of the observer. It must be deferred.
func (set *settings) recovered(event Event) {
	if p := recover(); p != nil {
		set.logger.Error("redlatch: the observer panicked", "panic", p, "event", fmt.Sprintf("%T", event))
	}
}

// reconnected returns what tells the observer of connections made in place of lost ones, nil
// without an observer.
func (set *settings) reconnected() func(connection string) {
	if set.observer == nil {
		return nil
	}
	return func(connection string) { set.tell(Reconnected{Connection: connection}) }
}

// Observers returns an observer that passes each event on to all of those given, in their order, those
// that have no use for contexts last.
// The values that a [ContextObserver] among them adds to a context are seen by those after it,
// and by the function of Do. Nil ones are left out. A panic in one keeps the event from those
// after it.
func Observers(all ...Observer) Observer {
	m := &many{}
	for _, o := range all {
		if o == nil {
			continue
		}
		m.all = append(m.all, o)
		if in, can := o.(ContextObserver); can {
			m.in = append(m.in, in)
		} else {
			m.plain = append(m.plain, o)
		}
	}
	if len(m.in) == 0 {
		return m.all
	}
	return m
}

// plainMany are observers of which none has a use for contexts.
type plainMany []Observer

// Observe is part of Observer.
func (m plainMany) Observe(event Event) {
	for _, o := range m {
		o.Observe(event)
	}
}

// many are observers, some with contexts.
type many struct {
	all   plainMany
	in    []ContextObserver // those with
	plain plainMany         // and those without
}

// Observe is part of Observer.
func (m *many) Observe(event Event) { m.all.Observe(event) }

// ObserveContext is part of ContextObserver.
func (m *many) ObserveContext(ctx context.Context, event Event) context.Context {
	for _, in := range m.in {
		if next := in.ObserveContext(ctx, event); next != nil {
			ctx = next
		}
	}
	if len(m.plain) > 0 && isPlain(event) {
		m.plain.Observe(event)
	}
	return ctx
}

// isPlain reports whether an observer without contexts receives the event.
func isPlain(event Event) bool {
	switch event.(type) {
	case Opened, Closed, Started, Attempted, Queued, Woken, DoStarted, DoEnded:
		return false
	}
	return true
}
