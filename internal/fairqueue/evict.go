package fairqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/fairqueue/liveness"
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
	// Owner is the waiter that [Eviction.Run] evicts, as stored in Redis.
	Owner string
	// Force makes Run evict the waiter even if it is, or may be, alive.
	Force bool
}

// TakenOut is an evicted waiter.
type TakenOut struct {
	// Was is the waiter's former place, and Index its position in the queue, counting from 0.
	Was   reply.Queued
	Index int
	// Listeners is the number of subscribers to its channel, or -1 if unknown.
	Listeners int64
	// Next is the owner that is now at the head of the queue, or "" if there is none.
	Next string
	// Woken is true if the lock is free and Next was notified.
	Woken bool
}

const (
	// maxLooks limits how often the queue is read again because a place changed between the read and its eviction.
	maxLooks = 5
	pageOf   = 200
)

var errChanged = errors.New("its place changed on each check")

type sighting struct {
	reply.Inspection
	first int // index of the first place
}

func (s *sighting) at(i int) TakenOut { return TakenOut{Was: s.Queue[i], Index: s.first + i} }

// Run evicts Owner.
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
			return nil, engine.ErrNotQueued // the waiter acquired the lock
		}
		out[0].Listeners, out[0].Next = listeners, next
		out[0].Woken = next != "" && seen.Left == reply.NoKey && (after.Left == reply.NoKey || holds(after, next))
		return &out[0], nil
	}
	return nil, errChanged
}

// find returns a part of the queue that contains the waiter and the place before it, the waiter's index in that part,
// and the owner that will be at the head of the queue once the waiter is gone. It reads the front of the queue first,
// where most dead waiters are, and then searches from the end, because places only move forward.
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
	// The waiter may move into the first part while the loop reads the others.
	long := seen.Waiting > pageOf
	for last := seen.Waiting - 1; i < 0 && last >= 0 && long; last -= pageOf {
		if seen, err = e.look(ctx, max(0, last-pageOf), last); err != nil {
			return nil, 0, "", err
		}
		if i = e.indexIn(seen); i == 0 && seen.first > 0 {
			i = -1 // the next part includes the place before it
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

// look reads the lock and the places from first to last. A reply with too few places is an error.
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

// listeners returns the number of subscribers to the waiter's channel, or -1 if unknown. It returns an error if the
// waiter must not be evicted.
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

// Listeners returns the number of subscribers to the channel of each owner.
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

// takeOut evicts waiters in the part of the queue that was read, and then reads the lock again. It returns the waiters
// that had not acquired the lock first, the state afterward, which is zero if it is unknown, and whether the waiters
// have left the queue. The head of the queue, which is always passed alone, stays if its deadline has changed.
func (e *Eviction) takeOut(ctx context.Context, seen *sighting, out []TakenOut) (_ []TakenOut, after reply.Inspection, gone bool, _ error) {
	isHead := out[0].Index == 0
	answer, err := e.Ask(ctx, func(c *transport.Call) {
		e.Queues.Prepare(ctx)
		if isHead {
			e.Kind.Evict(c, liveness.Keep(period, seen.Waiting), []reply.Place{{Owner: out[0].Was.Owner, Deadline: out[0].Was.Score}})
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

// waitAt estimates the wait of the waiter at index i. It is the time from the previous deadline, or from now if that
// has passed, to its own. A longer wait could make the waiters behind it overdue.
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
	// Out contains the evicted waiters, last first. Their Next and Woken fields are not set.
	Out []TakenOut
	// Woken is the owner that was notified of the free lock, or "" if there is none.
	Woken string
}

// All evicts the given owners, last first, unless their channels have subscribers. It ignores Owner. last is the
// highest place of the given owners, counting from 1.
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
	// Waiters that have not been read yet can only have moved forward.
	for last := min(seen.Waiting, int64(last)) - 1; last > 0 && len(asked) > 0; last -= batch {
		if err := e.behind(ctx, asked, max(1, last-batch+1), last, done); err != nil {
			return done, err
		}
	}
	return done, e.heads(ctx, asked, done)
}

// behind evicts the dead waiters in asked at the indexes first to last, which don't include the head. It removes all
// waiters that it finds from asked.
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

// dead evicts the waiters whose channels have no subscriber, and reports whether there were none.
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
