package rlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
)

// acquisition is one call of Lock or TryLock on its way to a hold.
type acquisition struct {
	acquire.Acquisition
	lock    *hold.Lock
	set     hold.Asked
	hold    *Hold // what this becomes when the lock is acquired
	reentry bool
}

// acquisitions are acquisitions to use again: a call would allocate one.
var acquisitions = sync.Pool{New: func() any { return &acquisition{} }}

// acquire is Lock and TryLock.
func (l *Lock) acquire(ctx context.Context, op string, opts []Option) (*Hold, error) {
	engine.NeedContext(ctx)
	a, _ := acquisitions.Get().(*acquisition) // it is one
	a.of(l.Internal(), op)
	a.Start(ctx, 1)
	err := a.begin(ctx, opts)
	h := a.hold
	if err != nil {
		h, err = nil, a.failed(err)
	}
	a.observed(err)
	*a = acquisition{}
	acquisitions.Put(a)
	return h, err
}

// of says what the call is about.
func (a *acquisition) of(l *hold.Lock, op string) {
	a.lock, a.Engine, a.Kind, a.Lock, a.Op = l, l.Engine, l.Kind, l.Name, op
}

// begin checks everything that can be checked before something is sent.
func (a *acquisition) begin(ctx context.Context, opts []Option) error {
	l := a.lock
	if l.Err != nil {
		return l.Err
	}
	var err error
	if a.set, err = hold.Ask(l, opts); err != nil {
		return err
	}
	if a.set.Bounded && a.Op == "trylock" {
		return fmt.Errorf("%w: TryLock does not wait, use Lock with WithWait", redlatch.ErrInvalid)
	}
	// A proof of a hold that is over says more than the context that ended with it.
	outer, err := a.proof(ctx)
	if err != nil {
		return err
	}
	if err := acquire.Check(ctx, nil); err != nil {
		return err
	}
	if err := l.Engine.Enter(); err != nil {
		return err
	}
	defer l.Engine.Leave()
	l.Engine.Announce()
	if a.set.Bound <= 0 {
		a.set.Try = a.Op == "trylock" || a.set.Bounded
		return a.choose(ctx, outer)
	}
	ctx, cancel := a.Within(ctx, a.set.Bound)
	defer cancel()
	return a.choose(ctx, outer)
}

// proof returns the hold that ctx proves. It counts for nothing with an owner that is given.
func (a *acquisition) proof(ctx context.Context) (*hold.Hold, error) {
	if a.set.Given {
		return nil, nil
	}
	return a.lock.Proof(ctx)
}

// choose takes the way in: re-entry with a proof, else as the lock's callers wait.
func (a *acquisition) choose(ctx context.Context, outer *hold.Hold) error {
	for outer != nil {
		a.hold, a.reentry = &Hold{}, true
		a.hold.Internal().Observe(a.Observed)
		err := a.hold.Internal().Reenter(ctx, a.lock, &a.set.Terms, outer)
		if !errors.Is(err, hold.ErrNotReentered) {
			return err
		}
		a.hold, a.reentry = nil, false
		if errors.Is(err, hold.ErrSharedOwner) {
			a.set.Owner, a.set.Given = outer.ID(), true
			break
		}
		next, err := a.proof(ctx) // of a hold further out, if that one was given up
		if err != nil {
			return err
		}
		if next == outer {
			break // of a kind within which this one has no role
		}
		outer = next
	}
	a.Claims, a.Try, a.Given = a, a.set.Try, a.set.Given
	a.Poll, a.Deaf = a.set.Poll, a.set.Deaf
	return a.Run(ctx, a.lock.Strategy)
}

func (a *acquisition) Claim(s acquire.Reusable) acquire.Claim {
	a.hold = &Hold{}
	h := a.hold.Internal()
	h.Init(a.lock, &a.set.Terms, s)
	return h
}

// failed makes the error of the call out of what went wrong.
func (a *acquisition) failed(err error) error {
	le := &redlatch.LockError{Op: a.Op, Name: a.lock.Name, Err: engine.Explain(err)}
	if a.hold != nil {
		le.Owner = a.hold.Internal().ID()
	}
	if errors.Is(err, redlatch.ErrNotAcquired) {
		least := redlatch.NoTTL // that of a lock that never expires
		if _, queues := a.Kind.(hold.Queueing); queues {
			least = 0 // it may stand for one that is not known
		}
		le.Holder, le.TTL = a.Holder, max(a.TTL, least)
	}
	return le
}

// observed tells the observer, if there is one, how an acquisition went.
func (a *acquisition) observed(err error) {
	if err != nil {
		a.ObserveFailed(err)
	} else if a.Engine.Hooks.Acquired != nil {
		h := a.hold.Internal()
		e := a.Acquired(h.ID())
		e.Reentry = a.reentry
		h.ObserveAcquired(a.Observed, e)
	}
}

// Option sets something about one acquisition. A nil one sets nothing.
type Option func(*settings)

type settings = hold.Asked

// WithWait bounds how long Lock waits for the lock, besides its context. When
// the time runs out Lock returns ErrNotAcquired. The first attempt has half a second
// for its answer, also when the wait is shorter. At least 1 ms; with 0 Lock makes one
// attempt, however long the answer takes. Anything else, such as a number without a unit,
// gives ErrInvalid, and nothing is sent: round a wait that is computed, as in
// max(0, time.Until(end).Truncate(time.Millisecond)). Default: no bound. It is the first
// argument of Redisson's tryLock(waitTime, leaseTime, unit).
func WithWait(d time.Duration) Option {
	return func(a *settings) { a.Bound, a.Bounded = d, true }
}

// WithPollCap bounds for how long Lock sleeps without asking Redis, in place of the client's poll
// cap, redlatch.WithPollCap. At least 1 ms. A short one is for locks that are freed without a
// message, such as those that Redisson's getSpinLock has held: the waiter gets such a lock d
// later at most, and costs one EVALSHA each d. Of the callers of one process the one that has the
// turn polls. Redisson has no counterpart.
func WithPollCap(d time.Duration) Option {
	return func(a *settings) { a.Poll, a.Polled = d, true }
}

// WithoutWakeUps makes Lock wait without a subscription: it asks Redis once each d, up to an
// eighth sooner, and when the holder's lease should be over. At least 1 ms. It is for servers
// without pub/sub, and for very many locks of which hardly one is waited for. Unlock still
// publishes, so that other waiters, Redisson's among them, are woken; beside such a caller that
// polls comes late. For the plain and the fenced lock; with others, and with [WithPollCap], it
// gives ErrInvalid: a fair waiter without a subscription counts as dead. It is Redisson's
// getSpinLock, whose waiters ask every 1 to 128 ms.
func WithoutWakeUps(d time.Duration) Option {
	return func(a *settings) { a.Poll, a.Deaf = d, true }
}

// WithLease takes the lock for d and does not renew it: the hold is lost when d,
// less the loss margin, is over. At least 1 ms, cut to whole milliseconds.
// Default: a lease that is renewed. It is the lease time of Redisson's
// lock(leaseTime, unit).
func WithLease(d time.Duration) Option {
	return func(a *settings) { a.TTL, a.Fixed = d, true }
}

// WithWatchdog takes the lock with a lease of d that is renewed every third of
// it, in place of the client's watchdog timeout. At least 1 s, so that a lost packet
// does not cost the lock; cut to whole milliseconds. A short one frees the lock of a
// crashed holder soon. A client whose locks all have one does better with
// redlatch.WithWatchdogTimeout, after which its connection is also sooner given up
// when replies stay out. Redisson has one such time for each client,
// lockWatchdogTimeout.
func WithWatchdog(d time.Duration) Option {
	return func(a *settings) { a.TTL, a.Watchdog = d, true }
}

// WithMaxHold ends the hold d after it was acquired, however well it is renewed:
// renewals stop, and its contexts end with ErrMaxHold. The lock is free when the
// lease that is left then has run out, or when it is unlocked. At least 1 ms. It
// is for renewed leases: with WithLease it gives ErrInvalid. Default: no
// maximum. Redisson has no counterpart.
func WithMaxHold(d time.Duration) Option {
	return func(a *settings) { a.Max, a.Capped = d, true }
}

// WithOwner acquires the lock for owner, instead of an owner of its own: every caller that
// uses the same owner holds the lock, too, as two calls on one thread do in Redisson. It is
// for owners that travel, with a job or a request; see redlatch.ParseOwner. It must not be the
// owner of a hold that lives and was not handed over: giving that up frees the lock
// whatever the count. What [Hold.Owner] returned may become the owner of another hold; what
// [Hold.HandOver] returned, and an owner of redlatch.NewOwner, does not. Holds of one client under one owner know of each other, and none
// shortens another's lease; what other clients do with the owner they cannot know.
// Acquiring counts one more, unlocking one less, as in Redisson. When the reply is lost,
// ErrUncertain is returned and nothing is undone, because another caller may hold the
// lock for the same owner. The zero Owner gives ErrInvalid.
func WithOwner(owner redlatch.Owner) Option {
	return func(a *settings) { a.Owner, a.Given = owner, true }
}
