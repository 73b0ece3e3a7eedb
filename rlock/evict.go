package rlock

import (
	"context"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/fairqueue"
)

// Eviction is what [Lock.Evict] has done.
type Eviction struct {
	// Owner is the owner of the evicted waiter, the zero Owner when Text is not
	// of that form.
	Owner codec.Owner
	// Text is that owner as it stood in Redis.
	Text string
	// Position is the place that it had, 1 for the next one.
	Position int
	// Deadline is when it would have counted as dead, once it was the first; the
	// zero time when it had no deadline.
	Deadline time.Time
	// Subscribed says whether a connection was subscribed to its channel.
	Subscribed Subscribed
	// Next is the next waiter's owner, as it stands in Redis; empty when no
	// other was queued.
	Next string
	// Woken is true when the lock was free, so that Next was sent its wake-up.
	Woken bool
}

// EvictOption sets something about one [Lock.Evict].
type EvictOption func(*evicting)

// EvenIfAlive takes the waiter out although a connection is subscribed to its
// channel, or although that cannot be found out. A live waiter queues anew, behind
// all others, with its next attempt. Default: such a waiter keeps its place.
func EvenIfAlive() EvictOption { return func(e *evicting) { e.force = true } }

// evicting says how.
type evicting struct{ force bool }

// Evict takes a waiter that is dead out of the queue of a fair lock, so that those
// behind it need not wait for its deadline. Owner is its text in Redis, as
// [Lock.Inspect] has it. If the lock is free, the first in the queue is woken.
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
// Errors: ErrAlive when a connection is subscribed, ErrNotCounted when that cannot
// be found out, neither with [EvenIfAlive]; ErrNotQueued; ErrNoQueue for a lock that
// is not fair; ErrUncertain when the reply was lost (it may be called again);
// ErrNotSent, ErrClosed, ErrWrongType, ErrBadName, or a *transport.ServerError. It
// sends an EVALSHA to look, what [Lock.Listeners] sends, an EVALSHA to evict, and
// one to look at what came of it.
func (l *Lock) Evict(ctx context.Context, owner string, opts ...EvictOption) (*Eviction, error) {
	kind, queues := l.Internal().Kind.(fairqueue.Inspected)
	if !queues {
		return nil, l.wrap("evict", ownerOf(owner), redlatch.ErrNoQueue)
	}
	var how evicting
	for _, o := range opts {
		if o != nil {
			o(&how)
		}
	}
	e := fairqueue.Eviction{
		Queues: fairqueue.Of(l.Internal().Engine), Kind: kind, Ask: l.Internal().Ask, Owner: owner, Force: how.force,
	}
	out, err := e.Run(ctx)
	if err != nil {
		return nil, l.wrap("evict", ownerOf(owner), err)
	}
	return &Eviction{
		Owner: ownerOf(owner), Text: owner, Position: out.Index + 1, Deadline: out.Was.Deadline,
		Subscribed: subscribed(out.Listeners), Next: out.Next, Woken: out.Woken,
	}, nil
}

// Listeners returns how many connections listen for each of owners, waiters of a
// fair lock by their texts in Redis: one number each, in their order. Waiters that
// live have one, but for a moment after they have queued and while they reconnect.
//
// It subscribes to a channel of its own meanwhile, to know that subscribers are
// counted. ErrNotCounted says that they cannot be counted on the master and on all
// of its replicas, together with why; ErrNoQueue that the lock is not fair. It sends
// SUBSCRIBE and UNSUBSCRIBE, one PUBSUB to the master and to each replica, and, at
// most once in ten seconds, ROLE.
func (l *Lock) Listeners(ctx context.Context, owners ...string) ([]int64, error) {
	engine.NeedContext(ctx)
	counts, err := l.listeners(ctx, owners)
	return counts, l.wrap("listeners", codec.Owner{}, err)
}

func (l *Lock) listeners(ctx context.Context, owners []string) ([]int64, error) {
	e := l.Internal().Engine
	kind, queues := l.Internal().Kind.(fairqueue.Kind)
	err := l.Internal().Check(ctx)
	switch {
	case l.Internal().Err != nil:
		return nil, err
	case !queues:
		return nil, redlatch.ErrNoQueue
	case err != nil || len(owners) == 0:
		return nil, err
	}
	return fairqueue.Of(e).Listeners(ctx, kind, owners...)
}
