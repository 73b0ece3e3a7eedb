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

// Request contains the arguments of a call for one owner, boxed once to save allocations.
type Request struct {
	// Owner is a string.
	Owner any
	// Lease is the lease in milliseconds, as an int64.
	Lease any
	// Wait is how long, in milliseconds as an int64, a queue on the server keeps the owner's place at its head. It does
	// not change while the owner is waiting.
	Wait any
	// Target is the count after a re-entry or release; 0 frees the lock. For a re-entry, 0 means one more than the current
	// count, which may be unknown.
	Target int64
	// Try is true for a caller that must not be queued.
	Try bool
}

// Outcome is the reply to an attempt.
type Outcome struct {
	// Granted is true if the owner has the lock. In that case, only Token and Available are set.
	Granted   bool
	Available int64
	// Hint, if not nil, is the reason why a release will not end the wait.
	Hint error
	// Token is the fencing token of a grant, or 0.
	Token int64
	// TTL is the remaining time of the holder's lease, or [reply.NoTTL] if unknown.
	TTL time.Duration
	// Holder is the lock's holder, or zero if unknown.
	Holder codec.Owner
	// Free is true if the attempt was refused although the lock is free.
	Free bool
	// Foreign is true if a [Foreigner] must check the key.
	Foreign bool
	// Head is the first owner in the queue on the server.
	Head string
	// Queued is true if the attempt has queued the owner. Position counts from 1 and is 0 if unknown.
	Queued   bool
	Position int
}

// Waitable makes the calls of the loop and decodes their replies. Its methods are safe for concurrent use.
type Waitable interface {
	Name() string
	// Key returns the lock's mapped name or, for several locks, the key that refused the last attempt.
	Key() string
	// Channel returns the channel that wakes an owner.
	Channel(owner any) string
	// Acquire fills c, a reset call, with an attempt.
	Acquire(c *transport.Call, r *Request)
	// Decode decodes its reply. An error that wraps transport.ErrBadReply means an invalid reply; other errors mean a
	// refusal.
	Decode(reply any) (Outcome, error)
}

// Foreigner is implemented by kinds that can tell when the last attempt failed because the key belongs to another
// program and will never be freed.
type Foreigner interface {
	// LookForeign fills c, a reset call, with a read-only call.
	LookForeign(c *transport.Call)
	// Foreign decodes the reply. It returns a field of the key, and true if the key is definitely
	// not a lock.
	Foreign(reply any) (field string, foreign bool)
}

// Transferable is implemented by kinds whose locks can be transferred within the process.
type Transferable interface {
	Waitable
	// Transfer fills c, a reset call, with an attempt that transfers the lock to the owner in r, which has never held
	// it, if the owner given as from is the holder. Only this process uses both owners. A refused attempt does not
	// change anything. Decode also decodes this reply.
	Transfer(c *transport.Call, r *Request, from any)
}

// Claim is an owner for which attempts are made until it is granted, dropped or abandoned. It also resolves abandoned
// attempts.
type Claim interface {
	engine.Resolver
	// ID returns the owner, or zero for kinds with IDs.
	ID() codec.Owner
	// Request returns the arguments of the next attempt. It must not be changed.
	Request() *Request
	// Asks is called with true before Request and with false after the attempt.
	Asks(yes bool)
	// Grant turns the claim into a hold after a successful attempt; sent is when it was sent. If Grant fails, it
	// releases the lock.
	Grant(sent time.Time, o Outcome) error
	Fail()
	// Disown removes all traces of an attempt in the background.
	Disown()
	// Drop ends a claim that was not granted.
	Drop()

	// Place returns the arguments that remove the owner from a queue on the server. Placed records that the owner is in
	// the queue; now is true if the last attempt put it there.
	Place() Request
	Placed(now bool)

	// KeepTurn keeps the turn for as long as the hold lasts. If it returns false, the hold has ended and the caller
	// keeps the turn.
	KeepTurn(t Turn) bool
	// PassWhenResolved keeps the turn until the last attempt is resolved. If it returns false, the attempt has been
	// resolved, and the caller keeps the turn.
	PassWhenResolved(t Turn) bool
	// KeepSubscription keeps s until the hold is released.
	KeepSubscription(s Reusable)

	// Settle returns the result of an attempt that failed with err, which wraps ErrUncertain. If the server cannot undo
	// the attempt, Settle waits for a late reply for up to [Overdue] after ctx has ended; otherwise it returns err.
	Settle(ctx context.Context, err error) (reply any, _ error)
	// Replicated waits until enough replicas have the lock. If it fails, it releases the lock.
	Replicated(ctx context.Context) error
}

// BareClaim implements the methods of a [Claim] that need an owner, a place or a turn, for claims that have none of
// these.
type BareClaim struct{}

// ID implements Claim.
func (BareClaim) ID() codec.Owner { return codec.Owner{} }

// Asks implements Claim.
func (BareClaim) Asks(bool) {}

// Fail implements Claim.
func (BareClaim) Fail() {}

// Drop implements Claim.
func (BareClaim) Drop() {}

// Place implements Claim.
func (BareClaim) Place() Request { return Request{} }

// Placed implements Claim.
func (BareClaim) Placed(bool) {}

// KeepTurn implements Claim.
func (BareClaim) KeepTurn(Turn) bool { return false }

// PassWhenResolved implements Claim.
func (BareClaim) PassWhenResolved(Turn) bool { return false }

// KeepSubscription implements Claim.
func (BareClaim) KeepSubscription(Reusable) {}

// Settle implements Claim.
func (BareClaim) Settle(_ context.Context, err error) (any, error) { return nil, err }

// Replicated implements Claim.
func (BareClaim) Replicated(context.Context) error { return nil }

// Claims makes the claims of a call, each for a different owner.
type Claims interface {
	// Claim returns a claim for a new owner, or for the owner of s if s is not nil.
	Claim(s Reusable) Claim
}

// Strategy decides how the callers in a process wait for one lock. It is safe for concurrent use.
type Strategy interface {
	// Waiter returns the waiter for a, which Granted or Leave ends.
	Waiter(a *Acquisition) Waiter
}

// Waiter is one waiting caller. Its methods run on the caller's goroutine.
type Waiter interface {
	// Enter returns false once the caller may make an attempt, or true if it already has the lock. It may block in
	// [Acquisition.Sleep] and in calls that end with ctx.
	Enter(ctx context.Context, a *Acquisition) (granted bool, err error)

	// Listen subscribes the caller. If it returns nil without a subscription, sleeps must be short.
	Listen(ctx context.Context, a *Acquisition) error
	// Signals returns the subscription's events and the strategy's wake-ups, which may be nil.
	Signals() (events <-chan transport.Event, wake <-chan struct{})
	// OnEvent handles an event; Woken handles a wake-up. If ask is true, the caller makes an attempt; otherwise it goes
	// back to sleep, for d if that is positive.
	OnEvent(e transport.Event) (ask bool, d time.Duration)
	Woken() (ask bool, d time.Duration)
	// Broken returns why the subscription has ended.
	Broken() error

	// Refused handles a refusal, and returns the remaining time of the lease as far as it is known.
	Refused(a *Acquisition, o Outcome) time.Duration
	// Sleep returns how long the caller sleeps if it does not receive a signal; nap is the default. A negative result
	// means that there is no limit.
	Sleep(nap, ttl time.Duration) time.Duration
	Unanswered(err error)
	// Abandon leaves the claim's owner, whose state is unknown, to its resolver.
	Abandon()

	// Granted ends the wait after a grant; Leave ends it without one.
	Granted(a *Acquisition)
	Leave(a *Acquisition)
}

// Signal sends to c, whose buffer has room for one signal, unless a signal is pending or c is nil.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Turn is the right of one caller in a process to send calls about a lock. The hold passes it on exactly once.
type Turn interface {
	// Pass passes the turn to the next caller. released means that the lock is being released.
	Pass(released bool)
	// Transfer passes the turn and the lock of owner to the next caller. If that is not possible, it returns nil and keeps
	// both.
	Transfer(owner any) *Transfer
}

// Transfer passes a lock and the turn to the next caller in the process. Its last receiver must settle it once.
type Transfer struct {
	owner   any
	pool    *sync.Pool
	settled chan error // buffered
	timer   *time.Timer
}

// NewTransfer returns a transfer of owner's lock from pool. Wait or Free puts it back.
func NewTransfer(pool *sync.Pool, owner any) *Transfer {
	t, ok := pool.Get().(*Transfer)
	if !ok {
		t = &Transfer{pool: pool, settled: make(chan error, 1), timer: time.NewTimer(time.Hour)}
		t.timer.Stop()
	}
	t.owner = owner
	return t
}

// Settle reports the outcome to the holder: nil if the lock was taken over, ErrLost if it was not held, or ErrNotSent
// if the call did not run. After any other error, the outcome is unknown.
func (t *Transfer) Settle(outcome error) { t.settled <- outcome }

// Wait returns the outcome, or ErrUncertain after bound.
func (t *Transfer) Wait(bound time.Duration) error {
	t.timer.Reset(bound)
	select {
	case err := <-t.settled:
		t.timer.Stop()
		t.Free()
		return err
	case <-t.timer.C:
		// It may still be settled, so it is not reused.
		return fmt.Errorf("%w: no reply within %v", transport.ErrUncertain, bound.Round(time.Millisecond))
	}
}

// Free returns an unused transfer to its pool.
func (t *Transfer) Free() {
	t.owner = nil
	t.pool.Put(t)
}

// taken settles the transfer with its attempt's outcome. If it returns true, the holder did not have the lock, and the
// caller must try again.
func (t *Transfer) taken(k Waitable, reply any, err error) (again bool, _ error) {
	if err != nil {
		plain := err // without the reason why the next caller left
		for _, kind := range []error{engine.ErrNotSent, engine.ErrUncertain} {
			if errors.Is(err, kind) {
				plain = kind
			}
		}
		t.Settle(plain)
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

// Reusable is an owner and its subscription, which another acquisition may use after the release.
type Reusable interface {
	// Owner returns the owner and its boxed text.
	Owner() (codec.Owner, any)
	// Put offers both to other acquisitions.
	Put()
	Close()
}

// Alone returns a waiter that does not queue, for shared owners.
func Alone() Waiter { return &lone{} }

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

func (*lone) OnEvent(transport.Event) (ask bool, d time.Duration) {
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
