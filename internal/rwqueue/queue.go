package rwqueue

import (
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
	c.signal()
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
		q.leader.signal()
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
		c.signal()
	}
}

// writeTurn is the turn of a writer.
type writeTurn queue

// readTurn is what a reader keeps for as long as it has the lock.
type readTurn queue
