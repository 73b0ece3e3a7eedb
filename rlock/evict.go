package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Eviction is what [Lock.Evict] has done.
type Eviction struct {
	// Owner is who was taken out, the zero Owner when Text is not of that form.
	Owner codec.Owner
	// Text is who was taken out, as it stood in Redis.
	Text string
	// Position is the place that it had, 1 for the next one.
	Position int
	// Deadline is when it would have counted as dead, once it was the first; the
	// zero time when it had no deadline.
	Deadline time.Time
	// Subscribed says whether anybody listened to its channel.
	Subscribed Subscribed
	// Next is who comes next, as it stands in Redis; empty when nobody else was
	// queued.
	Next string
	// Woken is true when the lock was free, so that Next was sent its wake-up.
	Woken bool
}

// EvictOption sets something about one [Lock.Evict].
type EvictOption func(*evicting)

// EvenIfAlive takes the waiter out although somebody listens to its channel, or
// although that cannot be found out. One that lives queues anew, behind all others,
// the next time it asks. Default: such a waiter is left where it is.
func EvenIfAlive() EvictOption { return func(e *evicting) { e.anyway = true } }

// evicting is one eviction under way.
type evicting struct {
	lock   *Lock
	queue  protocol.Queue
	owner  string
	anyway bool
}

// maxLooks is how often a place that changes while it is looked at is looked at
// again. It changes when others' heartbeats put it off, every few seconds.
const maxLooks = 5

// Evict takes a waiter that is dead out of the queue of a fair lock, so that those
// behind it need not wait for its deadline. Owner is its text in Redis, as
// [Lock.Inspect] has it. If the lock is free, the first in the queue is woken.
// Clients of this library that wait for the lock do the same by themselves, after a
// grace; see redlatch.WithDeadWaiterGrace. Redisson has no counterpart.
//
// A waiter is taken for dead when nobody listens to its channel, on the master or
// on a replica. That is so for a moment also after a live one has queued, and while
// it reconnects: look more than once, as redlatch status does. One that is taken
// out wrongly queues anew at the end: it loses its place, never the lock.
//
// The first in the queue goes if it still has the deadline that it was seen with,
// and what its deadline was later than it need be is taken off those of all others,
// but not so much that one of them would count as dead. Any other goes as if it had
// given up: the deadlines behind it come forward by what its own is later than that
// of the one before it, or than now, at most by the client's fair wait timeout.
//
// Errors: ErrAlive when somebody listens, ErrNotCounted when that cannot be found
// out, neither with [EvenIfAlive]; ErrNotQueued; ErrNoQueue for a lock that is not
// fair; ErrUncertain when the reply was lost (it may be called again); ErrNotSent,
// ErrClosed, ErrWrongType, ErrBadName, or a *transport.ServerError. It sends an
// EVALSHA to look, what [Lock.Listeners] sends, an EVALSHA to evict, and one to look
// at what came of it.
func (l *Lock) Evict(ctx context.Context, owner string, opts ...EvictOption) (*Eviction, error) {
	queue, queues := l.proto.(protocol.Queue)
	if !queues {
		return nil, l.wrap("evict", ownerOf(owner), redlatch.ErrNoQueue)
	}
	e := &evicting{lock: l, queue: queue, owner: owner}
	for _, o := range opts {
		if o != nil {
			o(e)
		}
	}
	done, err := e.run(ctx)
	var told *redlatch.LockError
	switch {
	case errors.As(err, &told):
		told.Op, told.Owner = "evict", ownerOf(owner) // it was a question on the way
	case err != nil:
		err = l.wrap("evict", ownerOf(owner), err)
	}
	return done, err
}

func (e *evicting) run(ctx context.Context) (*Eviction, error) {
	for range maxLooks {
		before, err := e.lock.look(ctx, "evict", allPlaces)
		if err != nil {
			return nil, err
		}
		i := before.place(e.owner)
		if i < 0 {
			return nil, redlatch.ErrNotQueued
		}
		listens, err := e.listens(ctx)
		if err != nil {
			return nil, err
		}
		switch out, err := e.takeOut(ctx, &before, i); {
		case err != nil:
			return nil, err
		case out:
			return e.report(ctx, &before, i, listens)
		}
	}
	return nil, errors.New("its place changed each time it was looked at")
}

// listens finds out whether the waiter lives. An error says that it is to be left.
func (e *evicting) listens(ctx context.Context) (Subscribed, error) {
	counts, err := e.lock.Listeners(ctx, e.owner)
	switch {
	case err == nil && (counts[0] == 0 || e.anyway):
		return subscribed(counts[0]), nil
	case err == nil:
		return SubscribedYes, fmt.Errorf("%w: somebody listens to its channel", redlatch.ErrAlive)
	case errors.Is(err, redlatch.ErrNotCounted) && e.anyway:
		err = nil // as was asked for
	}
	return SubscribedUnknown, err
}

// takeOut takes the waiter at place i out, and reports whether it is out: the first
// one stays when it has done anything since it was looked at.
func (e *evicting) takeOut(ctx context.Context, seen *sight, i int) (bool, error) {
	answer, err := e.lock.ask(ctx, "evict", func(c *transport.Call) {
		e.lock.keepTime(ctx)
		if i == 0 {
			e.queue.Evict(c, []reply.Place{{Owner: e.owner, Deadline: seen.queue[0].Score}})
			return
		}
		wait := waitAt(seen.queue, i, time.UnixMilli(e.lock.engine.NowMillis()), e.lock.engine.FairWait)
		e.lock.proto.GiveUp(c, &protocol.Acquisition{Owner: e.owner, Wait: wait.Milliseconds()})
	})
	if err != nil || i > 0 {
		return err == nil, err
	}
	evicted, err := reply.DecodeEvicted(answer)
	return len(evicted) > 0, err
}

// waitAt returns the wait with which the waiter at place i seems to be queued: what
// its deadline is later than that of the one before it, or than now if that one is
// overdue. With more than that taken off, those behind it could count as dead
// although they live.
func waitAt(queue []reply.Queued, i int, now time.Time, most time.Duration) time.Duration {
	own, before := queue[i].Deadline, queue[i-1].Deadline
	if own.IsZero() || before.IsZero() {
		return 0
	}
	if before.Before(now) {
		before = now
	}
	return max(0, min(own.Sub(before), most))
}

// report looks at what came of it.
func (e *evicting) report(ctx context.Context, before *sight, i int, listened Subscribed) (*Eviction, error) {
	was := before.queue[i]
	done := &Eviction{
		Owner: ownerOf(e.owner), Text: e.owner, Position: i + 1, Deadline: was.Deadline, Subscribed: listened,
	}
	for _, q := range before.queue {
		if q.Owner != e.owner {
			done.Next = q.Owner
			break
		}
	}
	after, err := e.lock.look(ctx, "evict", allPlaces)
	switch {
	case err != nil:
		return done, nil //nolint:nilerr // it is done, and whether somebody was woken is not known
	case after.holds(e.owner) && !before.holds(e.owner):
		return nil, redlatch.ErrNotQueued // it got the lock before it was taken out
	}
	done.Woken = done.Next != "" && before.free() && (after.free() || after.holds(done.Next))
	return done, nil
}

// Listeners returns how many connections listen for each of owners, waiters of a
// fair lock by their texts in Redis: one number each, in their order. Waiters that
// live have one, but for a moment after they have queued and while they reconnect.
//
// It listens to a channel of its own meanwhile, to know that those who listen are
// counted. ErrNotCounted says that they cannot be counted on the master and on all
// of its replicas, together with why; ErrNoQueue that the lock is not fair. It sends
// SUBSCRIBE and UNSUBSCRIBE, one PUBSUB to the master and to each replica, and, at
// most once in ten seconds, ROLE.
func (l *Lock) Listeners(ctx context.Context, owners ...string) ([]int64, error) {
	engine.NeedContext(ctx)
	queue, queues := l.proto.(protocol.Queue)
	switch {
	case l.err != nil:
		return nil, l.wrap("listeners", codec.Owner{}, l.err)
	case !queues:
		return nil, l.wrap("listeners", codec.Owner{}, redlatch.ErrNoQueue)
	case ctx.Err() != nil:
		return nil, l.wrap("listeners", codec.Owner{}, fmt.Errorf("%w: %w", redlatch.ErrNotSent, engine.EndOf(ctx)))
	case len(owners) == 0:
		return nil, nil
	}
	if err := l.engine.Enter(); err != nil {
		return nil, l.wrap("listeners", codec.Owner{}, err)
	}
	defer l.engine.Leave()
	channels := make([]string, len(owners))
	for i, owner := range owners {
		channels[i] = queue.WaiterChannel(owner)
	}
	proof := queue.WaiterChannel(l.engine.NextOwner().String())
	counts, err := l.engine.ProvenListeners(ctx, proof, channels...)
	return counts, l.wrap("listeners", codec.Owner{}, err)
}
