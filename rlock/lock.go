// Package rlock is Redisson's reentrant lock: a hash with one field per owner,
// a lease as its time to live, and a message to the waiters when it is freed.
//
// # The life of an acquisition
//
//	Lock ──attempt──▶ held ────────────────────────────────────────▶ Hold
//	        │                                                ▲
//	        │ another owner has it                           │
//	        ▼                                                │
//	    subscribe (acknowledged)                             │
//	        │                                                │
//	        ▼                                                │
//	    attempt ◀──────────────────────────────┐             │
//	        │ └── held ────────────────────────┼─────────────┘
//	        ▼                                  │
//	    wait for the first of: message, gap, lease of the holder over,
//	    poll cap ──────────────────────────────┘
//	        │ context, WithWait, client closed
//	        ▼
//	    give up
//
// The attempt after the subscription closes the gap in which the lock could be
// freed unheard. A message never says "you have it": it is a reason to try.
//
// An attempt always runs to completion on the server; the context bounds only
// the waiting for it. If the caller has left when the reply says "acquired", the
// lock is given back at once. If the reply is lost, the attempt's owner is never
// used again, and what it may have acquired is looked for and freed in the
// background, until the server has answered for one lease.
//
// A client with redlatch.WithReplicaSync goes one step further:
//
//	held ──▶ live, unknown to the caller ──enough replicas have it──▶ Hold
//	             │
//	             └── too few in time, context, WithWait, client closed, or over by
//	                 itself ──▶ given up like a hold, ErrNotReplicated
//
// # The life of a hold
//
//	live ──Unlock──────▶ released
//	  │ ──LetExpire───▶ left to its lease
//	  │ ──lease over, not renewed in time, or gone on the server──▶ lost
//	  │ ──HandOver────▶ handed over, the lock goes on elsewhere
//	  │ ──WithMaxHold is over──▶ at its maximum, the lock left to its lease or Unlock
//	  └ ──Client.Close─▶ closed
//
// A hold ends once, for one reason, which [Hold.Err] and the cause of its
// contexts tell. It ends before the server can grant the lock to another
// owner, unless the lock was taken by force or the server forgot it: then it
// ends with the next renewal.
//
// A hold that is entered again by its proof, see [Hold.Context], is one of several of
// its owner. Each ends for itself; the last one given up frees the lock. Callers with
// the proof of one hold exclude each other.
//
// # The local queue
//
// The callers of one process that want one lock take turns: only the one whose
// turn it is goes through the states above, the others wait for the turn and send
// nothing. The turn stays with the hold and is passed on when the release is on
// its way, or when the attempt has come to nothing. Where only clients of this
// library seem to want the lock, the lock itself goes with the turn, for a burst of turns:
//
//	          Unlock                   the next caller: one script
//	hold A ──────────▶ transferred ───────────────────────────▶ hold B
//	                       │ no next caller, it has left, or no reply
//	                       ▼
//	                   release, as without a queue
package rlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/kind"
	"github.com/redlatch/redlatch/internal/localqueue"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Lock is a lock by name. It holds no owner and no state of its own: any number
// of goroutines may use one Lock, and any number of Locks may be made for one
// name. Each acquisition has an owner of its own, so two goroutines exclude each
// other. The one exception is the context of a hold, see [Hold.Context]: code that
// has the hold does not exclude the callers that lock with its context. These
// exclude each other. Errors are *redlatch.LockError, which wrap what went
// wrong; see there for what errors.Is tells apart.
type Lock struct{ lockHandle }

// lockHandle is embedded under this name so that it is no part of the documentation.
type lockHandle = hold.LockHandle

// New returns the lock called name. It sends nothing. A name that no lock can
// have shows as redlatch.ErrInvalid in every call.
func New(client *redlatch.Client, name string) *Lock {
	l := &Lock{}
	*l.Internal() = hold.NewLock(engine.EngineOf(client), name, makePlain)
	return l
}

// makePlain is a hold.Make.
func makePlain(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
	k := kind.NewPlain(e, mapped)
	return k, localqueue.New(e, k)
}

// Name returns the name that the lock was made with.
func (l *Lock) Name() string { return l.Internal().Name }

// Lock takes the lock and waits for it as long as it must. ctx bounds the wait
// and nothing else: the hold outlives it. The lease is renewed until Unlock,
// unless WithLease says otherwise.
//
// A free lock costs one EVALSHA. While another owner holds it, Lock subscribes to the
// lock's channel and tries again when it is freed, when the holder's lease should be
// over, and once every poll cap. A client with redlatch.WithReplicaSync then waits for
// replicas, as long as the wait may be.
//
// With the context of a hold of this lock, Lock enters that hold again with one
// EVALSHA. A hold has at most one inner hold at a time; an attempt that is under way,
// or whose outcome is not known yet, counts as one. While there is one, Lock waits in
// this process, in the order of the calls, sends nothing, and counts among the waiters
// of redlatch.WithMaxWaiters. So a goroutine that calls Lock twice with the context of
// one outer hold, before it has unlocked, waits for itself: the second call must
// have the context of the inner hold. A wait of this kind that is longer than the
// command timeout is logged once for the outer hold. When the outer hold is lost
// meanwhile, Lock returns ErrLost. When it is unlocked or handed over, its inner hold
// lives on. Contexts of the outer hold end then, and the wait with them. With a ctx that
// goes on, as context.WithoutCancel makes one, Lock enters the next hold that ctx
// proves, or acquires the lock like any other caller: of a fair lock, at the end of the
// queue.
//
// Errors: ErrLost, ErrMaxHold or ErrClosed of the hold that ctx proves; ErrNotAcquired
// with ctx's error when ctx ended the wait, or alone when WithWait's time ran out;
// ErrNotSent with ctx's error when ctx had ended before, or when Redis could not be
// reached for one command timeout at the beginning; ErrUncertain when the reply to the
// first attempt was lost; ErrClosed; ErrWrongType; ErrInvalid; ErrNotReplicated; or a
// *transport.ServerError. Once it waits, Lock rides out a Redis that cannot be reached, and
// one that refuses for a reason that can pass, such as LOADING, READONLY, NOREPLICAS or OOM.
func (l *Lock) Lock(ctx context.Context, opts ...Option) (*Hold, error) {
	return l.acquire(ctx, "lock", opts)
}

// TryLock takes the lock if it is free, with one attempt, or none when others of
// this client wait for it already. It returns
// ErrNotAcquired when another owner holds it, or, with the context of a hold, when
// that has an inner hold already; WithWait makes no sense here and gives
// ErrInvalid. Otherwise as [Lock.Lock].
func (l *Lock) TryLock(ctx context.Context, opts ...Option) (*Hold, error) {
	return l.acquire(ctx, "trylock", opts)
}

// Do takes the lock as [Lock.Lock] does, runs fn and unlocks, also when fn
// panics. The context that fn gets is [Hold.Context]: it ends when the lock is
// lost. Do returns fn's error; when the lock was lost or could not be unlocked,
// that error is joined to it, so fn may succeed and Do still return ErrLost.
//
// Goroutines that fn starts may call Do of the same lock with the context that fn
// got: they are inside one at a time, as [Lock.Lock] tells. Fn itself is not excluded
// from what they do meanwhile, and waits for itself if it calls Lock with that context
// while it has an inner hold.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context) error, opts ...Option) error {
	h, err := l.Lock(ctx, opts...)
	if err != nil {
		return err
	}
	return hold.Do(ctx, h.Internal().Subject(), h, fn)
}

// ForceUnlock removes the lock, whichever owner holds it, and wakes the waiters,
// as Redisson's forceUnlock. It reports whether there was a holder. The holder
// learns of it at its next renewal at the latest, so there may be two holders
// for that long. ErrNotNotified: the lock is free, and the user may not publish that to
// its waiters. It sends one EVALSHA.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) {
	kind, can := l.Internal().Kind.(hold.Forcible)
	if !can {
		return false, l.wrap("force-unlock", redlatch.Owner{}, errNotForcible)
	}
	answer, err := l.ask(ctx, "force-unlock", func(c *transport.Call) {
		l.Internal().Prepare(ctx)
		kind.ForceRelease(c)
		c.Urgent = true
	})
	if l.Internal().Engine.DeniedPublish(err) {
		// The script frees the lock before it publishes.
		if locked, unknown := l.IsLocked(ctx); unknown == nil && !locked {
			in := l.Internal()
			return true, l.wrap("force-unlock", redlatch.Owner{}, in.Engine.NotNotified(in.Kind.Channel(nil), err))
		}
	}
	if err != nil {
		return false, err
	}
	forced, err := kind.Forced(answer)
	return forced, l.wrap("force-unlock", redlatch.Owner{}, err)
}

// IsLocked reports whether the lock is held, as Redisson's isLocked, asked of
// the master. It sends EXISTS, or for a role of a read/write lock one EVALSHA.
func (l *Lock) IsLocked(ctx context.Context) (bool, error) {
	fill, locked := l.command("EXISTS"), reply.Exists
	if kind, ok := l.Internal().Kind.(hold.Lockable); ok {
		fill, locked = kind.IsLocked, kind.Locked
	}
	answer, err := l.ask(ctx, "is-locked", fill)
	if err != nil {
		return false, err
	}
	is, err := locked(answer)
	return is, l.wrap("is-locked", redlatch.Owner{}, err)
}

// IsHeldBy reports whether owner holds the lock, as Redisson's isHeldByThread.
// It sends HEXISTS.
func (l *Lock) IsHeldBy(ctx context.Context, owner redlatch.Owner) (bool, error) {
	answer, err := l.ask(ctx, "is-held-by", l.command("HEXISTS", l.Internal().Text(owner)))
	if err != nil {
		return false, err
	}
	held, err := reply.Exists(answer)
	return held, l.wrap("is-held-by", owner, err)
}

// HoldCount returns how often owner has entered the lock, 0 when it does not
// hold it, as Redisson's getHoldCount. It sends HGET.
func (l *Lock) HoldCount(ctx context.Context, owner redlatch.Owner) (int64, error) {
	answer, err := l.ask(ctx, "hold-count", l.command("HGET", l.Internal().Text(owner)))
	if err != nil {
		return 0, err
	}
	count, err := reply.Count(answer)
	return count, l.wrap("hold-count", owner, err)
}

// TTL returns how long the holder's lease has left, as Redisson's
// remainTimeToLive, asked of the master: 0 when the lock is free, and
// redlatch.NoTTL, which is negative, when its key never expires. It sends PTTL.
func (l *Lock) TTL(ctx context.Context) (time.Duration, error) {
	answer, err := l.ask(ctx, "ttl", l.command("PTTL"))
	if err != nil {
		return 0, err
	}
	ttl, err := reply.Millis(answer)
	if ttl == reply.NoKey {
		ttl = 0
	}
	return ttl, l.wrap("ttl", redlatch.Owner{}, err)
}

var errNotForcible = errors.New("a lock of this kind cannot be taken from its holders")

// command returns the filler of a plain command about the lock's key.
func (l *Lock) command(name string, args ...any) func(*transport.Call) {
	return func(c *transport.Call) {
		c.Command, c.NumKeys = name, 1
		c.Args = append(append(c.Args, l.Internal().Kind.Key()), args...)
	}
}

// ask runs a call that may be repeated.
func (l *Lock) ask(ctx context.Context, op string, fill func(*transport.Call)) (any, error) {
	answer, err := l.Internal().Ask(ctx, fill)
	return answer, l.wrap(op, redlatch.Owner{}, err)
}

// wrap makes an error say what was done to which lock. Nil stays nil.
func (l *Lock) wrap(op string, owner redlatch.Owner, err error) error {
	return wrap(l.Internal(), op, owner, err)
}

func wrap(l *hold.Lock, op string, owner redlatch.Owner, err error) error {
	if err == nil {
		return nil
	}
	return &redlatch.LockError{Op: op, Name: l.Name, Owner: owner, Err: err}
}

// Resume takes over the lock that owner holds, from a hold that was handed over
// or from another process or language that holds it as owner: it sets the lease
// anew, renews it from now on, and returns a hold whose Unlock lowers owner's
// count by one. Options are those of Lock about the lease; WithWait gives
// ErrInvalid. ErrNotHeld says that
// owner does not hold the lock. It sends one EVALSHA.
//
// The side that had the lock before should have let go with HandOver. Otherwise
// both are one owner and both renew; its hold is lost within a renewal period
// after the lock is freed here.
func (l *Lock) Resume(ctx context.Context, owner redlatch.Owner, opts ...Option) (*Hold, error) {
	h := &Hold{}
	a := acquisition{hold: h}
	a.of(l.Internal(), "resume")
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
	return h.Internal().Resume(ctx, l.Internal(), &set.Terms)
}

// check is what can be checked before something is sent.
func (l *Lock) check(ctx context.Context, opts []Option) (hold.Asked, error) {
	engine.NeedContext(ctx)
	if err := l.Internal().Check(ctx); err != nil {
		return hold.Asked{}, err
	}
	return hold.Ask(l.Internal(), opts)
}

// UnlockAs lowers owner's count by one, and frees the lock with the last, as
// Redisson's unlock does, byte for byte. It is for owners that were handed over;
// a hold of this process's is given up with Unlock. ErrNotHeld says that owner
// does not hold the lock, ErrUncertain that the reply was lost or that ctx ended
// before it came; the release goes on then, for one command timeout in all. It
// sends one EVALSHA, and a DEL of the latch when that was answered.
func (l *Lock) UnlockAs(ctx context.Context, owner redlatch.Owner) error {
	_, err := l.check(ctx, []Option{WithOwner(owner)})
	if err == nil {
		err = l.Internal().UnlockAs(ctx, owner)
	}
	return l.wrap("unlock-as", owner, engine.Explain(err))
}
