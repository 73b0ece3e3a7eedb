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
	pooled *subscription  // nil unless sub is from the pool
	pause  engine.Backoff // between polls while the lock is free but another waiter is next

	group  *group // nil unless queued on the server
	waiter Waiter
	number int64         // higher than those of earlier waiters
	wake   chan struct{} // receives a value when the caller is called or starts to lead

	// Guarded by group.mu.
	place  *list.Element
	called bool                   // the caller must poll Redis
	sub    transport.Subscription // nil until the server has acknowledged it
}

func (c *caller) free() {
	qs := c.queues
	*c = caller{}
	qs.callers.Put(c)
}

// Enter subscribes before the first attempt if there is a pooled subscription or the lock is contended. Otherwise the
// attempt comes first, which saves requests.
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

// listenFirst ignores errors, because the caller can subscribe later.
func (c *caller) listenFirst(ctx context.Context, a *acquire.Acquisition) {
	open, cancel := a.Engine.Open(ctx)
	defer cancel()
	open, stop := context.WithTimeout(open, acquire.Overdue)
	defer stop()
	if sub, err := a.Engine.Subscribe(open, c.channel(a)); err == nil {
		c.sub = sub
	}
}

// Listen subscribes unless there is a subscription. The caller also makes attempts without one, because other waiters
// in the queue depend on it.
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

// [caller.Abandon] closes the subscription before the owner, and therefore the channel, changes.
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

// setSub sets sub with the group locked, because a heartbeat may be reading it.
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
	case leads && c.sub != nil: // without a subscription, it polls every second
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
		c.back() // it had lost its place and is now the last
	}
	if o.Free && o.Head != c.waiter.Owner {
		c.group.call(o.Head)
	}
	if o.Queued && c.inheritsDeadline(o) {
		c.group.mu.Lock()
		if time.Since(c.group.beat) >= period {
			c.group.hastenHeartbeats()
		}
		c.group.mu.Unlock()
	}
	return leaseLeft(claim.Request().Owner, o)
}

// inheritsDeadline reports whether the owner, once it is first in the queue, may have a deadline that passes soon after
// its first heartbeat is due. It assumes that the waiters ahead wait as long.
func (c *caller) inheritsDeadline(o acquire.Outcome) bool {
	return o.Position > 1 && o.TTL-time.Duration(o.Position-2)*millis(c.waiter.Wait) < 2*period
}

// leaseLeft returns the remaining time of the holder's lease after a refused attempt, or reply.NoTTL if it is unknown.
// If the attempt queued the owner behind other waiters, the TTL in the reply is that of a waiter's deadline.
func leaseLeft(owner any, o acquire.Outcome) time.Duration {
	switch {
	case o.Queued && o.Free:
		return 0
	case o.Queued && any(o.Head) != owner:
		return reply.NoTTL
	case o.TTL == 0 && !o.Free:
		return reply.NoTTL // the script also returns 0 for a lock that never expires
	}
	return o.TTL
}

// Sleep makes every caller except the first in its group sleep until it is woken. The first polls Redis, but less and
// less often while the lock is free and its next owner doesn't acquire it.
func (c *caller) Sleep(nap, ttl time.Duration) time.Duration {
	if ttl != 0 {
		c.pause = engine.Backoff{}
	} else {
		nap = min(c.pause.Next(), c.queues.engine.PollCap)
	}
	switch {
	case c.group == nil:
	case c.sub == nil:
		return min(nap, time.Second) // then it tries to subscribe again
	case !c.leads():
		return -1
	default:
		c.group.plan(nap, ttl == 0 && nap >= idle)
	}
	return nap
}

func (c *caller) Unanswered(error) {}

func (c *caller) Abandon() {
	c.unsubscribe()
	c.leaveGroup()
}

// Granted keeps the subscription with the hold, unless the owner was given, because other callers may use it.
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
