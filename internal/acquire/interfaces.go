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

// Request is what a call to the server says of one owner. Values that travel as arguments
// are boxed once, so that sending them costs no allocation.
type Request struct {
	// Owner is the owner's text, a string.
	Owner any
	// Lease is the lease in milliseconds, an int64.
	Lease any
	// Wait is for how long a queue on the server keeps the owner's place once it is its
	// turn, in milliseconds, an int64. It stays the same for as long as the owner waits.
	Wait any
	// Target is the count that a re-entry or a release is to arrive at; 0 frees the lock.
	// For a re-entry 0 means one more: the count is not known here.
	Target int64
	// Try is true for a caller that does not wait: it must not be queued.
	Try bool
}

// Outcome is what an attempt was answered.
type Outcome struct {
	// Granted is true when the owner has the lock. Nothing else is set then but Token and
	// Available.
	Granted bool
	// Available is how many permits of a semaphore are left, 0 for other kinds.
	Available int64
	// Hint says why no release will end the wait, nil if one can. It is set for a refusal.
	Hint error
	// Token is the fencing token of a grant, 0 for kinds without.
	Token int64
	// TTL is how long the holder has left, [reply.NoTTL] when that is not known.
	TTL time.Duration
	// Holder is the owner that has the lock, the zero Owner when that is not known.
	Holder codec.Owner
	// Free is true when no owner has the lock, and the attempt was refused all the same.
	Free bool
	// Foreign is true when the key may be that of another program: a [Foreigner] can tell.
	Foreign bool
	// Head is the text of the owner that is first in a queue on the server.
	Head string
	// Queued is true when the attempt has put the owner at the end of that queue, and Position
	// its place then, from 1, if that is known.
	Queued   bool
	Position int
}

// Waitable is all that the loop needs to know of a lock. All methods are safe for concurrent
// use, and pure but for the time of day, which some kinds send.
type Waitable interface {
	// Name names the kind of lock, for events and logs.
	Name() string
	// Key returns the lock's main key, which is its mapped name; of several locks, that of the
	// one that refused the last attempt.
	Key() string
	// Channel returns the channel on which the waiter of an owner is woken.
	Channel(owner any) string
	// Acquire fills c, a reset call, with an attempt to take the lock.
	Acquire(c *transport.Call, r *Request)
	// Decode reads the reply of an attempt. An error that wraps transport.ErrBadReply says that it
	// is none, another error that the attempt was refused.
	Decode(reply any) (Outcome, error)
}

// Foreigner is a kind whose key may turn out to be that of another program, which never frees
// it. Its methods are about the key that refused the last attempt.
type Foreigner interface {
	// LookForeign fills c, a reset call, with a question that changes nothing.
	LookForeign(c *transport.Call)
	// Foreign reads its reply. It returns a field of the key and true when the key certainly is no
	// lock.
	Foreign(reply any) (field string, foreign bool)
}

// Transferable is a kind whose locks can be transferred inside the process.
type Transferable interface {
	Waitable
	// Transfer fills c, a reset call, with the attempt that transfers the lock from one owner
	// to that of r, which has never held it, without freeing it. Both are of one process,
	// which alone uses them. Decode reads its reply: a grant, or a refusal when from did not
	// hold the lock, and nothing was done.
	Transfer(c *transport.Call, r *Request, from any)
}

// Claim is what an attempt acquires for: an owner, until it is granted, dropped or abandoned.
// As a resolver it takes care of an attempt whose caller has left.
type Claim interface {
	engine.Resolver
	// ID returns the claim's owner, the zero Owner of kinds that have others.
	ID() codec.Owner
	// Request returns what the next attempt says. It must not be changed.
	Request() *Request
	// Asks says that an attempt begins, before its request is read, or that it is over.
	Asks(yes bool)
	// Grant makes the claim a hold, for an attempt that was sent at sent. On an error, such
	// as that of a lease that is over already, the claim has given the lock back.
	Grant(sent time.Time, o Outcome) error
	// Fail says that an attempt ended with an error.
	Fail()
	// Disown sees to it in the background that nothing of an attempt is left on the server.
	Disown()
	// Drop forgets a claim that was not granted.
	Drop()

	// Place returns what takes the owner out of a queue on the server, and Placed says that
	// the server has put it there, just now or earlier.
	Place() Request
	Placed(now bool)

	// KeepTurn keeps a turn for as long as the hold lasts. It returns false when the hold is
	// over, and the turn stays with the caller.
	KeepTurn(t Turn) bool
	// PassWhenResolved keeps the turn until it is known what the last attempt has done. It
	// returns false when that is known, and the turn stays with the caller.
	PassWhenResolved(t Turn) bool
	// KeepSubscription keeps a subscription until the hold was given up.
	KeepSubscription(s Reusable)

	// Replicated waits until enough replicas have the lock that was granted. When they do not
	// have it in time, the claim gives the lock back.
	Replicated(ctx context.Context) error
}

// Settler is a claim of which the server cannot say later whether an attempt was granted.
type Settler interface {
	// Settle returns the outcome of an attempt that ended with err, which wraps ErrUncertain, if
	// its reply has arrived since, else err. If ctx has ended, it waits up to [Overdue] for it.
	Settle(ctx context.Context, err error) (reply any, _ error)
}

// BareClaim has the methods of a [Claim] without an owner that is used again, a place in a queue on
// the server or a turn to keep: those that do nothing. Such a claim embeds it.
type BareClaim struct{}

// ID is part of Claim.
func (BareClaim) ID() codec.Owner { return codec.Owner{} }

// Asks is part of Claim.
func (BareClaim) Asks(bool) {}

// Fail is part of Claim.
func (BareClaim) Fail() {}

// Drop is part of Claim.
func (BareClaim) Drop() {}

// Place is part of Claim.
func (BareClaim) Place() Request { return Request{} }

// Placed is part of Claim.
func (BareClaim) Placed(bool) {}

// KeepTurn is part of Claim.
func (BareClaim) KeepTurn(Turn) bool { return false }

// PassWhenResolved is part of Claim.
func (BareClaim) PassWhenResolved(Turn) bool { return false }

// KeepSubscription is part of Claim.
func (BareClaim) KeepSubscription(Reusable) {}

// Replicated is part of Claim.
func (BareClaim) Replicated(context.Context) error { return nil }

// Claims makes claims: the first one of a call, and another one when nothing more can be
// asked for the owner of the last.
type Claims interface {
	// Claim returns a claim for an owner of its own, or, if it is not nil, for the owner of a
	// subscription that is used again.
	Claim(s Reusable) Claim
}

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

// Signal wakes the caller that receives from c, which has room for one signal: one that it has not
// received yet is enough. A nil c is that of a caller that does not wait.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
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

// Alone returns how a caller waits without a queue: it asks Redis, and listens for itself. It is
// for owners that are given: two callers of one owner do not exclude each other.
func Alone() Waiter { return &lone{} }

// lone is a caller that waits alone.
type lone struct{ sub transport.Subscription }

func (*lone) Enter(context.Context, *Acquisition) (bool, error) { return false, nil }

func (w *lone) Listen(ctx context.Context, a *Acquisition) (err error) {
	if w.sub == nil {
		w.sub, err = a.Subscribe(ctx, a.Kind.Channel(a.Claim().Request().Owner))
	}
	return err
}

func (w *lone) Signals() (<-chan transport.Event, <-chan struct{}) {
	if w.sub == nil {
		return nil, nil
	}
	return w.sub.Events(), nil
}

func (*lone) OnEvent(a *Acquisition, e transport.Event) (ask bool, d time.Duration) {
	a.ObserveGap(e)
	return true, 0
}

func (*lone) Woken() (bool, time.Duration) { return true, 0 }
func (w *lone) Broken() error              { return w.sub.Err() }

func (*lone) Refused(_ *Acquisition, o Outcome) time.Duration { return o.TTL }
func (*lone) Sleep(nap, _ time.Duration) time.Duration        { return nap }
func (*lone) Unanswered(error)                                {}
func (*lone) Abandon()                                        {}
func (w *lone) Granted(*Acquisition)                          { w.close() }
func (w *lone) Leave(*Acquisition)                            { w.close() }

func (w *lone) close() {
	if w.sub != nil {
		w.sub.Close()
	}
}
