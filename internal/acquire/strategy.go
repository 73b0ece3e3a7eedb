package acquire

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

// Strategy is how the callers of one process wait for one lock. It is safe for concurrent
// use.
type Strategy interface {
	// Waiter returns how the caller of a waits. The loop ends it with Granted or Leave.
	Waiter(a *Acquisition) Waiter
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
	Transfer(owner any) *Transfer
}

// Transfer is a lock on its way from its holder to the next caller of the process, which takes
// it over in one step: the lock is not free in between. It comes with the turn. The caller that
// has it in the end settles it once, and does not use it after.
type Transfer struct {
	owner   any // the lock's until it is taken over, its text boxed
	pool    *sync.Pool
	settled chan error // room for one
	timer   *time.Timer
}

// NewTransfer returns a transfer of the lock that owner holds, from a pool of a client's. It goes
// back with Wait, or Free.
func NewTransfer(pool *sync.Pool, owner any) *Transfer {
	t, ok := pool.Get().(*Transfer)
	if !ok {
		t = &Transfer{pool: pool, settled: make(chan error, 1), timer: time.NewTimer(time.Hour)}
		t.timer.Stop()
	}
	t.owner = owner
	return t
}

// Settle tells the holder the outcome: nil when the lock has been taken over; ErrLost when
// the holder did not hold it; ErrNotSent when nothing has happened; other errors leave it
// open.
func (t *Transfer) Settle(outcome error) { t.settled <- outcome }

// Wait returns what Settle was given, within bound. After that the outcome is not known, and
// the error wraps ErrUncertain.
func (t *Transfer) Wait(bound time.Duration) error {
	t.timer.Reset(bound)
	select {
	case err := <-t.settled:
		t.timer.Stop()
		t.Free()
		return err
	case <-t.timer.C:
		// It may be settled later: it is not used again.
		return fmt.Errorf("%w: no reply within %v", transport.ErrUncertain, bound.Round(time.Millisecond))
	}
}

// Free gives back a transfer that no other caller has.
func (t *Transfer) Free() {
	t.owner = nil
	t.pool.Put(t)
}

// taken tells the holder the outcome of the attempt to take the lock over. It returns true when the
// holder did not hold the lock: then the caller asks again.
func (t *Transfer) taken(k Waitable, reply any, err error) (again bool, _ error) {
	if err != nil {
		t.Settle(plainly(err))
		return false, err
	}
	out, err := k.Decode(reply)
	if err == nil && !out.Granted {
		t.Settle(engine.ErrLost)
		return true, nil
	}
	t.Settle(err)
	return false, err
}

// plainly is what an error of the next caller says to the holder: why that one left is not
// the holder's business.
func plainly(err error) error {
	switch {
	case errors.Is(err, engine.ErrUncertain):
		return engine.ErrUncertain
	case errors.Is(err, engine.ErrNotSent):
		return engine.ErrNotSent
	}
	return err
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
