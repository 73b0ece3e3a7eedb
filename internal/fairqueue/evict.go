package fairqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Inspected is a kind whose queue can be looked at.
type Inspected interface {
	Kind
	// Inspect fills c with the call that reads the lock and its places from first to last, and
	// Inspected reads the reply.
	Inspect(c *transport.Call, first, last int64)
	Inspected(reply any) (reply.Inspection, error)
}

// Eviction takes one waiter out of a queue because an operator asks for it.
type Eviction struct {
	// Queues are those of the client, Kind is the lock.
	Queues *Queues
	Kind   Inspected
	// Ask runs a call that may be repeated.
	Ask func(ctx context.Context, fill func(*transport.Call)) (reply any, err error)
	// Owner is the waiter's, as it stands in Redis.
	Owner string
	// Force is true when the waiter is to go although it lives, or although that cannot be
	// found out.
	Force bool
}

// TakenOut is what an eviction has done.
type TakenOut struct {
	// Was is the waiter's place before, and Index where that was, from 0.
	Was   reply.Queued
	Index int
	// Listeners is how many connections listened to its channel, -1 when that is not known.
	Listeners int64
	// Next is the owner that comes next, as it stands in Redis, empty when there is none.
	Next string
	// Woken is true when the lock was free, so that Next was sent its wake-up.
	Woken bool
}

const (
	// maxLooks is how often a place that changes while it is looked at is looked at again. It
	// changes when others' heartbeats put it off, every few seconds.
	maxLooks = 5
	// pageOf is how many places of a queue are read at once.
	pageOf = 200
)

var errChanged = errors.New("its place changed each time it was looked at")

// sighting is a waiter's place in a queue.
type sighting struct {
	reply.Inspection        // with the part of the queue that has the place, and the place before it
	first, i         int    // the first place of the part, and the waiter's index in the part
	next             string // the owner that comes next without the waiter, "" for none
}

// Run takes the waiter out.
func (e *Eviction) Run(ctx context.Context) (*TakenOut, error) {
	for range maxLooks {
		before, err := e.find(ctx)
		if err != nil {
			return nil, err
		}
		listeners, err := e.listeners(ctx)
		if err != nil {
			return nil, err
		}
		switch out, err := e.takeOut(ctx, before); {
		case err != nil:
			return nil, err
		case out:
			return e.report(ctx, before, listeners)
		}
	}
	return nil, errChanged
}

// find finds the waiter. Dead ones are mostly in front. Behind the first places it searches from the
// end: places only come forward, so it misses none, and ends with the first places again.
func (e *Eviction) find(ctx context.Context) (*sighting, error) {
	front, err := e.look(ctx, 0, pageOf-1)
	if err != nil {
		return nil, err
	}
	at := &sighting{Inspection: front, i: e.indexIn(&front)}
	for _, q := range front.Queue {
		if q.Owner != e.Owner {
			at.next = q.Owner
			break
		}
	}
	for last := front.Waiting - 1; at.i < 0 && last >= 0 && front.Waiting > pageOf; last -= pageOf {
		at.first = int(max(0, last-pageOf))
		if at.Inspection, err = e.look(ctx, int64(at.first), last); err != nil {
			return nil, err
		}
		if at.i = e.indexIn(&at.Inspection); at.i == 0 && at.first > 0 {
			at.i = -1 // the one before it is not known: it is the last of the next part
		}
	}
	if at.i < 0 {
		return nil, engine.ErrNotQueued
	}
	return at, nil
}

// indexIn returns where the waiter is among the places that were read, -1 if it is not there.
func (e *Eviction) indexIn(seen *reply.Inspection) int {
	return slices.IndexFunc(seen.Queue, func(q reply.Queued) bool { return q.Owner == e.Owner })
}

// look reads the lock and its places from first to last. A reply with fewer places than it counts is
// an error: the search would not end.
func (e *Eviction) look(ctx context.Context, first, last int64) (reply.Inspection, error) {
	answer, err := e.Ask(ctx, func(c *transport.Call) { e.Kind.Inspect(c, first, last) })
	if err != nil {
		return reply.Inspection{}, err
	}
	seen, err := e.Kind.Inspected(answer)
	if err == nil && int64(len(seen.Queue)) < min(last, seen.Waiting-1)-first+1 {
		err = fmt.Errorf("%w: %d places from %d to %d of %d", transport.ErrBadReply, len(seen.Queue), first, last, seen.Waiting)
	}
	return seen, err
}

// listeners finds out whether the waiter lives. An error says that it is to be left.
func (e *Eviction) listeners(ctx context.Context) (int64, error) {
	counts, err := e.Queues.Listeners(ctx, e.Kind, e.Owner)
	switch {
	case err == nil && (counts[0] == 0 || e.Force):
		return counts[0], nil
	case err == nil:
		return counts[0], fmt.Errorf("%w: a connection listens to its channel", engine.ErrWaiterAlive)
	case errors.Is(err, engine.ErrNotCounted) && e.Force:
		err = nil // as was asked for
	}
	return -1, err
}

// Listeners returns how many connections listen for each of owners, waiters by their texts in
// Redis.
func (qs *Queues) Listeners(ctx context.Context, k Kind, owners ...string) ([]int64, error) {
	if err := qs.engine.Enter(); err != nil {
		return nil, err
	}
	defer qs.engine.Leave()
	channels := make([]string, len(owners))
	for i, owner := range owners {
		channels[i] = k.Channel(owner)
	}
	proof := k.Channel(qs.engine.NextOwner().String())
	return qs.engine.ProvenListeners(ctx, proof, channels...)
}

// takeOut takes the waiter out, and reports whether it is out: the first one stays when it has done
// anything since it was looked at.
func (e *Eviction) takeOut(ctx context.Context, seen *sighting) (bool, error) {
	isHead := seen.first == 0 && seen.i == 0
	answer, err := e.Ask(ctx, func(c *transport.Call) {
		e.Queues.Prepare(ctx)
		if isHead {
			e.Kind.Evict(c, []reply.Place{{Owner: e.Owner, Deadline: seen.Queue[0].Score}})
			return
		}
		wait := waitAt(seen.Queue, seen.i, time.UnixMilli(e.Queues.NowMillis()), e.Queues.engine.FairWait)
		e.Kind.GiveUp(c, &acquire.Request{Owner: e.Owner, Wait: wait.Milliseconds()})
	})
	if err != nil || !isHead {
		return err == nil, err
	}
	evicted, err := reply.DecodeEvicted(answer)
	return len(evicted) > 0, err
}

// waitAt returns the wait with which the waiter at place i seems to be queued: what its
// deadline is later than that of the one before it, or than now if that one is overdue. With
// more than that taken off, those behind it could count as dead although they live.
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
func (e *Eviction) report(ctx context.Context, before *sighting, listeners int64) (*TakenOut, error) {
	done := &TakenOut{Was: before.Queue[before.i], Index: before.first + before.i, Listeners: listeners, Next: before.next}
	after, err := e.look(ctx, 0, 0)
	switch {
	case err != nil:
		return done, nil //nolint:nilerr // it is done, and whether the next was woken is not known
	case holds(&after, e.Owner) && !holds(&before.Inspection, e.Owner):
		return nil, engine.ErrNotQueued // it got the lock before it was taken out
	}
	done.Woken = done.Next != "" && before.Left == reply.NoKey && (after.Left == reply.NoKey || holds(&after, done.Next))
	return done, nil
}

// holds reports whether an owner holds the lock.
func holds(in *reply.Inspection, owner string) bool {
	return slices.ContainsFunc(in.Held, func(h reply.Held) bool { return h.Owner == owner })
}

// Evictions are what evicting many waiters has done.
type Evictions struct {
	// Out are the waiters that were taken out, the last in the queue first, without who comes next.
	Out []TakenOut
	// Woken is the owner that was sent its wake-up, as it stands in Redis, if it was the first in
	// the queue of the free lock afterwards.
	Woken string
}

// All takes those of owners out that have no subscriber, in place of the one Owner. None of them
// stands behind the place last, from 1. The effect is that of evicting them one by one, the last in
// the queue first.
func (e *Eviction) All(ctx context.Context, owners []string, last int) (*Evictions, error) {
	asked := make(map[string]bool, len(owners))
	for _, owner := range owners {
		asked[owner] = true
	}
	done := &Evictions{}
	seen, err := e.look(ctx, 0, 0)
	// From the end: those that were not looked at yet can only come forward meanwhile.
	for last := min(seen.Waiting, int64(last)) - 1; err == nil && last > 0 && len(asked) > 0; last -= batch {
		err = e.behind(ctx, asked, max(1, last-batch+1), last, done)
	}
	if err == nil {
		err = e.heads(ctx, asked, done)
	}
	return done, err
}

// behind takes waiters out that stand at places from first to last, of which none is the head. Those
// that it has looked at are no longer asked for.
func (e *Eviction) behind(ctx context.Context, asked map[string]bool, first, last int64, done *Evictions) error {
	before, err := e.look(ctx, first-1, last)
	if err != nil {
		return err
	}
	var out []TakenOut
	for i := len(before.Queue) - 1; i > 0; i-- {
		if asked[before.Queue[i].Owner] {
			out = append(out, TakenOut{Was: before.Queue[i], Index: int(first) - 1 + i})
			delete(asked, before.Queue[i].Owner)
		}
	}
	if out, err = e.dead(ctx, out); err != nil || len(out) == 0 {
		return err
	}
	_, err = e.Ask(ctx, func(c *transport.Call) {
		e.Queues.Prepare(ctx)
		now := time.UnixMilli(e.Queues.NowMillis())
		for _, o := range out {
			wait := waitAt(before.Queue, o.Index-int(first)+1, now, e.Queues.engine.FairWait)
			e.Kind.GiveUp(c, &acquire.Request{Owner: o.Was.Owner, Wait: wait.Milliseconds()})
		}
	})
	if err == nil {
		e.note(ctx, &before, out, done)
	}
	return err
}

// heads takes the first in the queue out, as long as it is to go.
func (e *Eviction) heads(ctx context.Context, asked map[string]bool, done *Evictions) error {
	for looks := 0; looks < maxLooks; looks++ {
		before, err := e.look(ctx, 0, 0)
		if err != nil || len(before.Queue) == 0 || !asked[before.Queue[0].Owner] {
			return err
		}
		out, err := e.dead(ctx, []TakenOut{{Was: before.Queue[0]}})
		if err != nil || len(out) == 0 {
			return err
		}
		head := *e
		head.Owner = before.Queue[0].Owner
		switch gone, err := head.takeOut(ctx, &sighting{Inspection: before}); {
		case err != nil:
			return err
		case gone:
			e.note(ctx, &before, out, done)
			looks = -1
		}
	}
	return errChanged
}

// dead returns those of waiters that have no subscriber.
func (e *Eviction) dead(ctx context.Context, waiters []TakenOut) ([]TakenOut, error) {
	if len(waiters) == 0 {
		return nil, nil
	}
	owners := make([]string, len(waiters))
	for i := range waiters {
		owners[i] = waiters[i].Was.Owner
	}
	counts, err := e.Queues.Listeners(ctx, e.Kind, owners...)
	if err != nil {
		return nil, err
	}
	var dead []TakenOut
	for i := range waiters {
		if counts[i] == 0 {
			dead = append(dead, waiters[i])
		}
	}
	return dead, nil
}

// note looks at what came of it, as report does for one waiter.
func (e *Eviction) note(ctx context.Context, before *reply.Inspection, out []TakenOut, done *Evictions) {
	after, err := e.look(ctx, 0, 0)
	if err != nil {
		done.Out = append(done.Out, out...) // it is done, and whether the next was woken is not known
		return
	}
	out = slices.DeleteFunc(out, func(o TakenOut) bool { return holds(&after, o.Was.Owner) && !holds(before, o.Was.Owner) })
	done.Out = append(done.Out, out...)
	if len(out) > 0 && before.Left == reply.NoKey && after.Left == reply.NoKey && len(after.Queue) > 0 {
		done.Woken = after.Queue[0].Owner
	}
}
