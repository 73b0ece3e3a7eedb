package rlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
)

type acquisition struct {
	acquire.Acquisition
	lock    *hold.Lock
	set     hold.Terms
	hold    *Hold // result
	reentry bool
}

var acquisitions = sync.Pool{New: func() any { return &acquisition{} }}

func (l *Lock) acquire(ctx context.Context, op string, opts []Option) (*Hold, error) {
	engine.NeedContext(ctx)
	a, _ := acquisitions.Get().(*acquisition)
	a.of(hold.Of(l), op)
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

func (a *acquisition) of(l *hold.Lock, op string) {
	a.lock, a.Engine, a.Kind, a.Lock, a.Op = l, l.Engine, l.Kind, l.Name, op
}

func (a *acquisition) begin(ctx context.Context, opts []Option) error {
	l := a.lock
	if l.Err != nil {
		return l.Err
	}
	var err error
	if a.set, err = hold.Ask(l, opts); err != nil {
		return err
	}
	if a.set.Bounded && a.Op == "try-lock" {
		return fmt.Errorf("%w: TryLock does not wait; use Lock with WithWait", redlatch.ErrInvalid)
	}
	// This comes before ctx's own error, because the proof knows why the hold ended.
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
		a.set.Try = a.Op == "try-lock" || a.set.Bounded
		return a.choose(ctx, outer)
	}
	ctx, cancel := a.Within(ctx, a.set.Bound)
	defer cancel()
	return a.choose(ctx, outer)
}

// proof returns nil if an owner was given.
func (a *acquisition) proof(ctx context.Context) (*hold.Hold, error) {
	if a.set.Given {
		return nil, nil
	}
	return a.lock.Proof(ctx)
}

func (a *acquisition) choose(ctx context.Context, outer *hold.Hold) error {
	for outer != nil {
		a.hold, a.reentry = &Hold{}, true
		hold.Of(a.hold).Observe(a.Observed)
		err := hold.Of(a.hold).Reenter(ctx, a.lock, &a.set, outer)
		if !errors.Is(err, hold.ErrNotReentered) {
			return err
		}
		a.hold, a.reentry = nil, false
		if errors.Is(err, hold.ErrSharedOwner) {
			a.set.Owner, a.set.Given = outer.ID(), true
			break
		}
		next, err := a.proof(ctx) // an outer hold, if outer was unlocked
		if err != nil {
			return err
		}
		if next == outer {
			break // this kind does not support re-entry
		}
		outer = next
	}
	a.Claims, a.Try, a.Given, a.Poll = a, a.set.Try, a.set.Given, a.set.Poll
	return a.Run(ctx, a.lock.Strategy)
}

func (a *acquisition) Claim(s acquire.Reusable) acquire.Claim {
	a.hold = &Hold{}
	var owner codec.Owner
	var text any
	if s != nil {
		owner, text = s.Owner()
	}
	h := hold.Of(a.hold)
	h.Init(a.lock, &a.set, owner, text)
	return h
}

func (a *acquisition) failed(err error) error {
	le := &redlatch.LockError{Op: a.Op, Name: a.lock.Name, Err: engine.Explain(err)}
	if a.hold != nil {
		le.Owner = hold.Of(a.hold).ID()
	}
	if errors.Is(err, redlatch.ErrNotAcquired) {
		least := redlatch.NoTTL // the lock never expires
		if _, queues := a.Kind.(hold.Queueing); queues {
			least = 0 // the TTL may be unknown
		}
		le.Holder, le.TTL = a.Holder, max(a.TTL, least)
	}
	return le
}

func (a *acquisition) observed(err error) {
	if err != nil {
		a.ObserveFailed(err)
	} else if a.Engine.Hooks.Acquired != nil {
		h := hold.Of(a.hold)
		e := a.Acquired(h.ID())
		e.Reentry = a.reentry
		h.ObserveAcquired(a.Observed, e)
	}
}

// Option configures one acquisition of any kind of lock or of permits. An option that a kind does not
// support results in ErrInvalid. A nil Option does nothing.
type Option func(*settings)

type settings = hold.Terms

// WithWait limits how long Lock waits before it returns ErrNotAcquired. d must be at least 1 ms, or
// 0 for a single attempt. The first attempt always has half a second for its reply. By default only
// the context limits the wait. Redisson calls it waitTime.
func WithWait(d time.Duration) Option {
	return func(a *settings) { a.Bound, a.Bounded = d, true }
}

// WithPolling makes Lock poll every d instead of subscribing, like Redisson's getSpinLock. d must
// be at least 1 ms. Each pause is randomly shortened by up to an eighth. Use it for servers without
// pub/sub, and for locks that getSpinLock releases without a message. It has no effect on TryLock,
// which does not wait. Only plain and fenced locks support it.
func WithPolling(d time.Duration) Option {
	return func(a *settings) { a.Poll, a.Polled = d, true }
}

// WithLease acquires the lock for d (at least 1 ms) without renewal: the hold is lost after d less
// the loss margin. By default the lease is the client's watchdog timeout and is renewed. Redisson
// calls it leaseTime.
func WithLease(d time.Duration) Option {
	return func(a *settings) { a.TTL, a.Fixed = d, true }
}

// WithWatchdog acquires the lock with a lease of d (at least 1 s) that is renewed every d/3. A
// short lease frees the lock of a crashed holder sooner. To change the lease of all of a client's
// locks, prefer redlatch.WithWatchdogTimeout.
func WithWatchdog(d time.Duration) Option {
	return func(a *settings) { a.TTL, a.Watchdog = d, true }
}

// WithMaxHold limits a hold to d (at least 1 ms): its contexts then end with ErrMaxHold, and the
// lock becomes free at Unlock or when its lease expires. It cannot be combined with WithLease. By
// default holds are not limited.
func WithMaxHold(d time.Duration) Option {
	return func(a *settings) { a.Max, a.Capped = d, true }
}

// WithOwner acquires the lock for owner, obtained from codec.NewOwner or codec.ParseOwner, instead of
// for a new owner. Callers with the same owner share the lock: acquiring adds one to its count,
// unlocking subtracts one. A hold's context then does not re-enter the hold. Do not use WithOwner with
// the owner of a live hold that has not been handed over: unlocking that hold releases the lock
// regardless of the count.
//
// If the reply is lost, Lock returns ErrUncertain and does not undo the attempt, since another caller
// may hold the lock as this owner. The zero Owner results in ErrInvalid.
func WithOwner(owner codec.Owner) Option {
	return func(a *settings) { a.Owner, a.Given = owner, true }
}
