// Package countqueue is the strategy for semaphores: each caller of a process asks for a number
// of permits, and several have theirs at a time. The callers that wait have one queue for each
// semaphore, in the order of their calls:
//
//	         no caller waits, or it fits before all          granted
//	caller ─────────────────────────────────────────▶ asks ────────────▶ has its permits
//	  │ else                                            │ refused  ▲
//	  ▼                                                 ▼          │ its turn in a round
//	waits ◀─────────────────────────────────────────── waits ──────┘
//
// The first of those that wait listens for all. A message, a gap, the end of a lease and the
// poll cap begin a round: the first asks, and each answer says how many permits are left. Then
// the next one behind asks for whom that is enough, and so on. So one that waits for many
// permits does not keep the wake-up from those behind that need few. A caller whose order is
// strict lets none pass, and passes none.
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

// name is a semaphore of a client: there are two kinds under one key.
type name struct{ kind, key string }

// queue has the callers of one process that want permits of one semaphore. A caller joins it
// with [join], and leaves it when its wait is over.
type queue struct {
	name   name
	queues *engine.Registry[name, *queue]

	mu      sync.Mutex // guards what follows; held for a few instructions only
	state   acquire.QueueState
	free    int64                  // permits left at the last answer
	arrived uint64                 // callers so far
	waiting []*caller              // in the order of their calls
	asking  *caller                // whose turn it is in the round, nil between rounds
	rounds  uint64                 // that have begun
	again   bool                   // another round is due after this one
	sub     transport.Subscription // of the first of those that wait; nil: none yet
	expiry  *time.Timer            // begins a round when a lease ends

	// silence is what a caller listens to that another one wakes: it tells the loop that nothing
	// was missed. Each queue has its own, since the channels of a synctest bubble are made inside.
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

// remove takes a caller out of those that wait, mu held. It returns the subscription that the
// last of them leaves, which the caller has to close.
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

// promote has the new first listen, mu held. Where nothing has listened yet it asks, too.
func (q *queue) promote() {
	if q.sub == nil {
		q.begin(nil)
	} else {
		acquire.Signal(q.waiting[0].wake)
	}
}

// begin begins a round, or another one after the one under way, mu held. The caller, if not nil,
// needs no signal.
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

// next gives the turn to the next one that has not asked in this round, and for whom the permits
// that are left are enough, mu held.
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

// fits reports whether what is left is enough for c, and it may take it before those that wait
// in front of it, mu held. C need not wait yet.
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

// expires begins a round when ttl has passed, mu held.
func (q *queue) expires(ttl time.Duration) {
	if ttl < 0 {
		return
	}
	ttl = min(ttl, math.MaxInt64-time.Millisecond) + time.Millisecond // Java's leases can be longer
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
