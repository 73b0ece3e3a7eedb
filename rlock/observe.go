package rlock

import (
	"time"

	"github.com/redlatch/redlatch"
)

// observed tells the observer, if there is one, how an acquisition went.
func (a *acquisition) observed(hold *Hold, err error) {
	l := a.lock
	tell := l.engine.Hooks.Event
	switch {
	case tell == nil:
	case err != nil:
		tell(redlatch.NotAcquired{
			Op: a.op, Name: l.name, Kind: l.kind(), Wait: time.Since(a.began), Attempts: a.attempts, Err: err,
		})
	default:
		tell(redlatch.Acquired{
			Op: a.op, Name: l.name, Kind: l.kind(), Owner: hold.tenure.owner, Wait: time.Since(a.began),
			Attempts: a.attempts, Reentry: a.inner, HandedOver: a.passed,
		})
	}
}

// observeEnd tells the observer that the hold is over.
func (h *Hold) observeEnd(why *ending) {
	l := h.tenure.lock
	tell := l.engine.Hooks.Event
	if tell == nil || h.since.IsZero() || h.proof.CompareAndSwap(unproven, overBefore) { // it never was anybody's
		return
	}
	var err error
	if why != endGiven {
		err = why.cause
	}
	tell(redlatch.Ended{Name: l.name, Kind: l.kind(), Owner: h.tenure.owner, Held: time.Since(h.since), Err: err})
}

// observeRelease tells the observer how an Unlock went.
func (h *Hold) observeRelease(began time.Time) {
	l := h.tenure.lock
	if tell := l.engine.Hooks.Event; tell != nil {
		tell(redlatch.Released{Name: l.name, Kind: l.kind(), Owner: h.tenure.owner, Took: time.Since(began), Err: h.result})
	}
}

// observeGap tells the observer that messages may have been missed.
func (l *Lock) observeGap() {
	if tell := l.engine.Hooks.Event; tell != nil {
		tell(redlatch.Gap{Name: l.name, Kind: l.kind()})
	}
}

func (l *Lock) kind() string { return l.proto.Kind() }
