package countqueue

import (
	"context"
	"math"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

// New returns the strategy for callers that want n permits. All waiters of the kind use the same channel.
func New(e *engine.Engine, k acquire.Waitable, n int64) acquire.Strategy {
	return &strategy{e, name{k.Name(), k.Key()}, n}
}

type strategy struct {
	engine *engine.Engine
	name   name
	n      int64
}

func (s *strategy) Waiter(*acquire.Acquisition) acquire.Waiter {
	return &caller{strategy: s, queue: join(s.engine, s.name)}
}

type caller struct {
	*strategy
	queue *queue
	woken bool
	sub   transport.Subscription // its events are in the last result of Signals

	// Guarded by queue.mu.
	number uint64
	asked  uint64        // the last round in which it tried, or never
	owes   bool          // its turn ended without a reply, so it or another caller must try again
	wake   chan struct{} // buffered
}

const never = math.MaxUint64

func (c *caller) Enter(ctx context.Context, a *acquire.Acquisition) (bool, error) {
	switch may, refused := c.begin(a.Try); {
	case refused:
		return false, engine.ErrNotAcquired
	case may:
		return false, nil
	}
	granted, err := a.AwaitTurn(ctx, c, a.Engine.PollCap)
	if err == nil && !granted {
		err = a.IsLate(ctx, c.State())
	}
	return granted, err
}

// begin reports whether the caller may try or, for TryAcquire, whether the call is refused because others come first.
// If neither is the case, the caller is put in the queue.
func (c *caller) begin(try bool) (may, refused bool) {
	q := c.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.arrived++
	c.number, c.asked, c.wake = q.arrived, never, make(chan struct{}, 1)
	if len(q.waiting) == 0 || c.n <= q.free && !q.isWanted() {
		c.asked = q.rounds
		return true, false
	}
	if try {
		refused = q.state.Known && q.state.Away == nil && q.precedes(c)
		return !refused, refused
	}
	q.insert(c)
	return false, false
}

func (q *queue) isWanted() bool {
	for _, w := range q.waiting {
		if w.n <= q.free {
			return true
		}
	}
	return false
}

func (q *queue) precedes(c *caller) bool {
	for _, w := range q.waiting {
		if w.n <= c.n {
			return true
		}
	}
	return false
}

func (c *caller) State() acquire.QueueState {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	return c.queue.state
}

func (c *caller) Came() bool { return c.woken }

func (c *caller) Poll(context.Context, *acquire.Acquisition) (granted bool, err error) {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	if c.queue.isFirst(c) {
		c.queue.begin(nil)
	}
	return false, nil
}

// Listen subscribes the first caller on behalf of all. The caller then has the turn, unless another caller has it.
func (c *caller) Listen(ctx context.Context, a *acquire.Acquisition) error {
	q := c.queue
	q.mu.Lock()
	needs := q.isFirst(c) && q.sub == nil
	q.mu.Unlock()
	var sub transport.Subscription
	if needs {
		var err error
		if sub, err = a.Subscribe(ctx, a.Kind.Channel(nil)); err != nil {
			return err
		}
	}
	q.mu.Lock()
	if q.sub == nil {
		q.sub, sub = sub, nil
	}
	if q.asking == nil {
		q.rounds++
		q.asking, c.owes = c, false
	}
	c.asked = q.rounds
	q.mu.Unlock()
	if sub != nil {
		sub.Close() // another caller became the first and subscribed sooner
	}
	return nil
}

func (c *caller) Signals() (events <-chan transport.Event, wake <-chan struct{}) {
	q := c.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case !q.isFirst(c):
		if q.silence == nil {
			q.silence = make(chan transport.Event)
		}
		events = q.silence
	case q.sub != nil:
		c.sub = q.sub
		events = c.sub.Events()
	}
	return events, c.wake
}

func (c *caller) OnEvent(transport.Event) (ask bool, d time.Duration) {
	q := c.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asking != nil {
		q.again = true
		return false, 0
	}
	q.begin(c)
	c.woken = c.woken || q.asking == c
	return q.asking == c, 0
}

// Woken wakes a new first caller without making it try, so that it uses the subscription.
func (c *caller) Woken() (ask bool, d time.Duration) {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	if c.queue.asking == c {
		c.woken = true
		return true, 0
	}
	return false, c.engine.PollCap
}

func (c *caller) Broken() error {
	c.queue.mu.Lock()
	first := c.queue.sub == c.sub
	if first {
		c.queue.sub = nil
	}
	c.queue.mu.Unlock()
	if !first {
		return nil // another caller has noticed it, so this one tries again
	}
	c.sub.Close()
	return c.sub.Err()
}

func (c *caller) Refused(a *acquire.Acquisition, o acquire.Outcome) time.Duration {
	q := c.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state, q.free = acquire.QueueState{Known: true}, o.Available
	if a.Try {
		return o.TTL
	}
	q.insert(c)
	q.expires(o.TTL)
	switch {
	case q.asking == c && len(c.wake) == 0:
		q.next()
	case q.asking != c && c.asked != q.rounds:
		q.begin(nil) // a round began after it had tried
	}
	return o.TTL
}

// Sleep makes the first caller poll on behalf of all.
func (c *caller) Sleep(time.Duration, time.Duration) time.Duration {
	q := c.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.isFirst(c) && q.sub == nil:
		return min(c.engine.PollCap, time.Second)
	case q.isFirst(c):
		return c.engine.PollCap
	}
	return 4 * c.engine.PollCap
}

// Unanswered ends the turn. The caller tries again.
func (c *caller) Unanswered(err error) {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	c.queue.state.Away = err
	if c.queue.asking == c {
		c.queue.asking, c.owes = nil, true
	}
}

func (*caller) Abandon() {}

func (c *caller) Granted(a *acquire.Acquisition) {
	q := c.queue
	q.mu.Lock()
	q.state, q.free = acquire.QueueState{Known: true}, a.Available
	sub := q.remove(c)
	switch {
	case q.asking != c:
	case len(c.wake) == 0:
		q.next()
	default: // it got the turn after it had tried
		q.asking = nil
		q.begin(nil)
	}
	q.mu.Unlock()
	q.end(sub)
}

func (c *caller) Leave(*acquire.Acquisition) {
	q := c.queue
	q.mu.Lock()
	had := q.asking == c || c.owes
	if q.asking == c {
		q.asking = nil
	}
	sub := q.remove(c)
	if had {
		q.begin(nil)
	}
	q.mu.Unlock()
	q.end(sub)
}

// end leaves the queue, and closes the last caller's subscription.
func (q *queue) end(sub transport.Subscription) {
	if sub != nil {
		sub.Close()
	}
	q.queues.Leave(q.name)
}
