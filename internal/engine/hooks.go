package engine

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/watchdog"
)

// Hooks are the functions of a redlatch.Observer, which documents them; nil if not observed.
// They run on the goroutine of the event, without a mutex held. Their context has the values of
// the caller's context, or of the one that an earlier hook returned; it may be nil.
type Hooks struct {
	Started     func(context.Context, Started) context.Context
	Attempted   func(context.Context, Attempted)
	Queued      func(context.Context, Queued)
	Woken       func(context.Context, Woken)
	Acquired    func(context.Context, Acquired) context.Context
	NotAcquired func(context.Context, NotAcquired)
	Ended       func(context.Context, Ended)
	Released    func(context.Context, Released)
	DoStarted   func(context.Context, DoStarted) context.Context
	DoEnded     func(context.Context, DoEnded)
	Gap         func(context.Context, Gap)
	Renewed     func(Renewed)
	Evicted     func(Evicted)
	Closed      func()
}

// The events have the fields of their namesakes in package redlatch, in the same order, so that
// it can convert them.
type (
	// Started is redlatch.Started.
	Started struct {
		Op, Name, Kind string
		Locks          int
	}

	// Attempted is redlatch.Attempted.
	Attempted struct {
		Name, Kind string
		Attempt    int
		Took       time.Duration
		Holder     codec.Owner
		TTL        time.Duration
		Err        error
	}

	// Queued is redlatch.Queued.
	Queued struct {
		Name, Kind string
		Position   int
	}

	// Woken is redlatch.Woken. By is one of the constants below.
	Woken struct {
		Name, Kind, By string
	}

	// DoStarted is redlatch.DoStarted.
	DoStarted struct {
		Name, Kind string
		Owner      codec.Owner
	}

	// DoEnded is redlatch.DoEnded.
	DoEnded struct {
		Name, Kind string
		Owner      codec.Owner
		Took       time.Duration
		Err        error
		Panicked   bool
	}

	// Acquired is redlatch.Acquired.
	Acquired struct {
		Op, Name, Kind string
		Owner          codec.Owner
		Wait           time.Duration
		Attempts       int
		Reentry        bool
		Transferred    bool
		NoHold         bool
	}

	// NotAcquired is redlatch.NotAcquired.
	NotAcquired struct {
		Op, Name, Kind string
		Wait           time.Duration
		Attempts       int
		Err            error
	}

	// Ended is redlatch.Ended.
	Ended struct {
		Name, Kind string
		Owner      codec.Owner
		Held       time.Duration
		Err        error
	}

	// Released is redlatch.Released, whose Err is what Unlock returned.
	Released struct {
		Name, Kind string
		Owner      codec.Owner
		Took       time.Duration
		Err        error
	}

	// Gap is redlatch.Gap.
	Gap struct {
		Name, Kind string
	}

	// Renewed is redlatch.Renewed.
	Renewed struct {
		Holds, Lost int
		Took, Slack time.Duration
		Err         error
	}

	// Evicted is redlatch.Evicted.
	Evicted struct {
		Name, Kind, Owner         string
		Absent                    time.Duration
		IsRedlatch, WasSubscribed bool
	}
)

// What wakes a waiting call.
const (
	WokenByMessage = "message" // on the lock's channel
	WokenByGap     = "gap"     // messages may have been missed
	WokenByTurn    = "turn"    // another caller of this process
)

// ObserveGap reports that messages for a waiter may have been missed.
func (h *Hooks) ObserveGap(ctx context.Context, lock, kind string) {
	if h.Gap != nil {
		h.Gap(ctx, Gap{Name: lock, Kind: kind})
	}
}

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
