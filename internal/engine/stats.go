package engine

import (
	"context"
	"errors"
	"time"
)

// Stats is redlatch.Stats, which documents it.
type Stats struct {
	Held          int
	OldestHold    time.Duration
	Waiting       int
	InFlight      int
	Subscriptions int
	InDoubt       int
}

// Stats returns the current counts, in constant time.
func (e *Engine) Stats() Stats {
	s := Stats{
		Held:          e.Watchdog.Len(),
		Waiting:       int(e.Waiting()),
		InFlight:      e.timeouts.count(),
		Subscriptions: int(e.subscriptions.Load()),
		InDoubt:       int(e.inDoubt.Load()),
	}
	if began := e.Watchdog.Oldest(); !began.IsZero() {
		s.OldestHold = time.Since(began)
	}
	return s
}

var errTooMany = errors.New("too many waiters: WithMaxWaiters limit reached")

// Waiting is a waiting caller.
type Waiting struct {
	Name, Kind string
	nested     *nested // set by Nest
}

// BeginWait adds a waiting caller, or fails if there are too many. If it succeeds, the caller must call EndWait later
// and must not change w before then.
func (e *Engine) BeginWait(w *Waiting) error {
	e.waitMu.Lock()
	defer e.waitMu.Unlock()
	if e.MaxWaiters > 0 && int64(len(e.waiting)) >= e.MaxWaiters {
		return errTooMany
	}
	if e.waiting == nil {
		e.waiting = map[*Waiting]struct{}{}
	}
	e.waiting[w] = struct{}{}
	return nil
}

// Nest announces that the wait for key is inside the holds of ctx, if any, until EndWait is called.
func (e *Engine) Nest(ctx context.Context, w *Waiting, key string) {
	if e.Label == "" || !lockKinds[w.Kind] || len(OuterOf(ctx))+len(e.Outer) == 0 {
		return
	}
	if name, err := e.Map(w.Name); err != nil || name != key { // a wait for several locks
		return
	}
	n := newNested(ctx, e, w.Kind, key) // without the mutex, because ctx may be the user's
	e.waitMu.Lock()
	defer e.waitMu.Unlock()
	w.nested = n
}

// EndWait removes a waiting caller.
func (e *Engine) EndWait(w *Waiting) {
	e.waitMu.Lock()
	delete(e.waiting, w)
	e.waitMu.Unlock()
	if w.nested != nil {
		w.nested.end()
	}
}

// WaitingNow returns the waiting callers in no particular order.
func (e *Engine) WaitingNow() []Waiting {
	e.waitMu.Lock()
	defer e.waitMu.Unlock()
	all := make([]Waiting, 0, len(e.waiting))
	for w := range e.waiting {
		all = append(all, *w)
	}
	return all
}

// Waiting returns the number of waiting callers.
func (e *Engine) Waiting() int64 {
	e.waitMu.Lock()
	defer e.waitMu.Unlock()
	return int64(len(e.waiting))
}
