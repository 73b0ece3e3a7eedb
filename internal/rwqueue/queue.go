// Package rwqueue implements [acquire.Strategy] for read/write locks. The callers in a process share a queue for each
// lock. One writer at a time has the turn, which it keeps until its hold ends. Other writers wait without sending
// anything. The first reader that is refused becomes the leader, which is subscribed. Later readers are parked until
// the leader is granted the lock. A waiting writer holds back new readers in its process, so that the current readers
// can finish; see holdsBack.
//
//	         the turn is free or passed on            granted
//	writer ─────────────────────────────▶ has the turn ──────▶ holds ── released ─┐
//	                                        │ refused, waits ▲                    │
//	                                        └────────────────┘                    ▼
//	                    all waiting readers try, and then the next writer does
//
//	           no writer is waiting, or in a burst          granted
//	reader ──────────────────────────────────────▶ tries ───────────▶ holds
//	   │ else                                       │ refused
//	   ▼                                            ▼
//	 parked ◀── if there is a leader ────────── or leader: subscribes, tries for all
//	   │                                            │ granted, or gives up
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

// A waiting writer admits up to burstMax readers in its process within burstTime. New readers then wait until the
// readers have left, and for the length of patience after that. By then the writer has the lock, unless other
// processes are reading.
const (
	burstMax  = 32
	burstTime = 20 * time.Millisecond
	patience  = time.Second
)

// A queue holds a process's callers for one lock until they stop waiting or their holds end. The methods that do not lock
// mu are called with mu held, except for leave.
type queue struct {
	key    string
	queues *engine.Registry[string, *queue]

	mu      sync.Mutex // guards the fields below
	state   acquire.QueueState
	writers []*caller
	readers []*caller // parked
	leader  *caller   // the subscribed reader; nil if none was refused
	writer  *caller   // has the turn, was refused, and is waiting
	turn    bool      // a writer has the turn or will get it next
	asking  int       // readers that try before the next writer
	reading int
	burst   int // readers let in since began
	began   time.Time
	drained time.Time
	turns   int       // that count towards the next pause for other processes
	first   time.Time // when the first of these turns ended
	paused  time.Time // end of the last pause
}

var slot = engine.Slot[*engine.Registry[string, *queue]]{
	Make: func(*engine.Engine) *engine.Registry[string, *queue] { return &engine.Registry[string, *queue]{} },
}

// join returns the queue of a lock. The caller must call leave later.
func join(e *engine.Engine, key string) *queue {
	all := slot.Of(e)
	return all.Join(key, func() *queue { return &queue{key: key, queues: all} })
}

func (q *queue) leave() { q.queues.Leave(q.key) }

// holdsBack reports whether a new reader must wait for a waiting writer. If only other processes have blocked the
// writer for the length of patience, another burst begins.
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

func (q *queue) begin(now time.Time) { q.burst, q.began = 0, now }

func (q *queue) park(c *caller) {
	if !c.parked {
		c.parked = true
		q.readers = append(q.readers, c)
	}
}

func (q *queue) unpark(c *caller) {
	if c.parked {
		c.parked = false
		is := func(other *caller) bool { return other == c }
		q.readers = slices.DeleteFunc(q.readers, is)
		q.writers = slices.DeleteFunc(q.writers, is)
	}
}

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

// wakeLeader makes only the leader try, because the lock may be held.
func (q *queue) wakeLeader() {
	q.promote(time.Now())
	if q.leader != nil {
		q.wake(q.leader, true)
	}
}

// wake makes a reader try, before the next writer if first is set.
func (q *queue) wake(c *caller, first bool) {
	if first && !c.first {
		c.first = true
		q.asking++
	}
	c.signal()
}

// promote makes the first parked reader that is not held back the leader, unless the readers have one.
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
		q.leader.signal()
	}
}

func (q *queue) answered(c *caller) {
	if !c.first {
		return
	}
	c.first = false
	if q.asking--; q.asking == 0 {
		q.passOn()
	}
}

func (q *queue) passOn() {
	if q.turn = len(q.writers) > 0; q.turn {
		c := q.writers[0]
		q.unpark(c)
		c.turn = true
		c.signal()
	}
}

type writeTurn queue

type readTurn queue

// Pass makes the waiting readers try, and then the next writer. If the lock was not released, only the leader tries.
func (t *writeTurn) Pass(released bool) {
	q := (*queue)(t)
	q.mu.Lock()
	q.writer = nil
	q.countTurn(released || q.state.Held) // a hold that was lost is also a turn
	q.state.Held = false
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

// Transfer returns nil, because readers may hold the lock.
func (*writeTurn) Transfer(any) *acquire.Transfer { return nil }

// Pass makes the waiting writer try when the last reader in this process has released the lock.
func (t *readTurn) Pass(released bool) {
	q := (*queue)(t)
	q.mu.Lock()
	if q.reading--; q.reading == 0 {
		q.drained = time.Now()
		if released && q.writer != nil {
			q.countTurn(true)
			q.writer.signal()
		}
	}
	q.mu.Unlock()
	q.leave()
}

func (*readTurn) Transfer(any) *acquire.Transfer { return nil }

// After turnsMax turns or turnsTime, a process lets others go first: new readers and the next writer pause for as long as
// the turns took, but at least pauseMin and at most pauseMax. A turn is a writer's hold, or a group of readers that a
// writer was waiting for. A notified waiter makes an attempt within pauseMin.
const (
	turnsMax  = 32
	turnsTime = 20 * time.Millisecond
	pauseMin  = 10 * time.Millisecond
	pauseMax  = 20 * time.Millisecond

	// contendedFor is how long after a pause other processes are assumed to be waiting.
	contendedFor = time.Minute
)

func (q *queue) countTurn(used bool) {
	if !used {
		q.turns = 0
		return
	}
	if q.turns == 0 {
		q.first = time.Now()
	}
	q.turns++
}

// letOthersGo lets waiters in other processes try first, unless ctx ends too early for that.
func (c *caller) letOthersGo(ctx context.Context, a *acquire.Acquisition) {
	q := c.queue
	if !c.reads {
		if d := q.endTurns(); d > 0 && c.hasOthers(ctx, a) {
			q.pauseFor(d)
		}
	}
	if d := q.pause(ctx); d > 0 {
		a.Engine.Sleep(ctx, d)
	}
}

// endTurns returns how long to pause, or 0 if no pause is due. It restarts the count of turns.
func (q *queue) endTurns() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	took := time.Since(q.first)
	if q.turns < turnsMax && (q.turns == 0 || took < turnsTime) {
		return 0
	}
	q.turns = 0
	return min(max(took, pauseMin), pauseMax)
}

func (q *queue) pauseFor(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = time.Now().Add(d)
}

// pause returns the rest of a pause, or 0 if ctx would leave less than pauseMin for an attempt.
func (q *queue) pause(ctx context.Context) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if end, ends := ctx.Deadline(); ends && end.Before(q.paused.Add(pauseMin)) {
		return 0
	}
	return time.Until(q.paused)
}

func (q *queue) contended() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Since(q.paused) < contendedFor
}

// hasOthers counts a single subscription twice, because this process may just be ending it.
func (c *caller) hasOthers(ctx context.Context, a *acquire.Acquisition) bool {
	for range 2 {
		n, counted := a.Listeners(ctx)
		if !counted {
			break
		}
		c.queue.mu.Lock()
		if c.queue.leader != nil {
			n--
		}
		c.queue.mu.Unlock()
		if n != 1 {
			return n > 0
		}
	}
	return true
}
