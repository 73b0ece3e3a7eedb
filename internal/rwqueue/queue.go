// Package rwqueue is the strategy for read/write locks. The callers in one process share one queue per lock. Only the
// writer with the turn contends in Redis, until its hold ends; waiting writers send nothing. One refused reader, the
// leader, is subscribed; when it is granted the lock, the parked readers try. A waiting writer holds back new readers,
// so that those of this process drain: see holdsBack.
//
//	           the turn is free, or comes             granted
//	writer ─────────────────────────────▶ has the turn ──────▶ holds ── released ─┐
//	                                        │ refused: waits ▲                    │
//	                                        └────────────────┘                    ▼
//	                    the waiting readers try, all together, and then the next writer
//
//	           no writer waits, or a burst is left          granted
//	reader ──────────────────────────────────────▶ tries ───────────▶ holds
//	   │ else                                       │ refused
//	   ▼                                            ▼
//	 parked ◀── refused, and there is one ─────── leader: listens, and tries for all
//	   │                                            │ granted, gave up
//	   └──────▶ tries ◀─────────────────────────────┘
package rwqueue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
)

// A waiting writer admits up to burstMax readers of its own process within burstTime. It then blocks new readers until
// those have left, and then for the length of patience. By then it has the lock, unless other processes are reading.
const (
	burstMax  = 32
	burstTime = 20 * time.Millisecond
	patience  = time.Second
)

// queue holds a process's callers for one lock, until they leave or their hold is over.
type queue struct {
	key    string
	queues *engine.Registry[string, *queue]

	mu      sync.Mutex // guards the fields below
	state   acquire.QueueState
	writers []*caller // in turn order
	readers []*caller // parked
	leader  *caller   // the subscribed reader, nil if none has been refused
	writer  *caller   // with the turn, waiting after a refusal
	turn    bool      // a writer has it, or gets it next
	asking  int       // readers that try before the next writer
	reading int       // holds of readers
	burst   int       // readers let in since began
	began   time.Time
	drained time.Time // when the last reader of this process left
	turns   int       // without a pause for other processes
	first   time.Time // when the first of these turns was
}

var slot = engine.Slot[*engine.Registry[string, *queue]]{
	Make: func(*engine.Engine) *engine.Registry[string, *queue] { return &engine.Registry[string, *queue]{} },
}

// join returns the queue of a lock. Each join needs a leave.
func join(e *engine.Engine, key string) *queue {
	all := slot.Of(e)
	return all.Join(key, func() *queue { return &queue{key: key, queues: all} })
}

func (q *queue) leave() { q.queues.Leave(q.key) }

// holdsBack reports whether a new reader must wait for a waiting writer. The caller must hold q.mu. If only other
// processes have kept the writer out for the length of its patience, another burst begins.
func (q *queue) holdsBack(now time.Time) bool {
	switch {
	case q.writer == nil, q.burst < burstMax && now.Sub(q.began) < burstTime:
		return false
	case q.reading == 0 && now.Sub(q.drained) >= patience:
		q.begin(now)
		return false
	}
	return true
}

// begin begins a burst. The caller must hold q.mu.
func (q *queue) begin(now time.Time) { q.burst, q.began = 0, now }

// park lets a reader wait. The caller must hold q.mu.
func (q *queue) park(c *caller) {
	if !c.parked {
		c.parked = true
		q.readers = append(q.readers, c)
	}
}

// unpark removes a waiting caller. The caller must hold q.mu.
func (q *queue) unpark(c *caller) {
	if c.parked {
		c.parked = false
		is := func(other *caller) bool { return other == c }
		q.readers = slices.DeleteFunc(q.readers, is)
		q.writers = slices.DeleteFunc(q.writers, is)
	}
}

// wakeReaders makes all waiting readers try. The caller must hold q.mu.
func (q *queue) wakeReaders(first bool) {
	all := q.readers
	q.readers = nil
	if q.leader != nil {
		all = append(all, q.leader)
	}
	for _, c := range all {
		c.parked = false
		q.wake(c, first)
	}
}

// wakeLeader is wakeReaders for a lock that may be held: if the leader gets it, the others try. The caller must hold
// q.mu.
func (q *queue) wakeLeader() {
	q.promote(time.Now())
	if q.leader != nil {
		q.wake(q.leader, true)
	}
}

// wake makes a reader try, before the next writer if first is set. The caller must hold q.mu.
func (q *queue) wake(c *caller, first bool) {
	if first && !c.first {
		c.first = true
		q.asking++
	}
	acquire.Signal(c.wake)
}

// promote makes the first parked reader that is not held back the leader, if there is no leader. The caller must hold
// q.mu.
func (q *queue) promote(now time.Time) {
	if q.leader != nil || len(q.readers) == 0 {
		return
	}
	i := 0
	if q.holdsBack(now) {
		i = slices.IndexFunc(q.readers, func(c *caller) bool { return !c.heldBack || c.asked })
	}
	if i >= 0 {
		q.leader = q.readers[i]
		q.unpark(q.leader)
		acquire.Signal(q.leader.wake)
	}
}

// answered ends the turn's wait for a reader. The caller must hold q.mu.
func (q *queue) answered(c *caller) {
	if !c.first {
		return
	}
	c.first = false
	if q.asking--; q.asking == 0 {
		q.passOn()
	}
}

// passOn gives the turn to the next writer. The caller must hold q.mu.
func (q *queue) passOn() {
	if q.turn = len(q.writers) > 0; q.turn {
		c := q.writers[0]
		q.unpark(c)
		c.turn = true
		acquire.Signal(c.wake)
	}
}

type writeTurn queue

type readTurn queue

// Pass makes the waiting readers try, and then the next writer. If the lock was not released, only the leader tries.
func (t *writeTurn) Pass(released bool) {
	q := (*queue)(t)
	q.mu.Lock()
	q.writer = nil
	q.state.Held = false
	q.countTurn(released)
	if released {
		q.wakeReaders(true)
	} else {
		q.wakeLeader()
	}
	if q.asking == 0 {
		q.passOn()
	}
	q.mu.Unlock()
	q.leave()
}

// Transfer returns nil: readers may hold the lock.
func (*writeTurn) Transfer(any) *acquire.Transfer { return nil }

// Pass makes the waiting writer try after the last reader.
func (t *readTurn) Pass(released bool) {
	q := (*queue)(t)
	q.mu.Lock()
	if q.reading--; q.reading == 0 {
		q.drained = time.Now()
		if released && q.writer != nil {
			acquire.Signal(q.writer.wake)
		}
	}
	q.mu.Unlock()
	q.leave()
}

func (*readTurn) Transfer(any) *acquire.Transfer { return nil }

// The writers of one process let other processes go first after turnsMax turns, or turnsTime. The pause is long
// enough for a notified waiter's attempt.
const (
	turnsMax  = 32
	turnsTime = 20 * time.Millisecond
	pause     = 10 * time.Millisecond
)

// countTurn counts a writer's turn. The caller must hold q.mu.
func (q *queue) countTurn(released bool) {
	if !released {
		q.turns = 0
		return
	}
	if q.turns == 0 {
		q.first = time.Now()
	}
	q.turns++
}

// mustPause reports whether other processes go first, and then restarts the count.
func (q *queue) mustPause() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	due := q.turns >= turnsMax || q.turns > 0 && time.Since(q.first) >= turnsTime
	if due {
		q.turns = 0
	}
	return due
}

// letOthersGo lets waiters in other processes, notified by the last release, try first. It returns false if the wait is
// over.
func (c *caller) letOthersGo(ctx context.Context, a *acquire.Acquisition) bool {
	if !c.queue.mustPause() || !c.hasOthers(ctx, a) {
		return ctx.Err() == nil
	}
	a.Engine.Sleep(ctx, pause)
	return ctx.Err() == nil
}

func (c *caller) hasOthers(ctx context.Context, a *acquire.Acquisition) bool {
	n, counted := a.Listeners(ctx)
	if !counted {
		return true
	}
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	if c.queue.leader != nil {
		n-- // of this process
	}
	return n > 0
}
