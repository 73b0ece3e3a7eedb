package fairqueue

import (
	"container/list"
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

type strategy struct {
	queues *Queues
	kind   Kind
}

func (s *strategy) Waiter(*acquire.Acquisition) acquire.Waiter {
	c, ok := s.queues.callers.Get().(*caller)
	if !ok {
		c = &caller{}
	}
	c.strategy = s
	return c
}

type caller struct {
	*strategy
	pooled *subscription  // if sub is from the pool
	pause  engine.Backoff // while the lock is free for another

	group  *group // nil unless queued on the server
	waiter Waiter
	number int64         // order in the queue
	wake   chan struct{} // receives when it is called or becomes the first

	// Guarded by group.mu.
	place  *list.Element
	called bool                   // it must poll Redis
	sub    transport.Subscription // acknowledged by the server
}

func (c *caller) free() {
	qs := c.queues
	*c = caller{}
	qs.callers.Put(c)
}

// Enter chooses the order of attempt and subscription that needs the fewest requests: with a pooled subscription, or if
// the lock is contended, it subscribes first; otherwise it attempts first, since the lock is probably free.
func (c *caller) Enter(ctx context.Context, a *acquire.Acquisition) (bool, error) {
	c.queues.Prepare(ctx)
	if a.Try || a.Given {
		return false, nil
	}
	pooled, contended := c.queues.get(idOf(c.kind))
	switch {
	case pooled != nil:
		a.Renew(pooled)
		c.pooled, c.sub = pooled, pooled.sub
	case contended && hasTime(ctx):
		c.listenFirst(ctx, a)
		switch {
		case a.Engine.IsClosing():
			return false, engine.ErrClosed
		case ctx.Err() != nil:
			return false, a.GaveUp(ctx)
		}
	}
	return false, nil
}

func hasTime(ctx context.Context) bool {
	end, bounded := ctx.Deadline()
	return !bounded || time.Until(end) > 4*acquire.Overdue
}

// listenFirst subscribes for an owner that is not queued yet. Failure is harmless.
func (c *caller) listenFirst(ctx context.Context, a *acquire.Acquisition) {
	open, cancel := a.Engine.Open(ctx)
	defer cancel()
	open, stop := context.WithTimeout(open, acquire.Overdue)
	defer stop()
	if sub, err := a.Engine.Subscribe(open, c.channel(a)); err == nil {
		c.sub = sub
	}
}

// Listen subscribes if necessary. The caller makes attempts even without a subscription, because the queue is waiting
// for it.
func (c *caller) Listen(ctx context.Context, a *acquire.Acquisition) error {
	if c.sub != nil {
		return nil
	}
	sub, err := a.Subscribe(ctx, c.channel(a))
	if err == nil && sub != nil {
		c.setSub(sub)
	}
	return err
}

// channel returns the owner's channel. [caller.Abandon] ends the subscription before the owner changes.
func (c *caller) channel(a *acquire.Acquisition) string {
	return c.kind.Channel(a.Claim().Request().Owner)
}

func (c *caller) unsubscribe() {
	if c.sub != nil {
		c.sub.Close()
	}
	c.setSub(nil)
	c.pooled = nil
}

// setSub locks the group: a heartbeat may read sub.
func (c *caller) setSub(sub transport.Subscription) {
	if c.group != nil {
		c.group.mu.Lock()
		defer c.group.mu.Unlock()
	}
	c.sub = sub
}

func (c *caller) Signals() (events <-chan transport.Event, wake <-chan struct{}) {
	if c.sub != nil {
		events = c.sub.Events()
	}
	return events, c.wake
}

func (c *caller) OnEvent(e transport.Event) (ask bool, d time.Duration) {
	return !e.Gap || c.group == nil || c.sawGap(), 0
}

func (c *caller) Woken() (ask bool, d time.Duration) {
	g := c.group
	g.mu.Lock()
	called, leads, planned := c.called, g.first() == c, g.next
	c.called = false
	g.mu.Unlock()
	switch {
	case called:
		return true, 0
	case leads && c.sub != nil: // otherwise it polls each second
		return false, max(time.Until(planned), time.Millisecond)
	}
	return false, 0
}

func (c *caller) Broken() error { return c.sub.Err() }

func (c *caller) Refused(a *acquire.Acquisition, o acquire.Outcome) time.Duration {
	if a.Try {
		return o.TTL
	}
	claim := a.Claim()
	claim.Placed(o.Queued)
	switch {
	case c.group == nil:
		r := claim.Place()
		owner, _ := r.Owner.(string)
		c.join(a.Lock, Waiter{Owner: owner, Wait: r.Wait})
	case o.Queued:
		c.back() // it had lost its place
	}
	if o.Free && o.Head != c.waiter.Owner {
		c.group.call(o.Head)
	}
	return leaseLeft(claim.Request().Owner, o)
}

// leaseLeft returns the holder's remaining lease after a refused attempt. If the attempt has just queued the owner
// behind others, the number in the reply describes those waiters, not the holder.
func leaseLeft(owner any, o acquire.Outcome) time.Duration {
	switch {
	case o.Queued && o.Free:
		return 0
	case o.Queued && any(o.Head) != owner:
		return reply.NoTTL
	case o.TTL == 0 && !o.Free:
		return reply.NoTTL // or 0, since the script does not distinguish them
	}
	return o.TTL
}

// Sleep lets only the first caller in the group poll. That caller polls less and less often for as long as the lock is
// free but its next owner does not claim it.
func (c *caller) Sleep(nap, ttl time.Duration) time.Duration {
	if ttl != 0 {
		c.pause = engine.Backoff{}
	} else {
		nap = min(c.pause.Next(), c.queues.engine.PollCap)
	}
	switch {
	case c.group == nil:
	case c.sub == nil:
		return min(nap, time.Second) // to subscribe again
	case !c.leads():
		return -1
	default:
		c.group.plan(nap, ttl == 0 && nap >= idle)
	}
	return nap
}

func (c *caller) Unanswered(error) {}

// Abandon leaves the group, so that heartbeats no longer keep the place.
func (c *caller) Abandon() {
	c.unsubscribe()
	c.leaveGroup()
}

// Granted keeps the subscription with the hold, unless others may use the owner.
func (c *caller) Granted(a *acquire.Acquisition) {
	defer c.free()
	waited := c.group != nil
	c.leaveGroup()
	if c.sub == nil || a.Given {
		c.unsubscribe()
		return
	}
	if c.pooled == nil {
		claim := a.Claim()
		c.pooled = &subscription{owner: claim.ID(), text: claim.Request().Owner, sub: c.sub, queues: c.queues}
	}
	a.Claim().KeepSubscription(c.pooled)
	c.queues.keep(c.kind, a.Lock, c.pooled, waited)
}

// Leave implements acquire.Waiter.
func (c *caller) Leave(a *acquire.Acquisition) {
	defer c.free()
	c.unsubscribe()
	g, owner := c.group, c.waiter.Owner
	if g == nil {
		return
	}
	c.leaveGroup()
	c.queues.dequeuer.leave(&departure{
		kind: c.kind, name: a.Lock, request: a.Claim().Place(), place: c.number,
		done: func() { g.callAll(owner) }, // their place is gone as well
	})
}
