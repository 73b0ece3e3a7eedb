// Package localqueue implements the strategy for locks that have one owner at a time. The callers in a process wait in
// a FIFO queue, and only the first one sends calls to Redis. After a burst of local turns, the next caller yields until
// the other processes have had as many turns (see yield). If all other processes use this library, the callers in a
// burst transfer the lock to each other instead of releasing it.
package localqueue

import (
	"container/list"
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

var slot = engine.Slot[*queues]{Make: func(e *engine.Engine) *queues { return newQueues(e.ClientID, e.PollCap) }}

// New returns the strategy for a lock that has a single channel. Locks with the same name and kind share a queue.
func New(e *engine.Engine, k acquire.Transferable) acquire.Strategy {
	return &strategy{queues: slot.Of(e), kind: k}
}

type strategy struct {
	queues *queues
	kind   acquire.Transferable
}

// CanPoll marks strategies whose callers can work without a subscription.
func (*strategy) CanPoll() {}

// Waiter implements acquire.Strategy. Callers with a shared owner don't exclude each other, so they don't queue.
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
	queue  *queue // nil unless the caller is waiting for the turn or has it
	turn   bool
	ready  chan struct{}          // receives when the turn comes, and before that for each poll
	sub    transport.Subscription // nil unless the caller is listening
	yields *yielding              // nil unless the caller is yielding

	// Guarded by queue.mu until the caller has the turn.
	place    *list.Element     // element of queue.waiting, or nil
	asks     bool              // a poll is in progress, so the lock cannot be transferred
	passed   bool              // the previous caller released or transferred the lock
	transfer *acquire.Transfer // nil if the lock was released
}

func (c *caller) free() {
	qs := c.queues
	*c = caller{}
	qs.callers.Put(c)
}

// Enter waits for the turn and then yields if that is due.
func (c *caller) Enter(ctx context.Context, a *acquire.Acquisition) (bool, error) {
	q := c.queues.join(c.kind.Name(), c.kind.Key())
	if a.Try {
		if refused, state := q.tryEnter(c); refused {
			a.Learn(state)
			return false, engine.ErrNotAcquired
		}
		return false, nil // only Redis knows, so make an attempt without the turn
	}
	if q.enter(c) {
		return false, nil
	}
	granted, err := a.AwaitTurn(ctx, c, 0)
	if granted {
		q.quit(c)
	}
	if granted || err != nil {
		return granted, err
	}
	c.ready = nil
	a.Passed, a.Transfer = c.passed, c.transfer
	if !c.letOthersGo(ctx, a) {
		return false, a.GaveUp(ctx)
	}
	return false, a.IsLate(ctx, c.State())
}

func (c *caller) Listen(ctx context.Context, a *acquire.Acquisition) (err error) {
	if c.sub == nil {
		c.sub, err = c.subscription(ctx, a)
	}
	return err
}

func (c *caller) subscription(ctx context.Context, a *acquire.Acquisition) (transport.Subscription, error) {
	if sub := c.queue.subscription(); sub != nil {
		select {
		case _, works := <-sub.Events():
			if works {
				return sub, nil // it is an old message
			}
			sub.Close()
			c.queue.keep(nil)
		default:
			return sub, nil
		}
	}
	sub, err := a.Subscribe(ctx, c.kind.Channel(nil))
	if err != nil {
		return nil, err
	}
	c.queue.keep(sub)
	return sub, nil
}

func (c *caller) Signals() (events <-chan transport.Event, wake <-chan struct{}) {
	if c.sub != nil {
		events = c.sub.Events()
	}
	return events, c.ready
}

func (c *caller) OnEvent(e transport.Event) (ask bool, d time.Duration) {
	if y := c.yields; y != nil {
		y.had += 1 + e.Coalesced
		took := time.Since(y.began)
		return y.had >= y.turns && took >= y.least || y.most > 0 && took >= y.most, y.patience
	}
	return true, 0
}

func (c *caller) Woken() (ask bool, d time.Duration) {
	c.queue.mu.Lock()
	c.turn = c.place == nil
	c.queue.mu.Unlock()
	if c.turn {
		return true, 0
	}
	return false, 1
}

func (c *caller) Broken() error {
	c.queue.keep(nil)
	c.sub.Close()
	return c.sub.Err()
}

func (c *caller) Refused(a *acquire.Acquisition, o acquire.Outcome) time.Duration {
	a.Passed = false
	if c.turn {
		c.queue.refused(o.Holder, o.TTL)
	}
	return o.TTL
}

func (c *caller) Sleep(nap, _ time.Duration) time.Duration { return nap }

func (c *caller) Unanswered(err error) {
	if c.turn {
		c.queue.mu.Lock()
		c.queue.state.Away = err
		c.queue.mu.Unlock()
	}
}

func (c *caller) Abandon() {}

// Granted leaves the turn to the hold, or passes it on if the hold has already ended.
func (c *caller) Granted(a *acquire.Acquisition) {
	if q := c.queue; q != nil {
		q.granted(a.Claim().ID())
		if !a.Claim().KeepTurn(q) {
			q.Pass(true)
		}
	}
	c.free()
}

// Leave passes the turn on. If the outcome of an attempt is unknown, the turn is passed on only when the attempt has
// been resolved, because until then this process may hold the lock.
func (c *caller) Leave(a *acquire.Acquisition) {
	switch d := a.InDoubt(); {
	case c.queue == nil:
	case c.ready != nil: // still in the queue
		c.queue.quit(c)
	case a.Transfer != nil:
		c.queue.passUnused(a.Transfer)
	case d == nil || !d.PassWhenResolved(c.queue):
		c.queue.Pass(false)
	}
	c.free()
}

func (c *caller) State() acquire.QueueState {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	return c.queue.state
}

func (c *caller) Came() bool { return c.turn }

// Poll makes an attempt if c is the first waiter and a caller in this process holds the lock.
func (c *caller) Poll(ctx context.Context, a *acquire.Acquisition) (granted bool, err error) {
	q := c.queue
	q.mu.Lock()
	c.asks = q.first() == c && q.state.Held
	asks := c.asks
	q.mu.Unlock()
	if !asks {
		return false, nil // another caller does
	}
	granted, err = a.Peek(ctx)
	q.mu.Lock()
	c.asks = false
	q.mu.Unlock()
	return granted, err
}

const manyOthers = 4

// letOthersGo yields to other processes if that is due. If it is interrupted, the next caller must yield. It returns
// false if ctx has ended.
func (c *caller) letOthersGo(ctx context.Context, a *acquire.Acquisition) bool {
	q := c.queue
	q.mu.Lock()
	y := q.owed
	q.mu.Unlock()
	if y.turns > 0 {
		c.yieldTo(ctx, a, y)
		if ctx.Err() != nil {
			return false
		}
	}
	q.mu.Lock()
	q.owed = yield{}
	q.mu.Unlock()
	return true
}

func (c *caller) yieldTo(ctx context.Context, a *acquire.Acquisition, y yield) {
	if a.Poll > 0 { // it does not receive their messages
		a.Engine.Sleep(ctx, y.patience) // if the client is closed, the next call fails
		return
	}
	others, counted := c.countOthers(ctx, a)
	if ctx.Err() != nil {
		return
	}
	c.queue.count(others, counted)
	if others <= 0 {
		return
	}
	y.turns, y.least, y.most = y.turns*others, y.least*time.Duration(others), y.most*time.Duration(others)
	c.sub, c.yields = c.briefly(ctx, a), &yielding{yield: y, began: time.Now()}
	_ = a.Sleep(ctx, y.patience) // after an error, the next call fails as well
	c.sub, c.yields = nil, nil
}

// briefly is like subscription, but it returns nil after [acquire.Overdue] or an error, because the lock may be free and
// local callers are waiting. It then does not try again for one poll cap.
func (c *caller) briefly(ctx context.Context, a *acquire.Acquisition) transport.Subscription {
	q := c.queue
	if q.subscription() == nil && time.Since(q.deaf) < a.Engine.PollCap {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, acquire.Overdue)
	defer cancel()
	sub, err := c.subscription(short, a)
	if err != nil && ctx.Err() == nil {
		q.deaf = time.Now()
	}
	return sub
}

// countOthers returns how many other processes are waiting, and false if the number is a guess.
func (c *caller) countOthers(ctx context.Context, a *acquire.Acquisition) (n int, counted bool) {
	n, counted = a.Listeners(ctx)
	switch {
	case !counted:
		return manyOthers, false
	case c.queue.subscription() != nil:
		return max(n-1, 0), true
	}
	return n, true
}

type yielding struct {
	yield // totals for all of the other processes
	began time.Time
	had   int // releases by other processes
}
