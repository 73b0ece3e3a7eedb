package acquire

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

// Start begins a call about a number of locks and reports it.
func (a *Acquisition) Start(ctx context.Context, locks int) {
	a.Began = time.Now()
	if tell := a.Engine.Hooks.Started; tell != nil {
		a.Observed = tell(ctx, engine.Started{Op: a.Op, Name: a.Lock, Kind: a.Kind.Name(), Locks: locks})
	}
}

// ObserveFailed reports that the call failed with err.
func (a *Acquisition) ObserveFailed(err error) {
	if tell := a.Engine.Hooks.NotAcquired; tell != nil {
		tell(a.Observed, engine.NotAcquired{
			Op: a.Op, Name: a.Lock, Kind: a.Kind.Name(), Wait: time.Since(a.Began), Attempts: a.Attempts, Err: err,
		})
	}
}

// Acquired returns the event of a call that acquired the lock for owner.
func (a *Acquisition) Acquired(owner codec.Owner) engine.Acquired {
	return engine.Acquired{
		Op: a.Op, Name: a.Lock, Kind: a.Kind.Name(), Owner: owner, Wait: time.Since(a.Began),
		Attempts: a.Attempts, Transferred: a.Passed,
	}
}

// ObserveGap reports an event that is a gap.
func (a *Acquisition) ObserveGap(e transport.Event) {
	if e.Gap {
		a.Engine.Hooks.ObserveGap(a.Observed, a.Lock, a.Kind.Name())
	}
}

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

func (a *Acquisition) observeQueued() {
	if tell := a.Engine.Hooks.Queued; tell != nil {
		tell(a.Observed, engine.Queued{Name: a.Lock, Kind: a.Kind.Name(), Position: a.place})
	}
}

func (a *Acquisition) observeWoken(by string) {
	if tell := a.Engine.Hooks.Woken; tell != nil {
		tell(a.Observed, engine.Woken{Name: a.Lock, Kind: a.Kind.Name(), By: by})
	}
}
