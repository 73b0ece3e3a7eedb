package localqueue

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

var slot = engine.Slot[*Queues]{Make: func(e *engine.Engine) *Queues { return NewQueues(e.ClientID, e.PollCap) }}

// New returns the strategy for one lock of an engine's client, of a kind all of whose owners have
// one channel. All locks of one name and kind have the same queue.
func New(e *engine.Engine, k acquire.Transferable) acquire.Strategy {
	return &strategy{queues: slot.Of(e), kind: k}
}

type strategy struct {
	queues *Queues
	kind   acquire.Transferable
}

// CanPoll says that callers can do without a subscription.
func (*strategy) CanPoll() {}

// Waiter is part of acquire.Strategy. Callers with a given owner do not wait for each other.
func (s *strategy) Waiter(a *acquire.Acquisition) acquire.Waiter {
	if a.Given {
		return acquire.Alone()
	}
	c, ok := s.queues.callers.Get().(*caller)
	if !ok {
		c = &caller{}
	}
	c.strategy = s
	return c
}

// caller is a caller that waits in the queue, or has the turn.
type caller struct {
	*strategy
	queue   *Queue                 // while it has the turn
	waitsIn *Queue                 // while it waits for the turn
	place   *Waiter                // in waitsIn
	turn    bool                   // the turn has come
	sub     transport.Subscription // that it listens to
	yield   *yielding              // while others go first
}

// free ends the use of a caller.
func (c *caller) free() {
	qs := c.queues
	*c = caller{}
	qs.callers.Put(c)
}

// Enter is part of acquire.Waiter: it waits for the turn, and yields to other processes.
func (c *caller) Enter(ctx context.Context, a *acquire.Acquisition) (bool, error) {
	q := c.queues.Join(c.kind.Name(), c.kind.Key())
	if a.Try {
		has, refused, state := q.TryEnter()
		if has {
			c.queue = q
		}
		if refused {
			a.Learn(state)
			return false, engine.ErrNotAcquired
		}
		return false, nil // without the turn: only Redis knows
	}
	place := q.Enter()
	if place == nil {
		c.queue = q
		return false, nil
	}
	if granted, err := c.awaitTurn(ctx, a, q, place); granted || err != nil {
		return granted, err
	}
	c.queue, a.Passed, a.Transfer = q, place.Passed, place.Transfer
	if !c.letOthersGo(ctx, a, place.Yield) {
		return false, a.GaveUp(ctx)
	}
	q.Yielded()
	return false, a.IsLate(ctx, q.State())
}

func (c *caller) Listen(ctx context.Context, a *acquire.Acquisition) (err error) {
	if c.sub == nil {
		c.sub, err = c.subscription(ctx, a)
	}
	return err
}

// subscription returns the queue's subscription, which the callers that come after use, too.
func (c *caller) subscription(ctx context.Context, a *acquire.Acquisition) (transport.Subscription, error) {
	if sub := c.queue.Subscription(); sub != nil {
		select {
		case _, works := <-sub.Events():
			if works {
				return sub, nil // and the message it had is an old one
			}
			sub.Close()
			c.queue.Keep(nil)
		default:
			return sub, nil
		}
	}
	sub, err := a.Subscribe(ctx, c.kind.Channel(nil))
	if err != nil {
		return nil, err
	}
	c.queue.Keep(sub)
	return sub, nil
}

func (c *caller) Signals() (events <-chan transport.Event, wake <-chan struct{}) {
	if c.place != nil {
		wake = c.place.Ready
	}
	if c.sub != nil {
		events = c.sub.Events()
	}
	return events, wake
}

func (c *caller) OnEvent(a *acquire.Acquisition, e transport.Event) (ask bool, d time.Duration) {
	if c.yield != nil {
		return c.yield.onEvent(e)
	}
	a.ObserveGap(e)
	return true, 0
}

// Woken is part of acquire.Waiter: the turn has come, or a poll is due.
func (c *caller) Woken() (ask bool, d time.Duration) {
	if c.turn = c.waitsIn.HasTurn(c.place); c.turn {
		return true, 0
	}
	return false, 1 // its sleep ends, and so it polls
}

func (c *caller) Broken() error {
	c.queue.Keep(nil)
	c.sub.Close()
	return c.sub.Err()
}

func (c *caller) Refused(a *acquire.Acquisition, o acquire.Outcome) time.Duration {
	a.Passed = false // another owner came in between
	if c.queue != nil {
		c.queue.Refused(o.Holder, o.TTL)
	}
	return o.TTL
}

func (c *caller) Sleep(nap, _ time.Duration) time.Duration { return nap }

func (c *caller) Unanswered(err error) {
	if c.queue != nil {
		c.queue.Away(err)
	}
}

// Abandon is part of acquire.Waiter: the server knows nothing of this queue.
func (c *caller) Abandon() {}

// Granted is part of acquire.Waiter: the turn stays with the hold. One that is over by now
// has passed nothing on.
func (c *caller) Granted(a *acquire.Acquisition) {
	if q := c.queue; q != nil {
		q.Granted(a.Claim().ID())
		q.CloseIdle()
		if !a.Claim().KeepTurn(q) {
			q.Pass(true) // lost already
		}
	}
	c.free()
}

// Leave is part of acquire.Waiter. With an attempt in flight the turn stays with it: until
// its outcome is known, the next caller would find the lock held by this process.
func (c *caller) Leave(a *acquire.Acquisition) {
	switch d := a.InDoubt(); {
	case c.queue == nil:
	case a.Transfer != nil:
		c.queue.PassUnused(a.Transfer)
	case d == nil || !d.PassWhenResolved(c.queue):
		c.queue.Pass(false)
	}
	c.free()
}
