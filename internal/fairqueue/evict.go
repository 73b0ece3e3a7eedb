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

// Inspected is a kind whose queue can be read.
type Inspected interface {
	Kind
	// Inspect fills c with the call that reads the lock and its places from first to last.
	Inspect(c *transport.Call, first, last int64)
	Inspected(reply any) (reply.Inspection, error)
}

// Eviction removes waiters from a queue at an operator's request.
type Eviction struct {
	Queues *Queues
	Kind   Inspected
	// Ask runs an idempotent call.
	Ask func(ctx context.Context, fill func(*transport.Call)) (reply any, err error)
	// Owner is [Eviction.Run]'s waiter, as in Redis.
	Owner string
	// Force makes Run remove a waiter that is or may be alive.
	Force bool
}

// TakenOut is an evicted waiter.
type TakenOut struct {
	// Was is the waiter's former place, at Index, counting from 0.
	Was   reply.Queued
	Index int
	// Listeners is the number of listeners on its channel, or -1 if unknown.
	Listeners int64
	// Next is the next owner, as in Redis, or "" if there is none.
	Next string
	// Woken is true if Next was notified of a free lock.
	Woken bool
}

const (
	// maxLooks limits how often a place is read again because it changed before its eviction, as it does at each
	// heartbeat.
	maxLooks = 5
	// pageOf is the number of places per read.
	pageOf = 200
)

var errChanged = errors.New("its place changed on each check")

type sighting struct {
	reply.Inspection
	first int // index of the first place
}

func (s *sighting) at(i int) TakenOut { return TakenOut{Was: s.Queue[i], Index: s.first + i} }

// Run evicts the one Owner.
func (e *Eviction) Run(ctx context.Context) (*TakenOut, error) {
	for range maxLooks {
		seen, i, next, err := e.find(ctx)
		if err != nil {
			return nil, err
		}
		listeners, err := e.listeners(ctx)
		if err != nil {
			return nil, err
		}
		out, after, gone, err := e.takeOut(ctx, seen, []TakenOut{seen.at(i)})
		switch {
		case err != nil:
			return nil, err
		case !gone:
			continue
		case len(out) == 0:
			return nil, engine.ErrNotQueued // it acquired the lock
		}
		out[0].Listeners, out[0].Next = listeners, next
		out[0].Woken = next != "" && seen.Left == reply.NoKey && (after.Left == reply.NoKey || holds(after, next))
		return &out[0], nil
	}
	return nil, errChanged
}

// find returns a part of the queue with the waiter and the place before it, the waiter's index in it, and the owner
// that is first once the waiter is gone. Since dead waiters are mostly in front, it starts there and then searches from
// the end. Places only move forward, so it doesn't miss any.
func (e *Eviction) find(ctx context.Context) (seen *sighting, i int, next string, err error) {
	if seen, err = e.look(ctx, 0, pageOf-1); err != nil {
		return nil, 0, "", err
	}
	for _, q := range seen.Queue {
		if q.Owner != e.Owner {
			next = q.Owner
			break
		}
	}
	i = e.indexIn(seen)
	long := seen.Waiting > pageOf // until then the waiter may move into the part that was read
	for last := seen.Waiting - 1; i < 0 && last >= 0 && long; last -= pageOf {
		if seen, err = e.look(ctx, max(0, last-pageOf), last); err != nil {
			return nil, 0, "", err
		}
		if i = e.indexIn(seen); i == 0 && seen.first > 0 {
			i = -1 // the place before it is the last of the next part
		}
	}
	if i < 0 {
		return nil, 0, "", engine.ErrNotQueued
	}
	return seen, i, next, nil
}

func (e *Eviction) indexIn(seen *sighting) int {
	return slices.IndexFunc(seen.Queue, func(q reply.Queued) bool { return q.Owner == e.Owner })
}

// look reads the lock and its places from first to last. A reply with fewer places is an error, because the search
// would not end.
func (e *Eviction) look(ctx context.Context, first, last int64) (*sighting, error) {
	answer, err := e.Ask(ctx, func(c *transport.Call) { e.Kind.Inspect(c, first, last) })
	if err != nil {
		return nil, err
	}
	seen, err := e.Kind.Inspected(answer)
	if err == nil && int64(len(seen.Queue)) < min(last, seen.Waiting-1)-first+1 {
		err = fmt.Errorf("%w: %d places from %d to %d of %d", transport.ErrBadReply, len(seen.Queue), first, last, seen.Waiting)
	}
	return &sighting{seen, int(first)}, err
}

// listeners returns an error if the waiter must stay.
func (e *Eviction) listeners(ctx context.Context) (int64, error) {
	counts, err := e.Queues.Listeners(ctx, e.Kind, e.Owner)
	switch {
	case err == nil && (counts[0] == 0 || e.Force):
		return counts[0], nil
	case err == nil:
		return counts[0], fmt.Errorf("%w: a connection is subscribed to its channel", engine.ErrWaiterAlive)
	case errors.Is(err, engine.ErrNotCounted) && e.Force:
		err = nil
	}
	return -1, err
}

// Listeners returns how many connections are listening for each owner.
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

// takeOut evicts waiters in the part of the queue that was read, and then reads the lock again. It reports whether they
// were removed: the head of the queue, which is always passed alone, stays if its deadline has changed. takeOut returns
// the waiters that did not acquire the lock first, and the state afterward, which is zero if it is unknown.
func (e *Eviction) takeOut(ctx context.Context, seen *sighting, out []TakenOut) (_ []TakenOut, after reply.Inspection, gone bool, _ error) {
	isHead := out[0].Index == 0
	answer, err := e.Ask(ctx, func(c *transport.Call) {
		e.Queues.Prepare(ctx)
		if isHead {
			e.Kind.Evict(c, []reply.Place{{Owner: out[0].Was.Owner, Deadline: out[0].Was.Score}})
			return
		}
		now := time.UnixMilli(e.Queues.NowMillis())
		for _, o := range out {
			wait := waitAt(seen.Queue, o.Index-seen.first, now, e.Queues.engine.FairWait)
			e.Kind.GiveUp(c, &acquire.Request{Owner: o.Was.Owner, Wait: wait.Milliseconds()})
		}
	})
	if err == nil && isHead {
		var evicted []string
		if evicted, err = reply.DecodeEvicted(answer); len(evicted) == 0 {
			return nil, after, false, err
		}
	}
	if err != nil {
		return nil, after, false, err
	}
	if now, err := e.look(ctx, 0, 0); err == nil {
		after = now.Inspection
	}
	return slices.DeleteFunc(out, func(o TakenOut) bool {
		return holds(after, o.Was.Owner) && !holds(seen.Inspection, o.Was.Owner)
	}), after, true, nil
}

// waitAt returns the probable wait of the waiter at place i: the time from the deadline before it to its own, or from
// now if the former has passed. A longer wait could make waiters behind it overdue.
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

func holds(in reply.Inspection, owner string) bool {
	return slices.ContainsFunc(in.Held, func(h reply.Held) bool { return h.Owner == owner })
}

// Evictions is the result of [Eviction.All].
type Evictions struct {
	// Out are the evicted waiters, last first, without Next and Woken.
	Out []TakenOut
	// Woken is the owner notified as the first of a free lock, or "" if there is none.
	Woken string
}

// All evicts the owners without a subscriber, from the end of the queue; it ignores Owner. last is their highest place,
// counting from 1.
func (e *Eviction) All(ctx context.Context, owners []string, last int) (*Evictions, error) {
	asked := make(map[string]bool, len(owners))
	for _, owner := range owners {
		asked[owner] = true
	}
	done := &Evictions{}
	seen, err := e.look(ctx, 0, 0)
	if err != nil {
		return done, err
	}
	// Waiters that have not been read yet can only move forward.
	for last := min(seen.Waiting, int64(last)) - 1; last > 0 && len(asked) > 0; last -= batch {
		if err := e.behind(ctx, asked, max(1, last-batch+1), last, done); err != nil {
			return done, err
		}
	}
	return done, e.heads(ctx, asked, done)
}

// behind evicts waiters at places from first to last, without the head, and removes them from asked.
func (e *Eviction) behind(ctx context.Context, asked map[string]bool, first, last int64, done *Evictions) error {
	seen, err := e.look(ctx, first-1, last)
	if err != nil {
		return err
	}
	var out []TakenOut
	for i := len(seen.Queue) - 1; i > 0; i-- {
		if asked[seen.Queue[i].Owner] {
			out = append(out, seen.at(i))
			delete(asked, seen.Queue[i].Owner)
		}
	}
	_, err = e.dead(ctx, seen, out, done)
	return err
}

func (e *Eviction) heads(ctx context.Context, asked map[string]bool, done *Evictions) error {
	for range maxLooks + len(asked) {
		seen, err := e.look(ctx, 0, 0)
		if err != nil || len(seen.Queue) == 0 || !asked[seen.Queue[0].Owner] {
			return err
		}
		if none, err := e.dead(ctx, seen, []TakenOut{seen.at(0)}, done); err != nil || none {
			return err
		}
	}
	return errChanged
}

// dead evicts the waiters without a subscriber, and reports whether there were none.
func (e *Eviction) dead(ctx context.Context, seen *sighting, waiters []TakenOut, done *Evictions) (none bool, err error) {
	if len(waiters) == 0 {
		return true, nil
	}
	owners := make([]string, len(waiters))
	for i := range waiters {
		owners[i] = waiters[i].Was.Owner
	}
	counts, err := e.Queues.Listeners(ctx, e.Kind, owners...)
	if err != nil {
		return false, err
	}
	var dead []TakenOut
	for i := range waiters {
		if counts[i] == 0 {
			dead = append(dead, waiters[i])
		}
	}
	if len(dead) == 0 {
		return true, nil
	}
	out, after, _, err := e.takeOut(ctx, seen, dead)
	done.Out = append(done.Out, out...)
	if len(out) > 0 && seen.Left == reply.NoKey && after.Left == reply.NoKey && len(after.Queue) > 0 {
		done.Woken = after.Queue[0].Owner
	}
	return false, err
}
