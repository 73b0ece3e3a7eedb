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
	op      string
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
	a.lock, a.op, a.Began = l.Internal(), op, time.Now()
	a.started(ctx)
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
	if a.set.Bounded && a.op == "trylock" {
		return fmt.Errorf("%w: TryLock does not wait, use Lock with WithWait", redlatch.ErrInvalid)
	}
	// A proof of a hold that is over says more than the context that ended with it.
	outer, err := a.proof(ctx)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", redlatch.ErrNotSent, engine.EndOf(ctx))
	}
	if err := l.Engine.Enter(); err != nil {
		return err
	}
	defer l.Engine.Leave()
	l.Engine.Announce()
	if a.set.Bound <= 0 {
		a.set.Try = a.op == "trylock" || a.set.Bounded
		return a.choose(ctx, outer)
	}
	if a.set.Bound < acquire.Overdue {
		a.Unbounded = ctx
	}
	ctx, cancel := context.WithTimeoutCause(ctx, a.set.Bound, engine.ErrWaitOver)
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
	a.Engine, a.Kind, a.Lock = a.lock.Engine, a.lock.Kind, a.lock.Name
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
	le := &redlatch.LockError{Op: a.op, Name: a.lock.Name, Err: engine.Explain(err)}
	if a.hold != nil {
		le.Owner = a.hold.Internal().ID()
	}
	if errors.Is(err, redlatch.ErrNotAcquired) {
		le.Holder, le.TTL = a.Holder, max(a.TTL, a.leastTTL())
	}
	return le
}

// leastTTL is the least time left that an error tells of: that of a lock that never expires. With a
// queue on the server it may stand for one that is not known.
func (a *acquisition) leastTTL() time.Duration {
	if _, queues := a.lock.Kind.(hold.Queueing); queues {
		return 0
	}
	return redlatch.NoTTL
}

// started tells the observer, if there is one, that an acquisition has begun.
func (a *acquisition) started(ctx context.Context) {
	hooks := &a.lock.Engine.Hooks
	if hooks.Started != nil {
		a.Observed = hooks.Started(ctx, engine.Started{Op: a.op, Name: a.lock.Name, Kind: a.lock.Kind.Name(), Locks: 1})
	}
}

// observed tells the observer, if there is one, how an acquisition went.
func (a *acquisition) observed(err error) {
	hooks := &a.lock.Engine.Hooks
	wait := time.Since(a.Began)
	if tell := hooks.NotAcquired; err != nil && tell != nil {
		tell(a.Observed, engine.NotAcquired{
			Op: a.op, Name: a.lock.Name, Kind: a.lock.Kind.Name(), Wait: wait, Attempts: a.Attempts, Err: err,
		})
	}
	if err == nil && hooks.Acquired != nil {
		h := a.hold.Internal()
		h.ObserveAcquired(a.Observed, engine.Acquired{
			Op: a.op, Name: a.lock.Name, Kind: a.lock.Kind.Name(), Owner: h.ID(), Wait: wait,
			Attempts: a.Attempts, Reentry: a.reentry, Transferred: a.Passed,
		})
	}
}
