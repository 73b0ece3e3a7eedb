package fairqueue

import (
	"context"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

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
