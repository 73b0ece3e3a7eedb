// Package localqueue is the strategy for locks with one owner at a time: the callers in a process
// wait in a FIFO queue, and only the first one sends calls. Other processes get their share: after
// a burst of local turns, the next caller yields until the others had as many, see [Yield]. While
// all other processes are clients of this library, the lock itself is transferred within a burst.
//
//	          Enter                     Pass, PassLock
//	caller ──────────▶ waiter ─────────────────────────▶ has the turn
//	   │ the turn is free  │ Quit                          │  Granted, Refused, Away
//	   └─────────────────▶ has the turn                    ▼
//	                                   Pass      the lock is freed, the next caller acquires it
//	                                   PassLock  the next caller takes the lock over
package localqueue

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

var slot = engine.Slot[*Queues]{Make: func(e *engine.Engine) *Queues { return NewQueues(e.ClientID, e.PollCap) }}

// New returns the strategy for a lock whose owners all have one channel. Locks with the same name
// and kind share a queue.
func New(e *engine.Engine, k acquire.Transferable) acquire.Strategy {
	return &strategy{queues: slot.Of(e), kind: k}
}

type strategy struct {
	queues *Queues
	kind   acquire.Transferable
}

// CanPoll marks callers that can work without a subscription.
func (*strategy) CanPoll() {}

// Waiter implements acquire.Strategy. Callers with a shared owner don't exclude each other.
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

type caller struct {
	*strategy
	queue   *Queue                 // while it has the turn
	waitsIn *Queue                 // while it waits for the turn
	place   *Waiter                // in waitsIn
	turn    bool                   // the turn has come
	sub     transport.Subscription // nil while it does not listen
	yield   *yielding              // while others go first
}

func (c *caller) free() {
	qs := c.queues
	*c = caller{}
	qs.callers.Put(c)
}

// Enter waits for the turn, and yields to other processes.
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
		return false, nil // makes an attempt without the turn: only Redis knows
	}
	place := q.Enter()
	if place == nil {
		c.queue = q
		return false, nil
	}
	c.waitsIn, c.place = q, place
	granted, err := a.AwaitTurn(ctx, c, 0)
	c.waitsIn, c.place = nil, nil
	if granted || err != nil {
		q.Quit(place)
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

// subscription returns the queue's subscription, which later callers share.
func (c *caller) subscription(ctx context.Context, a *acquire.Acquisition) (transport.Subscription, error) {
	if sub := c.queue.Subscription(); sub != nil {
		select {
		case _, works := <-sub.Events():
			if works {
				return sub, nil // the message is an old one
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
		y := c.yield
		y.had += 1 + e.Coalesced
		took := time.Since(y.began)
		return y.had >= y.turns && took >= y.least || y.most > 0 && took >= y.most, y.patience
	}
	a.ObserveGap(e)
	return true, 0
}

// Woken is called for the turn and for polls.
func (c *caller) Woken() (ask bool, d time.Duration) {
	if c.turn = c.waitsIn.HasTurn(c.place); c.turn {
		return true, 0
	}
	return false, 1 // to poll
}

func (c *caller) Broken() error {
	c.queue.Keep(nil)
	c.sub.Close()
	return c.sub.Err()
}

func (c *caller) Refused(a *acquire.Acquisition, o acquire.Outcome) time.Duration {
	a.Passed = false // another owner came first
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

func (c *caller) Abandon() {}

// Granted leaves the turn to the hold, which has passed on nothing if it has ended.
func (c *caller) Granted(a *acquire.Acquisition) {
	if q := c.queue; q != nil {
		q.Granted(a.Claim().ID())
		if !a.Claim().KeepTurn(q) {
			q.Pass(true)
		}
	}
	c.free()
}

// Leave passes the turn on. An attempt in doubt keeps it until it is resolved: until then, the next
// caller would find the lock held by this process.
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

func (c *caller) State() acquire.QueueState { return c.waitsIn.State() }
func (c *caller) Came() bool                { return c.turn }

// Poll makes an attempt for the first waiter.
func (c *caller) Poll(ctx context.Context, a *acquire.Acquisition) (granted bool, err error) {
	q, place := c.waitsIn, c.place
	if !q.IsNext(place) || !q.State().Held {
		return false, nil // another caller does
	}
	q.Asks(place, true)
	defer q.Asks(place, false)
	return a.Peek(ctx)
}

// manyOthers is the guess if processes cannot be counted.
const manyOthers = 4

// letOthersGo yields to other processes. The release has woken their waiters, which get as many
// turns each as this process had: a mere pause would favor fast processes. It returns false if ctx
// has ended.
func (c *caller) letOthersGo(ctx context.Context, a *acquire.Acquisition, y Yield) bool {
	switch {
	case y.Turns == 0:
		return true
	case a.Deaf: // does not receive their messages
		a.Engine.Sleep(ctx, y.Patience) // Closing ends what follows
		return ctx.Err() == nil
	}
	others, counted := c.countOthers(ctx, a)
	if ctx.Err() != nil {
		return false
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
		_ = a.Sleep(ctx, y.Patience) // an error ends what follows
		c.sub, c.yield = nil, nil
	}
	return ctx.Err() == nil
}

// countOthers returns how many other processes wait, or a guess.
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
	least, most time.Duration // most 0: no limit
	patience    time.Duration
}
