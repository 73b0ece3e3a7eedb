package fairqueue

import (
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

// caller is a caller that asks for the lock, or waits for it.
type caller struct {
	*strategy
	place *Place // while the server has it in its queue

	// The channel that it listens to.
	sub     transport.Subscription
	channel string
	pooled  *Subscription  // that it came with, if it did
	pause   engine.Backoff // while the lock is free, and another waiter is to take it
}

// free ends the use of a caller.
func (c *caller) free() {
	qs := c.queues
	*c = caller{}
	qs.callers.Put(c)
}

// Enter is part of acquire.Waiter. It finds the way that costs the fewest requests.
//
//   - With a subscription from the pool: one attempt, which queues its owner.
//   - While others of this process wait, or did just now: it subscribes, and then is queued by
//     an attempt that needs no second one.
//   - Else, one attempt: as a rule the lock is free, and nothing else is needed.
func (c *caller) Enter(ctx context.Context, a *acquire.Acquisition) (bool, error) {
	c.queues.Prepare(ctx)
	if a.Try || a.Given {
		return false, nil
	}
	pooled, contended := c.queues.pool.get(idOf(c.kind))
	switch {
	case pooled != nil:
		a.Renew(pooled)
		c.pooled, c.sub, c.channel = pooled, pooled.sub, c.kind.Channel(pooled.text)
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

// hasTime reports whether a caller can afford to subscribe before it asks: with little time
// left it might not come to ask at all.
func hasTime(ctx context.Context) bool {
	end, bounded := ctx.Deadline()
	return !bounded || time.Until(end) > 4*acquire.Overdue
}

// listenFirst listens to the channel of an owner that is not queued yet. When that fails, or
// takes long, nothing is lost but the time.
func (c *caller) listenFirst(ctx context.Context, a *acquire.Acquisition) {
	open, cancel := a.Engine.Open(ctx)
	defer cancel()
	open, stop := context.WithTimeout(open, acquire.Overdue)
	defer stop()
	channel := c.kind.Channel(a.Claim().Request().Owner)
	if sub, err := a.Engine.Subscribe(open, channel); err == nil {
		c.sub, c.channel = sub, channel
	}
}

// Listen is part of acquire.Waiter. The others in the queue wait for this one: without a
// subscription it asks all the same.
func (c *caller) Listen(ctx context.Context, a *acquire.Acquisition) error {
	channel := c.kind.Channel(a.Claim().Request().Owner)
	if c.sub != nil && c.channel == channel {
		return nil
	}
	c.unsubscribe()
	sub, err := a.Subscribe(ctx, channel)
	if err != nil || sub == nil {
		return err
	}
	c.sub, c.channel = sub, channel
	if c.place != nil {
		c.place.SetSubscribed(true)
	}
	return nil
}

// unsubscribe ends the subscription.
func (c *caller) unsubscribe() {
	if c.sub != nil {
		c.sub.Close()
	}
	c.sub, c.pooled = nil, nil
	if c.place != nil {
		c.place.SetSubscribed(false)
	}
}

func (c *caller) Signals() (events <-chan transport.Event, wake <-chan struct{}) {
	if c.sub != nil {
		events = c.sub.Events()
	}
	if c.place != nil {
		wake = c.place.wake
	}
	return events, wake
}

// OnEvent is part of acquire.Waiter. After a gap the first of the group asks, for all: what was
// missed shows in the answer.
func (c *caller) OnEvent(a *acquire.Acquisition, e transport.Event) (ask bool, d time.Duration) {
	a.ObserveGap(e)
	if !e.Gap || c.place == nil {
		return true, 0
	}
	c.place.Gap()
	if c.place.Leads() {
		return true, 0
	}
	c.place.CallFirst()
	return false, 0
}

func (c *caller) Woken() (ask bool, d time.Duration) {
	called, leads, planned := c.place.woken()
	switch {
	case called:
		return true, 0
	case leads && c.sub != nil: // else it asks within a second
		return false, max(time.Until(planned), time.Millisecond)
	}
	return false, 0
}

func (c *caller) Broken() error { return c.sub.Err() }

// Refused is part of acquire.Waiter: the server has the owner in its queue.
func (c *caller) Refused(a *acquire.Acquisition, o acquire.Outcome) time.Duration {
	if a.Try {
		return o.TTL
	}
	claim := a.Claim()
	claim.Placed(o.Queued)
	switch {
	case c.place == nil:
		r := claim.Place()
		owner, _ := r.Owner.(string) // always one
		c.place = c.queues.Join(c.kind, a.Lock, Waiter{Owner: owner, Wait: r.Wait})
		c.place.SetSubscribed(c.sub != nil)
	case o.Queued:
		c.place.Back() // its place on the server was lost
	}
	if o.Free {
		c.place.Call(o.Head)
	}
	return leaseLeft(claim.Request().Owner, o)
}

// leaseLeft returns what the holder has left, from the number in a refusal: when the owner was
// queued behind others just now, that number is about them.
func leaseLeft(owner any, o acquire.Outcome) time.Duration {
	switch {
	case o.Queued && o.Free:
		return 0
	case o.Queued && any(o.Head) != owner:
		return reply.NoTTL // not known
	case o.TTL == 0 && !o.Free:
		return reply.NoTTL // the script makes no difference for owners that are queued
	}
	return o.TTL
}

// Sleep is part of acquire.Waiter. Only the first of the group asks without a signal; while
// the lock is free, and no other waiter has come for it, it asks less and less often.
func (c *caller) Sleep(nap, ttl time.Duration) time.Duration {
	if ttl != 0 {
		c.pause = engine.Backoff{}
	} else {
		nap = min(c.pause.Next(), c.queues.engine.PollCap)
	}
	switch {
	case c.place == nil:
	case c.sub == nil:
		return min(nap, time.Second) // and then it tries to listen again
	case !c.place.Leads():
		return -1
	default:
		if ttl == 0 && nap >= idle {
			c.place.Idle()
		}
		c.place.Plan(time.Now().Add(nap))
	}
	return nap
}

func (c *caller) Unanswered(error) {}

// Abandon is part of acquire.Waiter: the place, if there is one, must not count as that of a
// living waiter.
func (c *caller) Abandon() {
	c.unsubscribe()
	c.leaveGroup()
}

func (c *caller) leaveGroup() {
	if c.place != nil {
		c.place.Leave()
		c.place = nil
	}
}

// Granted is part of acquire.Waiter: the server has taken the owner out of its queue. The
// subscription stays with the hold for a second, unless others may use the owner.
func (c *caller) Granted(a *acquire.Acquisition) {
	defer c.free()
	waited := c.place != nil
	c.leaveGroup()
	if c.sub == nil || a.Given {
		c.unsubscribe()
		return
	}
	if c.pooled == nil {
		claim := a.Claim()
		c.pooled = &Subscription{owner: claim.ID(), text: claim.Request().Owner, sub: c.sub, pool: &c.queues.pool}
	}
	a.Claim().KeepSubscription(c.pooled)
	c.queues.pool.keep(idOf(c.kind), c.pooled, waited)
}

// Leave is part of acquire.Waiter. A place in the queue is given up, whatever the reason.
func (c *caller) Leave(a *acquire.Acquisition) {
	defer c.free()
	c.unsubscribe()
	place := c.place
	if place == nil {
		return
	}
	c.leaveGroup()
	c.queues.dequeuer.leave(&departure{
		kind: c.kind, name: a.Lock, request: a.Claim().Place(), place: place.number,
		done: place.WakeSameOwner, // it was their place, too
	})
}
