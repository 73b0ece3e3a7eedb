package engine

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/watchdog"
)

// Hooks are what notifies an observer. Each may be nil. They run on the
// goroutine on which the event happened, without a lock held. A context that they
// get has the values of the caller's, or of the one that an earlier hook returned; it
// may be nil where there was none.
type Hooks struct {
	// Started gets each call that is going to be Acquired or NotAcquired, and the caller's
	// context. It returns the context for the hooks of this call, from Attempted to
	// NotAcquired.
	Started func(context.Context, Started) context.Context
	// Attempted gets each attempt that did not get the lock.
	Attempted func(context.Context, Attempted)
	// Queued gets each call that begins to wait, and again when a queue on the server has put
	// it at its end anew; Woken each time that it is woken to ask.
	Queued func(context.Context, Queued)
	Woken  func(context.Context, Woken)
	// Acquired gets each call of Lock, TryLock or Resume that got the lock, NotAcquired each that
	// did not. The context that Acquired returns is that of the hold's hooks, Ended and Released.
	Acquired    func(context.Context, Acquired) context.Context
	NotAcquired func(context.Context, NotAcquired)
	// Ended gets each hold that is over, after its Acquired.
	Ended func(context.Context, Ended)
	// Released gets the outcome of each first Unlock.
	Released func(context.Context, Released)
	// DoStarted gets each function that Do is about to run, and returns the context for it, made
	// from that which it gets. DoEnded gets the function's end, with that context.
	DoStarted func(context.Context, DoStarted) context.Context
	DoEnded   func(context.Context, DoEnded)
	// Gap gets each time in which messages for a waiter may have been missed.
	Gap func(context.Context, Gap)
	// Renewed gets the outcome of each renewal script.
	Renewed func(Renewed)
	// Evicted gets each dead waiter that was taken out of a queue.
	Evicted func(Evicted)
	// Closed runs when the client was closed.
	Closed func()
}

// Started is a call of Lock, TryLock or Resume that has begun.
type Started struct {
	// What was called, of which lock and kind, and of how many locks at once.
	Op, Name, Kind string
	Locks          int
}

// Attempted is one attempt of a call, which did not get the lock.
type Attempted struct {
	// Of which lock and kind, and how it went.
	Name, Kind string
	Attempt    int           // its number in the call, from 1
	Took       time.Duration // until the reply
	Holder     codec.Owner   // the owner that has the lock, if that is known
	TTL        time.Duration // what its lease has left
	Err        error         // why there was no answer
}

// Queued is a call that waits.
type Queued struct {
	// For which lock and kind, and its place in the queue on the server, from 1; 0: there is
	// none, or it is not known.
	Name, Kind string
	Position   int
}

// Woken is a call that waits and was woken to ask.
type Woken struct {
	// For which lock and kind, and by what: WokenByMessage, WokenByGap or WokenByTurn.
	Name, Kind, By string
}

// What wakes a call that waits.
const (
	WokenByMessage = "message" // of the lock's channel
	WokenByGap     = "gap"     // messages may have been missed
	WokenByTurn    = "turn"    // another caller of this process
)

// DoStarted is a function that Do is about to run.
type DoStarted struct {
	// Under which lock, kind and owner.
	Name, Kind string
	Owner      codec.Owner
}

// DoEnded is a function that Do has run.
type DoEnded struct {
	// Under which lock, kind and owner, for how long it ran, and how it ended.
	Name, Kind string
	Owner      codec.Owner
	Took       time.Duration
	Err        error
	Panicked   bool
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
	NoHold         bool // of a kind whose grants are no holds: no Ended follows
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
	Slack time.Duration // the least that was left of those that the server has; 0 with none
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
func (h *Hooks) ObserveGap(ctx context.Context, lock, kind string) {
	if h.Gap != nil {
		h.Gap(ctx, Gap{Name: lock, Kind: kind})
	}
}

// observeRenewal passes the outcome of a renewal on.
func (h *Hooks) observeRenewal(began time.Time, held []bool, leases []*watchdog.Lease, err error) {
	if h.Renewed == nil {
		return
	}
	now := time.Now()
	r := Renewed{Holds: len(leases), Took: now.Sub(began), Err: err}
	kept := 0
	for i, ok := range held {
		if !ok {
			r.Lost++
			continue
		}
		if left := max(0, leases[i].Deadline().Remaining(now)); kept == 0 || left < r.Slack {
			r.Slack = left
		}
		kept++
	}
	h.Renewed(r)
}
