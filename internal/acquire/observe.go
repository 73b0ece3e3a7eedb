package acquire

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
)

func (a *Acquisition) event() engine.Event {
	return engine.Event{Op: a.Op, Name: a.Lock, Kind: a.Kind.Name()}
}

// Start begins a call for a number of locks and reports it.
func (a *Acquisition) Start(ctx context.Context, locks int) {
	a.Began = time.Now()
	if tell := a.Engine.Hooks.Started; tell != nil {
		e := a.event()
		e.Number = locks
		a.Observed = tell(ctx, e)
	}
}

// ObserveFailed reports the call's failure.
func (a *Acquisition) ObserveFailed(err error) {
	if tell := a.Engine.Hooks.NotAcquired; tell != nil {
		e := a.ended()
		e.Err = err
		tell(a.Observed, e)
	}
}

// Acquired returns the event for an acquisition by owner.
func (a *Acquisition) Acquired(owner codec.Owner) engine.Event {
	e := a.ended()
	e.Owner, e.Transferred = owner, a.Passed
	return e
}

func (a *Acquisition) ended() engine.Event {
	e := a.event()
	e.Took, e.Number = time.Since(a.Began), a.Attempts
	return e
}

func (a *Acquisition) observeAttempt(sent time.Time, err error) {
	tell := a.Engine.Hooks.Attempted
	if tell == nil {
		return
	}
	e := a.event()
	e.Number, e.Took, e.Err = a.Attempts, time.Since(sent), err
	if err == nil {
		e.Holder, e.TTL = a.Holder, a.TTL
	}
	tell(a.Observed, e)
}

func (a *Acquisition) observeQueued() {
	if tell := a.Engine.Hooks.Queued; tell != nil {
		e := a.event()
		e.Number = a.place
		tell(a.Observed, e)
	}
}

func (a *Acquisition) observeWoken(by string) {
	if tell := a.Engine.Hooks.Woken; tell != nil {
		e := a.event()
		e.By = by
		tell(a.Observed, e)
	}
}
