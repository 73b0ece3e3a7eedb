// Package localqueue is a strategy for locks that one owner holds at a time: the callers of one
// process wait in a queue, first come, first served. One of them has the turn and talks to
// Redis; the others cost nothing. [New] makes the strategy of a lock; a [Queue] has its
// callers.
//
//	          Enter                     Pass, PassLock of the one before
//	caller ──────────▶ waiter ─────────────────────────▶ has the turn
//	   │ the turn is free  │ Quit                          │  Granted, Refused, Away
//	   └─────────────────▶ has the turn                    │  say what Redis answered
//	                                                       ▼
//	                                   Pass      the lock is freed, the next one acquires it
//	                                   PassLock  the lock goes with the turn, not free in between
//
// A queue yields to other processes: after a burst of its own turns the next caller waits
// until the others had as many, see [Yield]. The lock is transferred inside the process only
// while all contenders of other processes are clients of this library.
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

// awaitTurn waits for the turn, which has come when it returns neither true nor an error.
func (c *caller) awaitTurn(ctx context.Context, a *acquire.Acquisition, q *Queue, place *Waiter) (granted bool, err error) {
	c.waitsIn, c.place = q, place
	defer func() { c.waitsIn, c.place = nil, nil }()
	if granted, err = a.AwaitTurn(ctx, c, 0); granted || err != nil {
		q.Quit(place)
	}
	return granted, err
}

func (c *caller) State() acquire.QueueState { return c.waitsIn.State() }
func (c *caller) Came() bool                { return c.turn }

// Poll is part of acquire.Queued: the next caller in the queue asks. The queue wakes it for that.
func (c *caller) Poll(ctx context.Context, a *acquire.Acquisition) (granted bool, err error) {
	q, place := c.waitsIn, c.place
	if !q.IsNext(place) || !q.State().Held {
		return false, nil // another caller asks
	}
	q.Asks(place, true)
	defer q.Asks(place, false)
	return a.Peek(ctx)
}

// manyOthers stands for processes that cannot be counted.
const manyOthers = 4

// letOthersGo yields to other processes. If any wait, they have been woken by the release just
// sent, and acquire the lock as often as this process did, each of them: for a pause alone they
// would have to be as fast as this process. It returns false when the caller has left
// meanwhile.
func (c *caller) letOthersGo(ctx context.Context, a *acquire.Acquisition, y Yield) bool {
	switch {
	case y.Turns == 0:
		return true
	case a.Deaf: // it hears no turns of others
		a.Engine.Sleep(ctx, y.Patience) // that the client closes shows in what follows
		return ctx.Err() == nil
	}
	others, counted := c.countOthers(ctx, a)
	if ctx.Err() != nil {
		return false // which says nothing about others
	}
	c.queue.Others(others, counted)
	if others <= 0 {
		return true
	}
	if sub, err := c.subscription(ctx, a); err == nil {
		c.sub, c.yield = sub, &yielding{
			began: time.Now(), turns: y.Turns * others,
			least: y.Span * time.Duration(others), most: y.Most * time.Duration(others), patience: y.Patience,
		}
		_ = a.Sleep(ctx, y.Patience) // an end of the call shows in what follows
		c.sub, c.yield = nil, nil
	}
	return ctx.Err() == nil
}

// countOthers returns how many processes wait, besides this one. It guesses if that cannot
// be found out soon.
func (c *caller) countOthers(ctx context.Context, a *acquire.Acquisition) (n int, counted bool) {
	n, counted = a.Listeners(ctx)
	switch {
	case !counted:
		return manyOthers, false
	case c.queue.Subscription() != nil:
		return max(n-1, 0), true
	}
	return n, true
}

// yielding is a wait until the others had their turns, or none came for too long.
type yielding struct {
	began       time.Time
	turns, had  int
	least, most time.Duration // most 0: without a bound
	patience    time.Duration
}

// onEvent counts an event, and reports whether the others had their turns.
func (y *yielding) onEvent(e transport.Event) (over bool, d time.Duration) {
	y.had += 1 + e.Coalesced
	took := time.Since(y.began)
	over = y.had >= y.turns && took >= y.least || y.most > 0 && took >= y.most
	return over, y.patience
}
