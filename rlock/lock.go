// Package rlock provides Redisson's lock, RLock (getLock), which only one owner across all processes can
// hold at a time. The client renews the holder's lease, so a long job keeps its lock, and the lock of a
// crashed process becomes free after one lease, 30 seconds by default. For jobs that run at most once
// per period, see [Hold.LetExpire].
//
//	orders := rlock.New(client, "orders:42")
//	err := orders.Do(ctx, func(ctx context.Context) error {
//		return ship(ctx) // ctx ends when the lock is lost
//	})
//
// A [Hold] and its contexts end before the server can grant the lock to another owner. If the lock was
// forcibly removed or lost in a failover, the hold ends at its next renewal; use package rfencedlock if
// work must not be done twice. If a caller stops waiting, the client undoes the acquisition in the
// background. Callers in one process are served in order; with package rfairlock, callers in all
// processes are.
package rlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/kind"
	"github.com/redlatch/redlatch/internal/localqueue"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Lock is a named lock, safe for concurrent use. All Locks with the same name are the same lock. Each
// acquisition has a new owner, so goroutines exclude each other, unless they share the context of a hold;
// see [Hold.Context]. Errors are of type *redlatch.LockError.
type Lock struct{ lockHandle }

type lockHandle = hold.LockHandle

// New returns the lock with this name, like Redisson's getLock. It sends nothing. If the name is invalid,
// every call returns redlatch.ErrInvalid.
func New(client *redlatch.Client, name string) *Lock {
	l := &Lock{}
	*hold.Of(&l.lockHandle) = hold.NewLock(engine.EngineOf(client), name, makePlain)
	return l
}

func makePlain(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
	k := kind.NewPlain(e, mapped, luasrc.Tokens{})
	return k, localqueue.New(e, k)
}

// Name returns the name given to New.
func (l *Lock) Name() string { return hold.Of(l).Name }

// Lock waits until the lock is free and acquires it. ctx bounds only the wait, not the hold. The lease is
// renewed until Unlock, unless WithLease is given. With the context of a hold of this lock, Lock
// re-enters that hold; see [Hold.Context]. It sends one EVALSHA if the lock is free; a waiting Lock also
// subscribes, and keeps waiting while Redis is unreachable or temporarily rejects calls.
//
// Errors:
//   - ErrNotAcquired: WithWait or ctx ended the wait (ctx's error is joined), or the limit of
//     redlatch.WithMaxWaiters was reached
//   - ErrNotSent: ctx had ended, or the first attempt did not reach Redis within one command timeout
//   - ErrUncertain: the reply to the first attempt was lost, or ctx ended before it arrived; the client
//     undoes the attempt, unless the owner was passed to WithOwner or Resume
//   - ErrNotReplicated, with redlatch.WithReplicaSync; ErrWrongType, ErrInvalid, ErrClosed
//   - ErrLost, ErrMaxHold or ErrClosed: the hold that ctx belongs to has ended with this error
//   - *transport.ServerError: the server rejected the call
func (l *Lock) Lock(ctx context.Context, opts ...Option) (*Hold, error) {
	return l.acquire(ctx, "lock", opts)
}

// TryLock makes one attempt, or none if other callers of this client are already waiting. It
// returns ErrNotAcquired if another owner holds the lock or the hold that ctx belongs to has an
// inner hold. It returns ErrInvalid if WithWait is given, and ErrUncertain or ErrNotSent if ctx
// ends during the attempt. Its other errors are those of [Lock.Lock].
func (l *Lock) TryLock(ctx context.Context, opts ...Option) (*Hold, error) {
	return l.acquire(ctx, "try-lock", opts)
}

// Do acquires the lock as [Lock.Lock] does, calls fn with [Hold.Context], and unlocks, even if fn
// panics. It returns fn's error, joined with ErrLost if the lock was lost, or with Unlock's error.
// With WithWait(0) it makes a single attempt. Goroutines that call Do with fn's context enter one at a
// time, concurrently with fn. If fn locks this lock with another context, it deadlocks.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context) error, opts ...Option) error {
	h, err := l.Lock(ctx, opts...)
	if err != nil {
		return err
	}
	return hold.Of(h).Do(ctx, h, fn)
}

// ForceUnlock releases the lock regardless of its holder and wakes its waiters, like Redisson's
// forceUnlock. It reports whether the lock was held. The holder's hold ends at its next renewal; until
// then there may be two holders. Except for a role of a read/write lock, it deletes the key, even if the
// key is another kind of lock. ErrNotNotified means that the lock is free, but that the user does not have
// permission to publish. It sends one EVALSHA.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) {
	in := hold.Of(l)
	forced, err := ask(ctx, l, func(c *transport.Call) {
		in.Kind.Prepare(ctx)
		in.Owning.ForceRelease(c)
		c.Urgent = true
	}, in.Owning.Forced)
	if in.Engine.DeniedPublish(err) {
		// The script frees the lock before it publishes.
		if locked, unknown := l.IsLocked(ctx); unknown == nil && !locked {
			forced, err = true, in.Engine.NotNotified(in.Kind.Channel(nil), err)
		}
	}
	return forced, l.wrap("force-unlock", codec.Owner{}, err)
}

// IsLocked reports whether the lock is held, like Redisson's isLocked. It sends EXISTS to the master, or
// one EVALSHA for a role of a read/write lock.
func (l *Lock) IsLocked(ctx context.Context) (bool, error) {
	kind := hold.Of(l).Owning
	is, err := ask(ctx, l, kind.IsLocked, kind.Locked)
	return is, l.wrap("is-locked", codec.Owner{}, err)
}

// HoldCount returns owner's count, or 0 if owner does not hold the lock, like Redisson's getHoldCount and
// isHeldByThread. It sends HGET.
func (l *Lock) HoldCount(ctx context.Context, owner codec.Owner) (int64, error) {
	count, err := ask(ctx, l, l.command("HGET", hold.Of(l).Text(owner)), reply.Count)
	return count, l.wrap("hold-count", owner, err)
}

// TTL returns the remaining lease, like Redisson's remainTimeToLive. It returns 0 if the lock is free,
// and redlatch.NoTTL, which is negative, if the lock never expires. It sends PTTL to the master.
func (l *Lock) TTL(ctx context.Context) (time.Duration, error) {
	ttl, err := ask(ctx, l, l.command("PTTL"), reply.Millis)
	if ttl == reply.NoKey {
		ttl = 0
	}
	return ttl, l.wrap("ttl", codec.Owner{}, err)
}

func (l *Lock) command(name string, args ...any) func(*transport.Call) {
	return func(c *transport.Call) {
		c.Command, c.NumKeys = name, 1
		c.Args = append(append(c.Args, hold.Of(l).Kind.Key()), args...)
	}
}

func ask[T any](ctx context.Context, l *Lock, fill func(*transport.Call), decode func(any) (T, error)) (T, error) {
	answer, err := hold.Of(l).Ask(ctx, fill)
	if err != nil {
		var zero T
		return zero, err
	}
	return decode(answer)
}

func (l *Lock) wrap(op string, owner codec.Owner, err error) error {
	return wrap(hold.Of(l), op, owner, err)
}

func wrap(l *hold.Lock, op string, owner codec.Owner, err error) error {
	if err == nil {
		return nil
	}
	return &redlatch.LockError{Op: op, Name: l.Name, Owner: owner, Err: err}
}

// Resume takes over the lock held by owner, after [Hold.HandOver] or from a program in another
// language. It may extend the lease but never shortens it, and renews it unless WithLease is given. The
// new hold's Unlock subtracts one from owner's count. It accepts only the lease options. It returns
// ErrNotHeld if owner does not hold the lock, and ErrInvalid with WithWait or WithPolling. It sends one
// EVALSHA.
//
// As with [WithOwner], a re-entry whose reply was lost is not undone, so after the last Unlock the lock
// may stay held until its lease ends.
//
// If the previous hold was not handed over, both holds are renewed, and the previous one is lost within
// one renewal period after the new one is unlocked.
func (l *Lock) Resume(ctx context.Context, owner codec.Owner, opts ...Option) (*Hold, error) {
	h := &Hold{}
	a := acquisition{hold: h}
	a.of(hold.Of(l), "resume")
	a.Start(ctx, 1)
	err := l.wrap("resume", owner, engine.Explain(l.resume(ctx, h, append(slices.Clone(opts), WithOwner(owner)))))
	a.observed(err)
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (l *Lock) resume(ctx context.Context, h *Hold, opts []Option) error {
	set, err := l.check(ctx, opts)
	if err != nil {
		return err
	}
	if set.Bounded || set.Polled {
		return fmt.Errorf("%w: Resume does not wait", redlatch.ErrInvalid)
	}
	return hold.Of(h).Resume(ctx, hold.Of(l), &set)
}

func (l *Lock) check(ctx context.Context, opts []Option) (hold.Terms, error) {
	engine.NeedContext(ctx)
	if err := hold.Of(l).Check(ctx); err != nil {
		return hold.Terms{}, err
	}
	return hold.Ask(hold.Of(l), opts)
}

// UnlockAs subtracts one from owner's count and releases the lock when the count reaches zero, like
// Redisson's unlockAsync(threadId). It is for owners that have been handed over; for a hold in this
// process, use [Hold.Unlock]. It returns ErrNotHeld if owner does not hold the lock, and ErrUncertain if
// the reply was lost or ctx ended first; the release then continues for up to one command timeout. It
// sends one EVALSHA, and then DEL for the unlock latch.
func (l *Lock) UnlockAs(ctx context.Context, owner codec.Owner) error {
	_, err := l.check(ctx, []Option{WithOwner(owner)})
	if err == nil {
		err = hold.Of(l).UnlockAs(ctx, owner)
	}
	return l.wrap("unlock-as", owner, engine.Explain(err))
}
