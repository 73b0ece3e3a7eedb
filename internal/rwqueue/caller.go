package rwqueue

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

// Readers returns the strategy for readers, which share a queue with the [Writers]. If heldBack is true, a waiting
// writer holds back later readers. All waiters use the same channel.
func Readers(e *engine.Engine, k acquire.Waitable, heldBack bool) acquire.Strategy {
	return &strategy{e, k.Key(), true, heldBack}
}

// Writers returns the strategy for writers.
func Writers(e *engine.Engine, k acquire.Waitable) acquire.Strategy {
	return &strategy{e, k.Key(), false, false}
}

type strategy struct {
	engine   *engine.Engine
	key      string
	reads    bool
	heldBack bool
}

// Waiter returns a waiter without a queue for a given owner, because callers with the same owner do not wait for each
// other.
func (s *strategy) Waiter(a *acquire.Acquisition) acquire.Waiter {
	if a.Given {
		return acquire.Alone()
	}
	return &caller{strategy: s, queue: join(s.engine, s.key)}
}

type caller struct {
	*strategy
	queue *queue
	wake  chan struct{}
	sub   transport.Subscription
	woken bool
	// delayed is true if a wake-up has been delayed since the last attempt.
	delayed bool

	// Guarded by queue.mu.
	parked bool
	first  bool // the next writer must wait until the caller has tried
	asked  bool // it was refused, so it is not a new reader
	turn   bool
	cut    context.CancelFunc // ends Listen; nil unless the caller is subscribing
}

func (c *caller) Enter(ctx context.Context, a *acquire.Acquisition) (bool, error) {
	if c.reads && !a.Try {
		c.letOthersGo(ctx, a)
	}
	may, refused := c.begin(a.Try)
	switch {
	case refused:
		a.Learn(c.State())
		return false, engine.ErrNotAcquired
	case may:
		return false, nil
	}
	granted, err := a.AwaitTurn(ctx, c, c.pollEvery(a))
	if err != nil || granted || c.reads {
		return granted, err
	}
	if c.letOthersGo(ctx, a); ctx.Err() != nil {
		return false, a.GaveUp(ctx)
	}
	return false, a.IsLate(ctx, c.State())
}

// begin reports whether the caller may try now or, for TryLock, whether the call is refused because it is known to
// fail or because others are ahead. If neither is the case, the caller is put in the queue.
func (c *caller) begin(try bool) (may, refused bool) {
	q := c.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	known := q.state.Known && q.state.Away == nil
	if c.reads {
		behind := q.leader != nil || c.heldBack && q.holdsBack(time.Now())
		switch {
		case !behind:
			q.burst++
			return true, false
		case try:
			return !known, known
		}
		c.wake = make(chan struct{}, 1)
		q.park(c)
		return false, false
	}
	switch {
	case !q.turn:
		q.turn, c.turn = true, true
		return true, false
	case try:
		// Only Redis knows whether the lock is free, unless other writers are waiting. So the caller tries without
		// waiting for the turn.
		refused = known && (len(q.writers) > 0 || !q.state.Held)
		return !refused, refused
	}
	c.wake, c.parked = make(chan struct{}, 1), true
	q.writers = append(q.writers, c)
	return false, false
}

// Listen doesn't subscribe a reader that has a leader, because the leader wakes it. If the caller is woken, Listen
// returns without a subscription, because other callers may be waiting for the caller's attempt.
func (c *caller) Listen(ctx context.Context, a *acquire.Acquisition) (err error) {
	if c.sub != nil || c.follows() {
		return nil
	}
	open, cut := context.WithCancel(ctx)
	defer cut()
	if !c.setCut(cut) {
		return nil
	}
	c.sub, err = a.Subscribe(open, a.Kind.Channel(nil))
	c.setCut(nil)
	if open.Err() != nil && ctx.Err() == nil && !errors.Is(err, engine.ErrClosed) {
		return nil
	}
	return err
}

// setCut returns false if the caller has been woken.
func (c *caller) setCut(cut context.CancelFunc) bool {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	if len(c.wake) > 0 {
		cut = nil
	}
	c.cut = cut
	return cut != nil
}

// signal is called with queue.mu held.
func (c *caller) signal() {
	acquire.Signal(c.wake)
	if c.cut != nil {
		c.cut()
	}
}

func (c *caller) follows() bool {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	return c.reads && c.queue.leader != c
}

func (c *caller) Signals() (events <-chan transport.Event, wake <-chan struct{}) {
	if c.sub != nil {
		events = c.sub.Events()
	}
	return events, c.wake
}

func (c *caller) OnEvent(transport.Event) (ask bool, d time.Duration) {
	return true, 0
}

// Woken delays a waiting writer, once per attempt, if other processes are waiting, so that the same message wakes all of
// them.
func (c *caller) Woken() (ask bool, d time.Duration) {
	c.woken = true
	if c.reads || c.sub == nil || c.delayed || !c.queue.contended() {
		return true, 0
	}
	c.delayed = true
	return false, pauseMin
}

func (c *caller) Broken() error {
	sub := c.sub
	c.sub = nil
	sub.Close()
	return sub.Err()
}

func (c *caller) Refused(a *acquire.Acquisition, o acquire.Outcome) time.Duration {
	c.delayed = false
	q, now := c.queue, time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state = acquire.QueueState{Known: true, Held: q.state.Held, Holder: o.Holder, TTL: o.TTL}
	if c.asked = true; !a.Try {
		if c.wake == nil {
			c.wake = make(chan struct{}, 1)
		}
		switch {
		case c.reads && q.leader == nil:
			q.unpark(c)
			q.leader = c
		case c.reads && q.leader != c:
			q.park(c)
		case c.turn && q.writer == nil:
			q.writer, q.drained = c, now
			q.begin(now)
		}
	}
	q.answered(c)
	return o.TTL
}

// Sleep makes a reader that has a leader poll less often. A new leader is not subscribed yet, so it doesn't sleep.
func (c *caller) Sleep(nap, _ time.Duration) time.Duration {
	switch {
	case c.follows():
		return 4 * nap
	case c.sub == nil:
		return 0
	}
	return nap
}

func (c *caller) Unanswered(err error) {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	c.queue.state.Away = err
	c.queue.answered(c)
}

func (*caller) Abandon() {}

func (c *caller) Granted(a *acquire.Acquisition) {
	c.unsubscribe()
	q := c.queue
	q.mu.Lock()
	q.unpark(c)
	q.answered(c)
	var turn acquire.Turn
	// A hold that was lost on the server may also have the turn until the loss is noticed.
	switch {
	case c.reads:
		turn = (*readTurn)(q)
		q.state = acquire.QueueState{Known: true, Held: q.state.Held} // refusals don't name readers
		q.reading++
		q.letIn(c)
	case c.turn:
		turn = (*writeTurn)(q)
		q.state = acquire.QueueState{Known: true, Held: true, Holder: a.Claim().ID()}
		q.writer = nil
	}
	q.mu.Unlock()
	switch {
	case turn == nil:
		q.leave()
	case !a.Claim().KeepTurn(turn):
		turn.Pass(true)
	}
}

func (q *queue) letIn(c *caller) {
	if q.leader == nil {
		return
	}
	if q.leader == c {
		q.leader = nil
	}
	q.wakeReaders(false)
	q.burst = burstMax
}

// Leave passes on a writer's turn. If the outcome of an attempt is unknown, the turn is passed on only when the
// attempt has been resolved, because until then this process may hold the lock.
func (c *caller) Leave(a *acquire.Acquisition) {
	c.unsubscribe()
	q := c.queue
	q.mu.Lock()
	q.unpark(c)
	q.answered(c)
	if q.leader == c {
		q.leader = nil
	}
	if c.turn {
		q.writer = nil
	}
	q.promote(time.Now())
	turn := c.turn
	q.mu.Unlock()
	if !turn {
		q.leave()
		return
	}
	if d := a.InDoubt(); d == nil || !d.PassWhenResolved((*writeTurn)(q)) {
		(*writeTurn)(q).Pass(false)
	}
}

func (c *caller) unsubscribe() {
	if c.sub != nil {
		c.sub.Close()
		c.sub = nil
	}
}

func (c *caller) pollEvery(a *acquire.Acquisition) time.Duration {
	if c.reads {
		return min(patience, a.Engine.PollCap)
	}
	return a.Engine.PollCap
}

func (c *caller) State() acquire.QueueState {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	return c.queue.state
}

func (c *caller) Came() bool { return c.woken }

// Poll makes the next writer try. If the readers have no leader, it chooses one.
func (c *caller) Poll(ctx context.Context, a *acquire.Acquisition) (granted bool, err error) {
	q := c.queue
	q.mu.Lock()
	if c.reads {
		q.promote(time.Now())
		q.mu.Unlock()
		return false, nil
	}
	asks := q.state.Held && len(q.writers) > 0 && q.writers[0] == c
	q.mu.Unlock()
	if !asks {
		return false, nil
	}
	return a.Peek(ctx)
}
