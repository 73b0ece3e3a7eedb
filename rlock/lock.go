// Package rlock is Redisson's reentrant lock: a Redis hash with one field per owner, whose time to
// live is the lease, and a message to waiters when it is released.
//
// [Lock.Lock] waits for the lock and returns a [Hold]. The hold's lease is renewed in the background
// until [Hold.Unlock]. [Hold.Context] ends when the hold does; do the protected work with it.
//
// A hold ends before the server can grant the lock to another owner, by the loss margin. If the
// lock was removed by force, or the server lost the key, the hold ends at its next renewal. If a
// caller leaves or a reply is lost, the client undoes the acquisition in the background.
//
// Callers in one process share a local FIFO queue per lock; only the first sends commands.
package rlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/kind"
	"github.com/redlatch/redlatch/internal/localqueue"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Lock is a lock by name. It is stateless: any number of goroutines may share one Lock, and any
// number of Locks may have the same name. Each acquisition has its own owner, so two
// goroutines exclude each other, except with the context of a hold, see [Hold.Context]. Errors are
// of type *redlatch.LockError.
type Lock struct{ lockHandle }

// lockHandle keeps the embedded type out of the documentation.
type lockHandle = hold.LockHandle

// New returns the lock called name. It sends nothing. If name is not valid, every call returns
// redlatch.ErrInvalid.
func New(client *redlatch.Client, name string) *Lock {
	l := &Lock{}
	*hold.Of(l) = hold.NewLock(engine.EngineOf(client), name, makePlain)
	return l
}

func makePlain(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
	k := kind.NewPlain(e, mapped, luasrc.Tokens{})
	return k, localqueue.New(e, k)
}

// Name returns the name given to New.
func (l *Lock) Name() string { return hold.Of(l).Name }

// Lock acquires the lock and waits for it if another owner holds it. ctx bounds only the wait; the
// hold outlives it. The lease is renewed until Unlock, unless WithLease is given.
//
// A free lock costs one EVALSHA. While waiting, Lock subscribes to the lock's channel. It tries
// again when the lock is released, when the holder's lease should have expired, and at every poll
// cap. With redlatch.WithReplicaSync it then waits for replicas.
//
// With the context of a hold of this lock, Lock re-enters that hold, see [Hold.Context].
//
// Lock returns ErrNotAcquired if WithWait's time ran out, joined with ctx's error if ctx ended the
// wait. It returns ErrNotSent if ctx had already ended or Redis could not be reached within the
// command timeout, and ErrUncertain if the reply to the first attempt was lost. Once it waits, it
// keeps waiting while Redis cannot be reached or refuses calls temporarily (LOADING, READONLY,
// NOREPLICAS, OOM). Other errors are ErrLost, ErrMaxHold or ErrClosed of the hold that ctx proves,
// ErrClosed, ErrWrongType, ErrInvalid, ErrNotReplicated and *transport.ServerError.
func (l *Lock) Lock(ctx context.Context, opts ...Option) (*Hold, error) {
	return l.acquire(ctx, "lock", opts)
}

// TryLock makes one attempt to acquire the lock, or none if others of this client already wait for
// it. It returns ErrNotAcquired if another owner holds it or the hold that ctx proves has an inner
// hold, and ErrInvalid with WithWait. See [Lock.Lock] for the rest.
func (l *Lock) TryLock(ctx context.Context, opts ...Option) (*Hold, error) {
	return l.acquire(ctx, "trylock", opts)
}

// Do acquires the lock as [Lock.Lock] does, calls fn with [Hold.Context], and unlocks, even if fn
// panics. It returns fn's error, joined with ErrLost if the lock was lost, or with Unlock's error.
//
// Goroutines started by fn may call Do of the same lock with fn's context: they enter one at a
// time. Fn's own code is not excluded.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context) error, opts ...Option) error {
	h, err := l.Lock(ctx, opts...)
	if err != nil {
		return err
	}
	return hold.Of(h).Do(ctx, h, fn)
}

// ForceUnlock removes the lock, regardless of its holder, and wakes its waiters, as Redisson's forceUnlock.
// It reports whether the lock was held. The holder notices at its next renewal; until then there
// may be two. ErrNotNotified means that the lock is free but the user lacks the right to
// notify its waiters. It sends one EVALSHA.
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
	return forced, l.wrap("force-unlock", redlatch.Owner{}, err)
}

// IsLocked reports whether the lock is held, as Redisson's isLocked. It sends EXISTS to the
// master, or one EVALSHA for a side of a read/write lock.
func (l *Lock) IsLocked(ctx context.Context) (bool, error) {
	kind := hold.Of(l).Owning
	is, err := ask(ctx, l, kind.IsLocked, kind.Locked)
	return is, l.wrap("is-locked", redlatch.Owner{}, err)
}

// HoldCount returns how many times owner has entered the lock, 0 if it does not hold it, as
// Redisson's getHoldCount and isHeldByThread. It sends HGET.
func (l *Lock) HoldCount(ctx context.Context, owner redlatch.Owner) (int64, error) {
	count, err := ask(ctx, l, l.command("HGET", hold.Of(l).Text(owner)), reply.Count)
	return count, l.wrap("hold-count", owner, err)
}

// TTL returns the time left of the lease, as Redisson's remainTimeToLive: 0 if the lock is free, and
// redlatch.NoTTL, which is negative, if the key never expires. It sends PTTL to the master.
func (l *Lock) TTL(ctx context.Context) (time.Duration, error) {
	ttl, err := ask(ctx, l, l.command("PTTL"), reply.Millis)
	if ttl == reply.NoKey {
		ttl = 0
	}
	return ttl, l.wrap("ttl", redlatch.Owner{}, err)
}

// command returns a function that fills in a plain command on the lock's key.
func (l *Lock) command(name string, args ...any) func(*transport.Call) {
	return func(c *transport.Call) {
		c.Command, c.NumKeys = name, 1
		c.Args = append(append(c.Args, hold.Of(l).Kind.Key()), args...)
	}
}

// ask sends a call that may be repeated and decodes its reply.
func ask[T any](ctx context.Context, l *Lock, fill func(*transport.Call), decode func(any) (T, error)) (T, error) {
	answer, err := hold.Of(l).Ask(ctx, fill)
	if err != nil {
		var zero T
		return zero, err
	}
	return decode(answer)
}

// wrap adds the operation and the lock to an error. Nil stays nil.
func (l *Lock) wrap(op string, owner redlatch.Owner, err error) error {
	return wrap(hold.Of(l), op, owner, err)
}

func wrap(l *hold.Lock, op string, owner redlatch.Owner, err error) error {
	if err == nil {
		return nil
	}
	return &redlatch.LockError{Op: op, Name: l.Name, Owner: owner, Err: err}
}

// Resume takes over the lock that owner holds, from a hold that was handed over or from another
// process or language. It sets the lease and renews it from then on; the hold's Unlock lowers
// owner's count by one. It accepts the options of Lock that concern the lease, returns ErrInvalid
// with WithWait, and ErrNotHeld if owner does not hold the lock. It sends one EVALSHA.
//
// The previous holder should have called HandOver. Otherwise both renew as one owner, and the
// previous hold is lost within a renewal period after this one is unlocked.
func (l *Lock) Resume(ctx context.Context, owner redlatch.Owner, opts ...Option) (*Hold, error) {
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
	if set.Bounded {
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

// UnlockAs lowers owner's count by one and releases the lock at zero, exactly as Redisson's unlock.
// It is for owners that were handed over; a hold of this process is released by Hold.Unlock. It
// returns ErrNotHeld if owner does not hold the lock, and ErrUncertain if the reply was lost or ctx
// ended first; the release then continues for up to one command timeout. It sends one EVALSHA, then
// a DEL of the unlock latch.
func (l *Lock) UnlockAs(ctx context.Context, owner redlatch.Owner) error {
	_, err := l.check(ctx, []Option{WithOwner(owner)})
	if err == nil {
		err = hold.Of(l).UnlockAs(ctx, owner)
	}
	return l.wrap("unlock-as", owner, engine.Explain(err))
}
