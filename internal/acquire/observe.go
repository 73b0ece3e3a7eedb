package acquire

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

// Start begins a call about so many locks, and tells the observer, if there is one.
func (a *Acquisition) Start(ctx context.Context, locks int) {
	a.Began = time.Now()
	if tell := a.Engine.Hooks.Started; tell != nil {
		a.Observed = tell(ctx, engine.Started{Op: a.Op, Name: a.Lock, Kind: a.Kind.Name(), Locks: locks})
	}
}

// ObserveFailed tells the observer that the call ended with err.
func (a *Acquisition) ObserveFailed(err error) {
	if tell := a.Engine.Hooks.NotAcquired; tell != nil {
		tell(a.Observed, engine.NotAcquired{
			Op: a.Op, Name: a.Lock, Kind: a.Kind.Name(), Wait: time.Since(a.Began), Attempts: a.Attempts, Err: err,
		})
	}
}

// Acquired is what the observer is told of a call that acquired the lock for owner.
func (a *Acquisition) Acquired(owner codec.Owner) engine.Acquired {
	return engine.Acquired{
		Op: a.Op, Name: a.Lock, Kind: a.Kind.Name(), Owner: owner, Wait: time.Since(a.Began),
		Attempts: a.Attempts, Transferred: a.Passed,
	}
}

// ObserveGap tells the observer of an event that is a gap.
func (a *Acquisition) ObserveGap(e transport.Event) {
	if e.Gap {
		a.Engine.Hooks.ObserveGap(a.Observed, a.Lock, a.Kind.Name())
	}
}

// observeAttempt tells the observer that an attempt that was sent at sent did not get the lock.
func (a *Acquisition) observeAttempt(sent time.Time, err error) {
	tell := a.Engine.Hooks.Attempted
	if tell == nil {
		return
	}
	e := engine.Attempted{Name: a.Lock, Kind: a.Kind.Name(), Attempt: a.Attempts, Took: time.Since(sent), Err: err}
	if err == nil {
		e.Holder, e.TTL = a.Holder, a.TTL
	}
	tell(a.Observed, e)
}

// queuedAt takes in that the server has put the owner at a place in its queue; 0: it has not.
func (a *Acquisition) queuedAt(place int) {
	if place == 0 || a.Try {
		return
	}
	if a.place = place; a.counted {
		a.observeQueued() // anew
	}
}

// observeQueued tells the observer that the call waits.
func (a *Acquisition) observeQueued() {
	if tell := a.Engine.Hooks.Queued; tell != nil {
		tell(a.Observed, engine.Queued{Name: a.Lock, Kind: a.Kind.Name(), Position: a.place})
	}
}

// observeEvent tells the observer that an event has woken the call.
func (a *Acquisition) observeEvent(e transport.Event) {
	if e.Gap {
		a.observeWoken(engine.WokenByGap)
		return
	}
	a.observeWoken(engine.WokenByMessage)
}

// observeWoken tells the observer that the call was woken, and by what.
func (a *Acquisition) observeWoken(by string) {
	if tell := a.Engine.Hooks.Woken; tell != nil {
		tell(a.Observed, engine.Woken{Name: a.Lock, Kind: a.Kind.Name(), By: by})
	}
}
