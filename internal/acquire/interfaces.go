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

// Request contains the arguments of a call for one owner. They are boxed once, so that a call
// does not allocate.
type Request struct {
	// Owner is a string.
	Owner any
	// Lease is the lease in milliseconds, an int64.
	Lease any
	// Wait is how long a queue on the server keeps the place of its head, in milliseconds, an
	// int64. It never changes while the owner waits.
	Wait any
	// Target is the count after a re-entry or release; 0 frees the lock. For a re-entry, 0 means
	// one more, for an unknown count.
	Target int64
	// Try is true for a caller that doesn't wait and must not be queued.
	Try bool
}

// Outcome is the reply to an attempt.
type Outcome struct {
	// Granted is true if the owner has the lock. Then only Token and Available are also set.
	Granted bool
	// Available is the number of permits of a semaphore, 0 for other kinds.
	Available int64
	// Hint is why no release will end the wait, nil if one can. Set for refusals.
	Hint error
	// Token is the fencing token of a grant, 0 for kinds without.
	Token int64
	// TTL is the rest of the holder's lease, [reply.NoTTL] if unknown.
	TTL time.Duration
	// Holder of the lock, the zero Owner if unknown.
	Holder codec.Owner
	// Free is true if the attempt was refused although the lock is free.
	Free bool
	// Foreign is true if the key may be another program's: see [Foreigner].
	Foreign bool
	// Head is the text of the first owner in a queue on the server.
	Head string
	// Queued is true if the attempt has appended the owner to that queue, at Position, from 1 if
	// known.
	Queued   bool
	Position int
}

// Waitable makes the calls of the loop and decodes their replies. All methods are safe for
// concurrent use, and pure, except that some kinds send the time.
type Waitable interface {
	// Name of the kind, for events and logs.
	Name() string
	// Key returns the lock's main key, its mapped name; of several locks, the key that refused
	// the last attempt.
	Key() string
	// Channel returns the channel of an owner's wake-ups.
	Channel(owner any) string
	// Acquire fills c, a reset call, with an attempt.
	Acquire(c *transport.Call, r *Request)
	// Decode decodes its reply. An error that wraps transport.ErrBadReply means an invalid reply,
	// another error a refusal.
	Decode(reply any) (Outcome, error)
}

// Foreigner is a kind that can recognize another program's key, which is never freed. Its methods
// are about the key that refused the last attempt.
type Foreigner interface {
	// LookForeign fills c, a reset call, with a read-only call.
	LookForeign(c *transport.Call)
	// Foreign decodes its reply: a field of the key, and true if it certainly is not a lock.
	Foreign(reply any) (field string, foreign bool)
}

// Transferable is a kind whose locks can be transferred in the process.
type Transferable interface {
	Waitable
	// Transfer fills c, a reset call, with an attempt that replaces owner from, if it holds the
	// lock, by that of r, which never has. Both are of this process alone. Decode decodes the
	// reply; after a refusal nothing has changed.
	Transfer(c *transport.Call, r *Request, from any)
}

// Claim is an owner on behalf of which attempts are made, until it is granted, dropped or
// abandoned. As a resolver, it handles abandoned attempts.
type Claim interface {
	engine.Resolver
	// ID returns the claim's owner, the zero Owner for kinds with IDs.
	ID() codec.Owner
	// Request returns the arguments of the next attempt. It must not be changed.
	Request() *Request
	// Asks brackets an attempt; true comes before Request.
	Asks(yes bool)
	// Grant makes the claim a hold, for an attempt sent at sent. After an error, the claim has
	// released the lock.
	Grant(sent time.Time, o Outcome) error
	// Fail records that an attempt failed.
	Fail()
	// Disown removes all traces of an attempt from the server, in the background.
	Disown()
	// Drop ends a claim that was not granted.
	Drop()

	// Place returns the arguments that remove the owner from a queue on the server. Placed
	// records that the server has put it there, just now or earlier.
	Place() Request
	Placed(now bool)

	// KeepTurn keeps the turn as long as the hold. It returns false if the hold has ended: the
	// caller keeps the turn.
	KeepTurn(t Turn) bool
	// PassWhenResolved keeps the turn until the last attempt is resolved. It returns false if it
	// is: the caller keeps the turn.
	PassWhenResolved(t Turn) bool
	// KeepSubscription keeps s until the hold is released.
	KeepSubscription(s Reusable)

	// Settle returns the result of an attempt that failed with err, which wraps ErrUncertain: err,
	// or a late reply if the server cannot undo the attempt. If ctx has ended, it waits for that
	// for up to [Overdue].
	Settle(ctx context.Context, err error) (reply any, _ error)
	// Replicated waits until enough replicas have the lock. On failure, the claim releases it.
	Replicated(ctx context.Context) error
}

// BareClaim implements the methods of a [Claim] that need an owner, a place in a queue or a turn,
// for claims without these.
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

// Claims makes the claims of a call: the first, and another when its owner cannot be used again.
type Claims interface {
	// Claim returns a claim for a new owner, or for that of s if it is not nil.
	Claim(s Reusable) Claim
}

// Strategy is how the callers in a process wait for one lock. It is safe for concurrent use.
type Strategy interface {
	// Waiter returns the waiter of a. The loop ends it with Granted or Leave.
	Waiter(a *Acquisition) Waiter
}

// Waiter is one waiting caller. Its methods run on the caller's goroutine.
type Waiter interface {
	// Enter returns when the caller may make an attempt, or true if it has the lock already. It
	// may block in [Acquisition.Sleep] and in calls that end with ctx.
	Enter(ctx context.Context, a *Acquisition) (granted bool, err error)

	// Listen subscribes the caller. If it returns nil without that, sleeps must be short.
	Listen(ctx context.Context, a *Acquisition) error
	// Signals returns what wakes the caller: subscription events and the strategy's wake-ups; nil
	// for none.
	Signals() (events <-chan transport.Event, wake <-chan struct{})
	// OnEvent handles an event; Woken handles a wake-up. If ask is true, the caller makes an attempt;
	// otherwise it sleeps on, for d if that is positive.
	OnEvent(e transport.Event) (ask bool, d time.Duration)
	Woken() (ask bool, d time.Duration)
	// Broken returns why the subscription has ended.
	Broken() error

	// Refused handles a refusal, and returns the known rest of the holder's lease.
	Refused(a *Acquisition, o Outcome) time.Duration
	// Sleep returns how long the caller sleeps without a signal, by default nap. A negative
	// duration means no limit.
	Sleep(nap, ttl time.Duration) time.Duration
	// Unanswered records why Redis did not answer.
	Unanswered(err error)
	// Abandon says that the claim's owner, whose state is unknown, is left to its resolver.
	Abandon()

	// Granted ends the wait after a grant, Leave without one.
	Granted(a *Acquisition)
	Leave(a *Acquisition)
}

// Signal sends to c, which has room for one signal, unless that is pending or c is nil.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Turn is the right of one caller of a process to send calls about a lock. The hold keeps it, and
// passes it on exactly once.
type Turn interface {
	// Pass passes the turn to the next caller. Released: the lock is being released.
	Pass(released bool)
	// Transfer passes the turn and the lock of owner to the next caller. It returns nil, without
	// effect, if there is none.
	Transfer(owner any) *Transfer
}

// Transfer passes a lock from its holder to the next caller in the process, in one step and
// together with the turn. Its last receiver settles it once.
type Transfer struct {
	owner   any // of the lock until it is taken over, boxed
	pool    *sync.Pool
	settled chan error // room for one
	timer   *time.Timer
}

// NewTransfer returns a transfer of owner's lock from pool. Wait or Free returns it there.
func NewTransfer(pool *sync.Pool, owner any) *Transfer {
	t, ok := pool.Get().(*Transfer)
	if !ok {
		t = &Transfer{pool: pool, settled: make(chan error, 1), timer: time.NewTimer(time.Hour)}
		t.timer.Stop()
	}
	t.owner = owner
	return t
}

// Settle sends the holder the outcome: nil if the lock was taken over, ErrLost if it was not held,
// ErrNotSent if nothing happened; any other error leaves it open.
func (t *Transfer) Settle(outcome error) { t.settled <- outcome }

// Wait returns the outcome, or after bound an error that wraps ErrUncertain.
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

// taken settles the transfer with the outcome of its attempt. It returns true if the holder did
// not have the lock: the caller tries again.
func (t *Transfer) taken(k Waitable, reply any, err error) (again bool, _ error) {
	if err != nil {
		plain := err // without why the next caller left
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

// Reusable is an owner and its subscription, which another acquisition can use after the release.
type Reusable interface {
	// Owner returns the owner, and its text, boxed.
	Owner() (codec.Owner, any)
	// Put offers both to other acquisitions.
	Put()
	// Close ends the subscription.
	Close()
}

// Alone returns a waiter without a queue, with its own attempts and subscription. It is for shared
// owners: two callers with one owner don't exclude each other.
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
