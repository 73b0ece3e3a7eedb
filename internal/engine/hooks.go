package engine

import (
	"time"

	"github.com/redlatch/redlatch/codec"
)

// Hooks are what notifies an observer. Each may be nil. They run on the
// goroutine on which the event happened, without a lock held.
type Hooks struct {
	// Acquired gets each call of Lock, TryLock or Resume that got the lock, NotAcquired each that
	// did not.
	Acquired    func(Acquired)
	NotAcquired func(NotAcquired)
	// Ended gets each hold that is over.
	Ended func(Ended)
	// Released gets the outcome of each first Unlock.
	Released func(Released)
	// Gap gets each time in which messages for a waiter may have been missed.
	Gap func(Gap)
	// Renewed gets the outcome of each renewal script.
	Renewed func(Renewed)
	// Evicted gets each dead waiter that was taken out of a queue.
	Evicted func(Evicted)
}

// Acquired is a call of Lock, TryLock or Resume that got the lock.
type Acquired struct {
	// What was called, of which lock and kind, and how it went.
	Op, Name, Kind string
	Owner          codec.Owner
	Wait           time.Duration
	Attempts       int
	Reentry        bool
	Transferred    bool // the turn came with the lock, from a hold of this client
}

// NotAcquired is a call that did not get it.
type NotAcquired struct {
	// As in Acquired; Err is what the call returned.
	Op, Name, Kind string
	Wait           time.Duration
	Attempts       int
	Err            error
}

// Ended is a hold that is over; Err is nil when it was given up.
type Ended struct {
	// Of which lock and kind, under which owner, for how long it was held, and why it ended.
	Name, Kind string
	Owner      codec.Owner
	Held       time.Duration
	Err        error
}

// Released is an Unlock that has returned.
type Released struct {
	// Of which lock and kind, under which owner, how long that took, and what it returned.
	Name, Kind string
	Owner      codec.Owner
	Took       time.Duration
	Err        error
}

// Gap is a time in which messages for a waiter may have been missed.
type Gap struct {
	// Of which lock and kind.
	Name, Kind string
}

// Renewed is the outcome of one renewal script.
type Renewed struct {
	Holds int           // it was for
	Lost  int           // of them
	Took  time.Duration // until the reply
	Err   error         // why there was none
}

// Evicted is a dead waiter that was taken out of a queue.
type Evicted struct {
	Name          string // the lock's
	Kind          string // the lock's
	Owner         string
	Absent        time.Duration // for how long no connection had listened to its channel
	IsRedlatch    bool          // it was one of a client of this library
	WasSubscribed bool          // a connection had listened before
}

// ObserveGap tells the observer that messages for a waiter may have been missed.
func (h *Hooks) ObserveGap(lock, kind string) {
	if h.Gap != nil {
		h.Gap(Gap{Name: lock, Kind: kind})
	}
}

// observeRenewal passes the outcome of a renewal on.
func (h *Hooks) observeRenewal(began time.Time, held []bool, n int, err error) {
	if h.Renewed == nil {
		return
	}
	r := Renewed{Holds: n, Took: time.Since(began), Err: err}
	for _, ok := range held {
		if !ok {
			r.Lost++
		}
	}
	h.Renewed(r)
}
