// Package countqueue implements [acquire.Strategy] for semaphores. The callers waiting in a process are queued per
// semaphore, in the order of their calls. The first caller is subscribed on behalf of all. A round begins when a
// message arrives or may have been missed, when a lease ends, or after the poll cap. The first caller then tries. Each
// reply contains the number of remaining permits; if they are enough for a later caller, that caller tries next.
//
//	         no caller waits, or it may overtake all         granted
//	caller ─────────────────────────────────────────▶ tries ───────────▶ has its permits
//	  │ else                                            │ refused  ▲
//	  ▼                                                 ▼          │ its turn in a round
//	waits ◀─────────────────────────────────────────── waits ──────┘
package countqueue

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

// name identifies a semaphore. The same key may be used with two kinds.
type name struct{ kind, key string }

// A queue holds a process's callers for one semaphore until they have their permits or stop waiting. Its methods,
// except for end, are called with mu held.
type queue struct {
	name   name
	queues *engine.Registry[name, *queue]

	mu      sync.Mutex // guards the fields below
	state   acquire.QueueState
	free    int64
	arrived uint64
	waiting []*caller // in call order
	asking  *caller   // has the turn in the round; nil between rounds
	rounds  uint64
	again   bool                   // another round is due after this one
	sub     transport.Subscription // of the first waiting caller, or nil
	expiry  *time.Timer

	// silence never delivers events. It stands in for the subscription of callers that are woken by others, so that the
	// loop doesn't assume a gap. There is one for each queue because a channel belongs to a synctest bubble.
	silence chan transport.Event
}

var slot = engine.Slot[*engine.Registry[name, *queue]]{
	Make: func(*engine.Engine) *engine.Registry[name, *queue] { return &engine.Registry[name, *queue]{} },
}

// join returns the queue of a semaphore. The caller must call end later.
func join(e *engine.Engine, n name) *queue {
	all := slot.Of(e)
	return all.Join(n, func() *queue { return &queue{name: n, queues: all} })
}

func byArrival(a, b *caller) int { return cmp.Compare(a.number, b.number) }

func (q *queue) insert(c *caller) {
	i, found := slices.BinarySearchFunc(q.waiting, c, byArrival)
	if !found {
		q.waiting = slices.Insert(q.waiting, i, c)
	}
}

// remove removes c from the waiting callers. If it was the last one, the caller must close the returned subscription.
func (q *queue) remove(c *caller) (left transport.Subscription) {
	i, found := slices.BinarySearchFunc(q.waiting, c, byArrival)
	if !found {
		return nil
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	if len(q.waiting) > 0 {
		if i == 0 {
			q.promote()
		}
		return nil
	}
	if q.expiry != nil {
		q.expiry.Stop()
	}
	left, q.sub, q.again = q.sub, nil, false
	return left
}

func (q *queue) isFirst(c *caller) bool { return len(q.waiting) > 0 && q.waiting[0] == c }

func (q *queue) promote() {
	if q.sub == nil {
		q.begin(nil)
	} else {
		acquire.Signal(q.waiting[0].wake)
	}
}

// begin starts a round or, if one is in progress, schedules another one. It doesn't signal self.
func (q *queue) begin(self *caller) {
	if q.asking != nil {
		q.again = true
		return
	}
	q.rounds++
	if len(q.waiting) > 0 {
		q.turn(q.waiting[0], self)
	}
}

func (q *queue) turn(c, self *caller) {
	q.asking, c.asked = c, q.rounds
	if c != self {
		acquire.Signal(c.wake)
	}
}

func (q *queue) next() {
	q.asking = nil
	if q.again {
		q.again = false
		q.begin(nil)
		return
	}
	for _, w := range q.waiting {
		if w.asked != q.rounds && w.n <= q.free {
			q.turn(w, nil)
			return
		}
	}
}

func (q *queue) expires(ttl time.Duration) {
	if ttl < 0 {
		return
	}
	ttl = min(ttl, math.MaxInt64-time.Millisecond) + time.Millisecond // leases set in Java may be longer
	if q.expiry == nil {
		q.expiry = time.AfterFunc(ttl, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.begin(nil)
		})
		return
	}
	q.expiry.Reset(ttl)
}
