package acquire

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

// Strategy is how the callers of one process wait for one lock. It is safe for concurrent
// use.
type Strategy interface {
	// Waiter returns how the caller of a waits. The loop ends it with Granted or Leave.
	Waiter(a *Acquisition) Waiter
}

// Pollable is a strategy whose callers can do without a subscription.
type Pollable interface {
	// CanPoll says so.
	CanPoll()
}

// Waiter is how one caller waits. Its methods run on the caller's goroutine, one at a time.
type Waiter interface {
	// Enter returns when the caller may ask Redis. It may block in [Acquisition.Sleep] only,
	// and in requests that end with ctx. It returns true when the caller has the lock already.
	Enter(ctx context.Context, a *Acquisition) (granted bool, err error)

	// Listen sees to it that the caller hears of the lock. It may return nil without that,
	// and then must not sleep for long.
	Listen(ctx context.Context, a *Acquisition) error
	// Signals returns what wakes the caller: events of its subscription, nil while it does
	// not listen, and a wake-up of the strategy, nil when there is none.
	Signals() (events <-chan transport.Event, wake <-chan struct{})
	// OnEvent takes in an event, and reports a gap to the observer; Woken takes in a wake-up. The
	// caller asks Redis, or sleeps on; with d above 0 it sleeps for d from now.
	OnEvent(a *Acquisition, e transport.Event) (ask bool, d time.Duration)
	Woken() (ask bool, d time.Duration)
	// Broken returns why the subscription has ended for good.
	Broken() error

	// Refused takes in the outcome of an attempt, and returns what the holder has left, as far
	// as the caller can know.
	Refused(a *Acquisition, o Outcome) time.Duration
	// Sleep returns how long the caller sleeps without a signal, which is nap unless the
	// strategy knows better. Below 0: for ever.
	Sleep(nap, ttl time.Duration) time.Duration
	// Unanswered says why Redis did not answer.
	Unanswered(err error)
	// Abandon says that nothing more is asked for the claim's owner, of which it is not known
	// what it has on the server: its resolver takes care of that.
	Abandon()

	// Granted ends the wait of a caller that has the lock, Leave that of one that has not.
	Granted(a *Acquisition)
	Leave(a *Acquisition)
}

// Turn is the right of one caller of a process to talk to Redis about a lock. It stays with
// the hold, and is passed on exactly once.
type Turn interface {
	// Pass gives the turn to the next caller. Released says that the lock is being released.
	Pass(released bool)
	// Transfer gives the turn and the lock, which owner holds, to the next caller. It returns
	// nil, and the turn stays where it is, when there is none to take them.
	Transfer(owner any) Transferred
}

// Transferred is what became of a lock that was transferred.
type Transferred interface {
	// Wait returns nil when the next caller has the lock, an error that wraps ErrLost when
	// the owner did not hold it, ErrNotSent when nothing has happened; other errors, such as
	// that of a bound that is over, leave it open.
	Wait(bound time.Duration) error
}

// Transfer is a lock on its way to this caller from a holder of the same process.
type Transfer interface {
	// Fill fills c with the attempt that takes the lock over.
	Fill(c *transport.Call, r *Request)
	// Taken tells the holder of the attempt's outcome. It returns true when the holder did
	// not hold the lock: then the caller asks again.
	Taken(reply any, err error) (again bool, _ error)
}

// Reusable is an owner and the subscription to its channel, which may be used for another
// acquisition when the hold was given up.
type Reusable interface {
	// Owner returns the owner, and its text, boxed once.
	Owner() (codec.Owner, any)
	// Put lets another acquisition have both.
	Put()
	// Close ends the subscription.
	Close()
}
