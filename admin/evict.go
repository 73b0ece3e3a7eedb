package admin

import (
	"context"
	"fmt"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/fairqueue"
	"github.com/redlatch/redlatch/internal/hold"
)

// Eviction is what [Evict] has done.
type Eviction struct {
	// Waiter is the waiter that was taken out, as it was seen just before.
	Waiter
	// Next is the next waiter's owner, as it stands in Redis; empty when no
	// other was queued.
	Next string
	// Woken is true when the lock was free, so that Next was sent its wake-up.
	Woken bool
}

// Evict takes a waiter that is dead out of the queue of a fair lock, so that those
// behind it need not wait for its deadline. Owner is its text in Redis, as
// [Inspect] has it. If the lock is free, the first in the queue is woken.
// Clients of this library that wait for the lock do the same by themselves, after a
// grace; see redlatch.WithDeadWaiterGrace. Redisson has no counterpart.
//
// A waiter is taken for dead when no connection is subscribed to its channel, on
// the master or on a replica. That is so for a moment also after a live one has
// queued, and while it reconnects: look more than once, as redlatch status does.
// One that is taken out wrongly queues anew at the end: it loses its place, never
// the lock.
//
// The first in the queue goes if it still has the deadline that it was seen with,
// and what its deadline was later than it need be is taken off those of all others,
// but not so much that one of them would count as dead. Any other goes as if it had
// given up: the deadlines behind it come forward by what its own is later than that
// of the one before it, or than now, at most by the client's fair wait timeout.
//
// Errors: [ErrWaiterAlive]; [ErrNotCounted]; [ErrNotQueued]; [redlatch.ErrInvalid] for a
// lock that is not fair; of package redlatch ErrUncertain when the reply was lost (it may be called
// again), ErrNotSent, ErrClosed, ErrWrongType and ErrInvalid; or a *transport.ServerError.
// It sends an EVALSHA to look, or one for each 200 places of a long queue, what
// [Listeners] sends, an EVALSHA to evict, and one to look at what came of it.
func Evict(ctx context.Context, of Lock, owner string) (*Eviction, error) {
	return evict(ctx, of.Internal(), owner, false)
}

// ForceEvict is [Evict] also for a waiter to whose channel a connection is subscribed, or of
// which that cannot be found out: it does not return [ErrWaiterAlive] or [ErrNotCounted]. A
// live waiter queues anew, behind all others, with its next attempt.
func ForceEvict(ctx context.Context, of Lock, owner string) (*Eviction, error) {
	return evict(ctx, of.Internal(), owner, true)
}

// errNoQueue is the error for a lock of a kind that has no queue. Nothing was sent.
var errNoQueue = fmt.Errorf("%w: a lock of this kind has no queue on the server", redlatch.ErrInvalid)

func evict(ctx context.Context, l *hold.Lock, owner string, force bool) (*Eviction, error) {
	kind, queues := l.Kind.(fairqueue.Inspected)
	engine.NeedContext(ctx)
	if err := l.Check(ctx); err != nil {
		return nil, wrap(l, "evict", owner, err)
	}
	if !queues {
		return nil, wrap(l, "evict", owner, errNoQueue)
	}
	e := fairqueue.Eviction{Queues: fairqueue.Of(l.Engine), Kind: kind, Ask: l.Ask, Owner: owner, Force: force}
	out, err := e.Run(ctx)
	if err != nil {
		return nil, wrap(l, "evict", owner, err)
	}
	return &Eviction{
		Waiter: Waiter{
			Owner: ownerOf(owner), Text: owner, Position: out.Index + 1, Deadline: out.Was.Deadline,
			Subscribed: out.Listeners > 0, Counted: out.Listeners >= 0,
		},
		Next: out.Next, Woken: out.Woken,
	}, nil
}

// Listeners returns how many connections listen for each of owners, waiters of a
// fair lock by their texts in Redis: one number each, in their order. Waiters that
// live have one, but for a moment after they have queued and while they reconnect.
//
// It subscribes to a channel of its own meanwhile, to know that subscribers are
// counted. [ErrNotCounted] says that they cannot be counted on the master and on all
// of its replicas, together with why; [redlatch.ErrInvalid] that the lock is not fair. It sends
// SUBSCRIBE and UNSUBSCRIBE, one PUBSUB to the master and to each replica, and, at
// most once in ten seconds, ROLE.
func Listeners(ctx context.Context, of Lock, owners ...string) ([]int64, error) {
	engine.NeedContext(ctx)
	l := of.Internal()
	counts, err := listeners(ctx, l, owners)
	return counts, wrap(l, "listeners", "", err)
}

func listeners(ctx context.Context, l *hold.Lock, owners []string) ([]int64, error) {
	kind, queues := l.Kind.(fairqueue.Kind)
	err := l.Check(ctx)
	switch {
	case l.Err != nil:
		return nil, err
	case !queues:
		return nil, errNoQueue
	case err != nil || len(owners) == 0:
		return nil, err
	}
	return fairqueue.Of(l.Engine).Listeners(ctx, kind, owners...)
}
