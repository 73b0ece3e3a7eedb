// Package countqueue is the strategy for semaphores. A process's waiting callers have one queue per semaphore, in the
// order of their calls. The first one is subscribed for all. A message, a gap, the end of a lease and the poll cap
// begin a round: the first tries, and each reply says how many permits are left; then the next caller for whom these
// are enough tries. A strict caller neither overtakes others nor is overtaken.
//
//	         no caller waits, or it fits before all          granted
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

// name is a client's semaphore: one key may have two kinds.
type name struct{ kind, key string }

// queue holds a process's callers for one semaphore, until their wait is over.
type queue struct {
	name   name
	queues *engine.Registry[name, *queue]

	mu      sync.Mutex // guards the fields below
	state   acquire.QueueState
	free    int64 // permits left at the last reply
	arrived uint64
	waiting []*caller // in call order
	asking  *caller   // has the turn in the round; nil between rounds
	rounds  uint64
	again   bool                   // another round is due after this one
	sub     transport.Subscription // of the first waiting caller, or nil
	expiry  *time.Timer            // begins a round when a lease ends

	// silence never has events. It replaces the subscription of callers that others wake, so that the loop assumes no
	// gap. It is per queue because channels belong to synctest bubbles.
	silence chan transport.Event
}

var slot = engine.Slot[*engine.Registry[name, *queue]]{
	Make: func(*engine.Engine) *engine.Registry[name, *queue] { return &engine.Registry[name, *queue]{} },
}

// join returns the queue of a semaphore. Each join needs a leave.
func join(e *engine.Engine, n name) *queue {
	all := slot.Of(e)
	return all.Join(n, func() *queue { return &queue{name: n, queues: all} })
}

func byArrival(a, b *caller) int { return cmp.Compare(a.number, b.number) }

// insert makes a caller wait, mu held.
func (q *queue) insert(c *caller) {
	i, found := slices.BinarySearchFunc(q.waiting, c, byArrival)
	if !found {
		q.waiting = slices.Insert(q.waiting, i, c)
	}
}

// remove removes a waiting caller, mu held. It returns the subscription to close if it was the last.
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

// promote makes the new first subscribe, and try if unsubscribed, mu held.
func (q *queue) promote() {
	if q.sub == nil {
		q.begin(nil)
	} else {
		acquire.Signal(q.waiting[0].wake)
	}
}

// begin begins a round, now or after the current one, mu held. self, if not nil, needs no signal.
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

// turn gives the turn to c, mu held.
func (q *queue) turn(c, self *caller) {
	q.asking, c.asked = c, q.rounds
	if c != self {
		acquire.Signal(c.wake)
	}
}

// next gives the turn to the next caller that has not tried in this round and fits, mu held.
func (q *queue) next() {
	q.asking = nil
	if q.again {
		q.again = false
		q.begin(nil)
		return
	}
	for _, w := range q.waiting {
		if w.asked != q.rounds && q.fits(w) {
			q.turn(w, nil)
			return
		}
	}
}

// fits reports whether the remaining permits are enough for c, and c may pass those in front, mu held.
func (q *queue) fits(c *caller) bool {
	if c.n > q.free {
		return false
	}
	for _, w := range q.waiting {
		if w.number >= c.number {
			break
		}
		if w.strict || c.strict {
			return false
		}
	}
	return true
}

// expires begins a round after ttl, mu held.
func (q *queue) expires(ttl time.Duration) {
	if ttl < 0 {
		return
	}
	ttl = min(ttl, math.MaxInt64-time.Millisecond) + time.Millisecond // Java's leases may be longer
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
