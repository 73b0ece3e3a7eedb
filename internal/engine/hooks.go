package engine

import "time"

// Hooks are what an observer is told through. Each may be nil. They run on the
// goroutine on which the event happened, without a lock held.
type Hooks struct {
	// Event gets what kinds of locks have to tell: one of the root package's events.
	Event func(event any)
	// Renewed gets the outcome of each renewal script.
	Renewed func(Renewal)
	// Evicted gets each dead waiter that was taken out of a queue.
	Evicted func(Eviction)
	// Reconnected gets "commands" or "subscriptions" when such a connection was
	// made in place of a lost one.
	Reconnected func(connection string)
}

// Renewal is the outcome of one renewal script.
type Renewal struct {
	Holds int           // it was for
	Lost  int           // of them
	Took  time.Duration // until the reply
	Err   error         // why there was none
}

// observeRenewal passes the outcome of a renewal on.
func (e *Engine) observeRenewal(began time.Time, held []bool, n int, err error) {
	if e.Hooks.Renewed == nil {
		return
	}
	r := Renewal{Holds: n, Took: time.Since(began), Err: err}
	for _, ok := range held {
		if !ok {
			r.Lost++
		}
	}
	e.Hooks.Renewed(r)
}
