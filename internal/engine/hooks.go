package engine

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/watchdog"
)

// Hooks contains the methods of a redlatch.Observer, which are nil if there is no observer. They run on the goroutine
// in which the event occurs, without a mutex held. Their context has the values of the caller's context, or of the
// context that an earlier hook returned; it may be nil.
type Hooks struct {
	Started, Acquired, DoStarted func(context.Context, Event) context.Context
	Attempted, Queued, Woken     func(context.Context, Event)
	NotAcquired                  func(context.Context, Event)
	Ended, Released, DoEnded     func(context.Context, Event)
	Renewed                      func(Renewed)
	Evicted                      func(Evicted)
	Closed                       func()
}

// Event is passed to every hook that takes a context.
type Event struct {
	Op, Name, Kind string
	Owner          codec.Owner
	Number         int           // number of locks or attempts, or position in a queue
	Took           time.Duration // duration of the call, the attempt, the hold or the function
	Err            error
	Holder         codec.Owner
	TTL            time.Duration
	By             string // WokenByMessage, WokenByGap or WokenByTurn

	Reentry, Transferred, NoHold, Panicked bool
}

// Renewed is redlatch.Renewed.
type Renewed struct {
	Holds, Lost int
	Took, Slack time.Duration
	Err         error
}

// Evicted is redlatch.Evicted.
type Evicted struct {
	Name, Kind, Owner         string
	Absent                    time.Duration
	IsRedlatch, WasSubscribed bool
}

// Values of Event.By.
const (
	WokenByMessage = "message"
	WokenByGap     = "gap"  // messages may have been missed
	WokenByTurn    = "turn" // another caller in this process passed its turn on
)

// OrElse calls tell, which calls a hook. If the hook ends the goroutine, OrElse calls clean.
func OrElse(tell, clean func()) {
	returned := false
	defer func() {
		if !returned {
			clean()
		}
	}()
	tell()
	returned = true
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
