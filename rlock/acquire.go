package rlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/core"
	"github.com/redlatch/redlatch/transport"
)

// errWaitOver is the cause with which WithWait ends a wait.
var errWaitOver = errors.New("the time of WithWait ran out")

// acquisition is one call of Lock or TryLock on its way to a hold.
type acquisition struct {
	lock *Lock
	op   string
	set  settings
	hold *Hold // what this becomes when the lock is acquired

	ttl  time.Duration // what the holder had left at the last answer
	away error         // why the last attempt got no answer, nil when it got one
}

// acquire is Lock and TryLock.
func (l *Lock) acquire(ctx context.Context, op string, opts []Option) (*Hold, error) {
	a := acquisition{lock: l, op: op}
	hold, err := a.begin(ctx, opts)
	if err != nil {
		return nil, a.failed(err)
	}
	return hold, nil
}

// begin checks everything that can be checked before something is sent.
func (a *acquisition) begin(ctx context.Context, opts []Option) (*Hold, error) {
	l := a.lock
	if l.err != nil {
		return nil, l.err
	}
	var err error
	if a.set, err = configure(l.engine, opts); err != nil {
		return nil, err
	}
	if a.set.bounded && a.op == "trylock" {
		return nil, fmt.Errorf("%w: TryLock does not wait, use Lock with WithWait", codec.ErrBadWait)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%w: %w", redlatch.ErrNotSent, ended(ctx))
	}
	if err := l.engine.Enter(); err != nil {
		return nil, err
	}
	defer l.engine.Leave()
	a.fresh()
	if !a.set.bounded || a.set.wait <= 0 {
		return a.run(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, a.set.wait, errWaitOver)
	defer cancel()
	return a.run(ctx)
}

// waits reports whether the caller wants to wait for a lock that is held.
func (a *acquisition) waits() bool {
	return a.op != "trylock" && (!a.set.bounded || a.set.wait > 0)
}

// run makes the first attempt, and waits when that finds the lock held.
func (a *acquisition) run(ctx context.Context) (*Hold, error) {
	var held bool
	err := a.lock.engine.Retry(ctx, func() (err error) {
		held, err = a.attempt(ctx)
		return err
	})
	switch {
	case held:
		return a.hold, nil
	case err != nil:
		return nil, withEnd(ctx, err)
	case !a.waits():
		return nil, redlatch.ErrNotAcquired
	}
	sub, err := a.subscribe(ctx)
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	return a.wait(ctx, sub)
}

// wait tries again whenever the lock may have become free, until it is acquired
// or there is a reason to stop.
func (a *acquisition) wait(ctx context.Context, sub transport.Subscription) (*Hold, error) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var pause core.Backoff
	for {
		began := time.Now()
		held, err := a.attempt(ctx)
		switch {
		case held:
			return a.hold, nil
		case err == nil:
			pause = core.Backoff{}
			timer.Reset(a.nap())
		case a.cutShort(ctx, err, began):
			return nil, a.gaveUp(ctx)
		case a.rides(err):
			// Redis is away, which is no reason to stop waiting.
			a.away = err
			timer.Reset(pause.Next())
		default:
			return nil, err
		}
		if err := a.sleep(ctx, sub, timer); err != nil {
			return nil, err
		}
	}
}

// overdue is how long a reply may take before its absence says something about
// Redis.
const overdue = 500 * time.Millisecond

// cutShort reports whether an attempt that began a moment ago has no outcome
// only because the wait was over. That is no sign of trouble: when Redis was
// last asked, just before, somebody else had the lock.
func (a *acquisition) cutShort(ctx context.Context, err error, began time.Time) bool {
	return a.away == nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) && time.Since(began) < overdue
}

// sleep waits for a reason to try again. It returns an error when there is a
// reason to stop.
func (a *acquisition) sleep(ctx context.Context, sub transport.Subscription, timer *time.Timer) error {
	select {
	case _, works := <-sub.Events():
		if !works {
			return sub.Err()
		}
	case <-timer.C:
	case <-ctx.Done():
		return a.gaveUp(ctx)
	case <-a.lock.engine.Closing():
		return redlatch.ErrClosed
	}
	return nil
}

// nap returns how long to sleep without a message: until the holder's lease
// should be over, the poll cap at most. A lock with no time left is asked for
// again soon, but never at once.
func (a *acquisition) nap() time.Duration {
	limit := a.lock.engine.PollCap
	switch {
	case a.ttl < 0:
		return limit
	case a.ttl == 0:
		return min(limit, 10*time.Millisecond+rand.N(40*time.Millisecond)) //nolint:gosec // spreading load needs no secrets
	}
	return min(limit, a.ttl+time.Millisecond)
}

// rides reports whether a waiter that met err goes on waiting.
func (a *acquisition) rides(err error) bool {
	return core.Passing(err) || errors.Is(err, redlatch.ErrUncertain) && !errors.Is(err, redlatch.ErrClosed)
}

// subscribe listens to the lock's channel, however long it takes to reach Redis.
func (a *acquisition) subscribe(ctx context.Context) (transport.Subscription, error) {
	e := a.lock.engine
	open, cancel := e.Open(ctx) // ends with the client, too
	defer cancel()
	var pause core.Backoff
	for {
		sub, err := e.Transport.Subscribe(open, a.lock.proto.Channel(&a.hold.acq))
		switch {
		case err == nil:
			return sub, nil
		case e.IsClosing():
			return nil, redlatch.ErrClosed
		case ctx.Err() != nil:
			return nil, a.gaveUp(ctx)
		case !a.rides(err):
			return nil, err
		}
		a.away = err
		if !e.Sleep(ctx, pause.Next()) && e.IsClosing() {
			return nil, redlatch.ErrClosed
		}
	}
}

// gaveUp returns why the wait ended with ctx.
func (a *acquisition) gaveUp(ctx context.Context) error {
	switch {
	case a.away != nil:
		return withEnd(ctx, a.away)
	case errors.Is(context.Cause(ctx), errWaitOver):
		return redlatch.ErrNotAcquired
	}
	return fmt.Errorf("%w: %w", redlatch.ErrNotAcquired, ended(ctx))
}

// failed makes the error of the call out of what went wrong.
func (a *acquisition) failed(err error) error {
	le := &redlatch.LockError{Op: a.op, Name: a.lock.name, Err: core.Explain(err)}
	if a.hold != nil {
		le.Owner = a.hold.owner
	}
	if errors.Is(err, redlatch.ErrNotAcquired) {
		le.TTL = max(a.ttl, 0)
	}
	return le
}

// ended returns the context's error, with its cause where that is another.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// withEnd adds the context's error to err if ctx has ended and err does not say.
func withEnd(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ctx.Err()) || errors.Is(context.Cause(ctx), errWaitOver) {
		return err
	}
	return fmt.Errorf("%w: %w", err, ended(ctx))
}
