// Package rwqueue is the strategy for locks that several readers or one writer hold at a time.
// The callers of one process, in both roles, have one queue for each lock:
//
//	           the turn is free, or comes             granted
//	writer ─────────────────────────────▶ has the turn ──────▶ holds ── released ─┐
//	                                        │ refused: waits ▲                    │
//	                                        └────────────────┘                    ▼
//	                    the readers that wait ask, all together, and then the next writer
//
//	           no writer waits, or a burst is left          granted
//	reader ──────────────────────────────────────▶ asks ────────────▶ holds
//	   │ else                                       │ refused
//	   ▼                                            ▼
//	 parked ◀── refused, and there is one ─────── leader: listens, and asks for all
//	   │                                            │ granted, gave up
//	   └──────▶ asks ◀──────────────────────────────┘
//
// One writer talks to Redis at a time, and has the turn until its hold is over; the others cost
// nothing. Of the readers that were refused one listens, and when it is granted the lock the
// others ask, too. A writer that waits holds back new readers, so that those of this process
// drain: see holdsBack.
package rwqueue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
)

// A writer that waits lets in so many readers of its process, or those of so long a time. Then
// it holds back others until those that are in have left, and for a while more, in which it
// should have the lock unless other processes read.
const (
	burstMax  = 32
	burstTime = 20 * time.Millisecond
	patience  = time.Second
)

// queue has the callers of one process that want one lock. A caller joins it with
// [join], and leaves it when it leaves without the lock, or its hold is over.
type queue struct {
	key    string
	queues *engine.Registry[string, *queue]

	mu      sync.Mutex // guards what follows; held for a few instructions only
	state   acquire.QueueState
	writers []*caller // that wait for the turn, in order
	readers []*caller // that are parked
	leader  *caller   // the reader that listens for the others; nil: none was refused
	writer  *caller   // that has the turn and was refused: it waits
	turn    bool      // a writer has the turn, or it comes to one next
	asking  int       // readers that ask before the turn goes on
	reading int       // holds of readers
	burst   int       // readers that were let in since began
	began   time.Time // when the burst began
	drained time.Time // since when no reader of this process has the lock
	turns   int       // of writers without a pause for other processes
	first   time.Time // when the first of them was
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

// holdsBack reports whether a new reader must wait, mu held, because a writer of this process
// does. It begins another burst when the writer, for as long as its patience is, was kept
// out by other processes alone.
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

// begin begins a burst, mu held.
func (q *queue) begin(now time.Time) { q.burst, q.began = 0, now }

// park lets a reader wait until it is woken, mu held.
func (q *queue) park(c *caller) {
	if !c.parked {
		c.parked = true
		q.readers = append(q.readers, c)
	}
}

// unpark takes a caller out of those that wait to be woken, mu held.
func (q *queue) unpark(c *caller) {
	if c.parked {
		c.parked = false
		is := func(other *caller) bool { return other == c }
		q.readers = slices.DeleteFunc(q.readers, is)
		q.writers = slices.DeleteFunc(q.writers, is)
	}
}

// wakeReaders has all readers that wait ask now, mu held. First is that of wake.
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

// wakeLeader is wakeReaders for a lock that need not be free: one reader asks, and has the others
// ask if it gets the lock.
func (q *queue) wakeLeader() {
	q.promote(time.Now())
	if q.leader != nil {
		q.wake(q.leader, true)
	}
}

// wake has a reader ask now, mu held. First says that it asks before the turn goes on.
func (q *queue) wake(c *caller, first bool) {
	if first && !c.first {
		c.first = true
		q.asking++
	}
	acquire.Signal(c.wake)
}

// promote makes the first parked reader that may be let in the leader, if there is none, mu held.
// New ones are held back beside a writer that waits, unless they never are.
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

// answered says that a reader that the turn waits for has asked, mu held.
func (q *queue) answered(c *caller) {
	if !c.first {
		return
	}
	c.first = false
	if q.asking--; q.asking == 0 {
		q.passOn()
	}
}

// passOn gives the turn to the next writer, mu held.
func (q *queue) passOn() {
	if q.turn = len(q.writers) > 0; q.turn {
		c := q.writers[0]
		q.unpark(c)
		c.turn = true
		acquire.Signal(c.wake)
	}
}

// writeTurn is the turn of a writer.
type writeTurn queue

// readTurn is what a reader keeps for as long as it has the lock.
type readTurn queue

// Pass is part of acquire.Turn: the readers that wait ask, and then the next writer. If the lock was
// not released, only the leader of the readers asks.
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

// Transfer is part of acquire.Turn: readers may have the lock besides, so it is not
// transferred.
func (*writeTurn) Transfer(any) *acquire.Transfer { return nil }

// Pass is part of acquire.Turn. The last reader lets the writer ask that waits for it.
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

// Writers of one process let others go first after so many turns, or turns for so long. The
// pause is long enough for a waiter that was woken to ask.
const (
	turnsMax  = 32
	turnsTime = 20 * time.Millisecond
	pause     = 10 * time.Millisecond
)

// countTurn counts a turn of a writer that had the lock, mu held.
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

// mustPause reports whether it is the turn of other processes, if there are any, and begins to
// count anew then.
func (q *queue) mustPause() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	due := q.turns >= turnsMax || q.turns > 0 && time.Since(q.first) >= turnsTime
	if due {
		q.turns = 0
	}
	return due
}

// letOthersGo lets the waiters of other processes, which the last release has woken, ask before
// this writer does. It returns false when the wait is over.
func (c *caller) letOthersGo(ctx context.Context, a *acquire.Acquisition) bool {
	if !c.queue.mustPause() || !c.hasOthers(ctx, a) {
		return ctx.Err() == nil
	}
	a.Engine.Sleep(ctx, pause)
	return ctx.Err() == nil
}

// hasOthers reports whether other processes wait for the lock, as far as that can be found out.
func (c *caller) hasOthers(ctx context.Context, a *acquire.Acquisition) bool {
	n, counted := a.Listeners(ctx)
	if !counted {
		return true
	}
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	if c.queue.leader != nil {
		n-- // this process listens for it
	}
	return n > 0
}
