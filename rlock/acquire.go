package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/localqueue"
	"github.com/redlatch/redlatch/transport"
)

// acquisition is one call of Lock or TryLock on its way to a hold.
type acquisition struct {
	lock     *Lock
	op       string
	set      settings
	outer    *Hold                // what the context proves, if anything
	hold     *Hold                // what this becomes when the lock is acquired
	line     *localqueue.Queue    // set while this has the turn
	transfer *localqueue.Transfer // the lock that came with it, until it was asked for
	seat     *engine.Seat         // set while this stands in the server's queue

	// The channel that this listens to, on its own or the line's subscription.
	sub     transport.Subscription
	channel string
	spare   *engine.Spare // that it came with, if it did

	ttl      time.Duration   // what the holder had left at the last answer
	holder   codec.Owner     // who that was, if known
	attempts int             // how often Redis was asked
	passed   bool            // the turn came with the lock, from a hold of this client
	inner    bool            // this is a re-entry
	slot     bool            // this is counted among those who wait
	away     error           // why the last attempt got no answer, nil when it got one
	doubtful *Hold           // what the last attempt was for, if its outcome is open
	began    time.Time       // when the call began
	caller   context.Context //nolint:containedctx // the caller's, without the bound on the wait
	waited   bool            // Redis is known to have answered while this waited
}

// acquire is Lock and TryLock.
func (l *Lock) acquire(ctx context.Context, op string, opts []Option) (*Hold, error) {
	engine.NeedContext(ctx)
	a := acquisition{lock: l, op: op, began: time.Now()}
	hold, err := a.begin(ctx, opts)
	if a.slot {
		l.engine.EndWait()
	}
	if err != nil {
		err = a.failed(err)
		if !a.inner {
			a.hold.drop()
		}
	}
	a.observed(hold, err)
	return hold, err
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
	// A proof of a hold that is over says more than the context that ended with it.
	if a.outer, err = a.proof(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%w: %w", redlatch.ErrNotSent, engine.EndOf(ctx))
	}
	if err := l.engine.Enter(); err != nil {
		return nil, err
	}
	defer l.engine.Leave()
	l.engine.Announce()
	if !a.set.bounded || a.set.wait <= 0 {
		return a.choose(ctx)
	}
	a.caller = ctx
	ctx, cancel := context.WithTimeoutCause(ctx, a.set.wait, engine.ErrWaitOver)
	defer cancel()
	return a.choose(ctx)
}

// choose takes the way in: re-entry with a proof, at once for a given owner,
// since two users of one owner do not exclude each other, else by the queue.
func (a *acquisition) choose(ctx context.Context) (*Hold, error) {
	if a.outer != nil && a.set.owner.IsZero() {
		hold, err := a.reenter(ctx, a.outer)
		if !errors.Is(err, errNoWayBack) {
			return hold, err
		}
	}
	hold, err := a.take(ctx)
	if err == nil && a.lock.engine.Replicas > 0 {
		return a.replicated(ctx, hold)
	}
	return hold, err
}

// take takes the lock for an owner that does not hold it here.
func (a *acquisition) take(ctx context.Context) (*Hold, error) {
	switch {
	case a.lock.proto.Queues():
		return a.queueThere(ctx)
	case !a.set.owner.IsZero():
		return a.run(ctx)
	}
	return a.queue(ctx)
}

// waits reports whether the caller wants to wait for a lock that is held.
func (a *acquisition) waits() bool {
	return a.op != "trylock" && (!a.set.bounded || a.set.wait > 0)
}

// run makes the first attempt, and waits when that finds the lock held.
func (a *acquisition) run(ctx context.Context) (*Hold, error) {
	if a.hold == nil || !a.lock.proto.Queues() {
		a.fresh()
	}
	held, err := a.open(ctx)
	switch {
	case held:
		return a.hold, nil
	case err != nil:
		return nil, withEnd(ctx, err)
	case !a.waits():
		return nil, redlatch.ErrNotAcquired
	}
	if err := a.beginWait(); err != nil {
		return nil, err
	}
	if !a.lock.proto.Queues() {
		defer a.deafen() // else the subscription may be of use to others
	}
	return a.wait(ctx)
}

// beginWait counts this in among those who wait, once and until the call ends.
func (a *acquisition) beginWait() error {
	if a.slot {
		return nil
	}
	if err := a.lock.engine.BeginWait(); err != nil {
		return fmt.Errorf("%w: %w", redlatch.ErrNotAcquired, err)
	}
	a.slot = true
	return nil
}

// open makes the first attempt. While Redis does not answer it tries for one
// command timeout since the call began; a caller who has waited already rides it
// out.
func (a *acquisition) open(ctx context.Context) (bool, error) {
	e := a.lock.engine
	if a.line != nil && !a.waited {
		// Those before have just failed. An attempt of one's own would end long
		// after a command timeout since the call began.
		if away := a.line.State().Away; away != nil && time.Since(a.began) >= e.Command/2 {
			return false, away
		}
	}
	var held bool
	began := a.began
	if a.waited {
		began = time.Now()
	}
	first, cancel := a.first(ctx)
	defer cancel()
	err := e.RetrySince(ctx, began, func() (err error) {
		held, err = a.attempt(first)
		return err
	})
	if err == nil {
		return held, nil
	}
	if a.waited && a.cutShort(ctx, err, began) {
		return false, a.gaveUp(ctx) // its turn came as it left
	}
	if a.rides(err) {
		if a.line != nil {
			a.line.Away(err)
		}
		if a.waited && ctx.Err() == nil {
			a.away = err
			return false, nil
		}
	}
	return false, err
}

// first returns the context of the first attempt. A wait that is shorter than a
// reply may take does not cut it short: nobody could be told whether the lock is held.
func (a *acquisition) first(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.caller == nil || a.set.wait >= overdue || a.waited {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(a.caller, overdue-time.Since(a.began), engine.ErrWaitOver)
}
