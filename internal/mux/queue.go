package mux

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch/transport"
)

type entry struct {
	call   *transport.Call
	done   transport.Done
	at     time.Duration // when it was put in flight, by the link's clock
	eval   bool          // the server did not know the script: send its text
	asking bool          // see Mux.Ask
}

// The lanes of the queue, in order of priority.
const (
	laneRepeat = iota // calls answered with NOSCRIPT
	laneVital
	laneUrgent
	laneNormal
	lanes
)

func (e entry) lane() int {
	switch {
	case e.eval:
		return laneRepeat
	case e.call.Vital:
		return laneVital
	case e.call.Urgent:
		return laneUrgent
	}
	return laneNormal
}

// queue holds the calls to write. Any goroutine adds calls; only the run goroutine takes them.
//
// It also holds the write token: the run goroutine has it unless sleeps, else a caller if
// leads, else it is free.
type queue struct {
	wake chan struct{} // cap 1: there is work for the run goroutine if it sleeps

	mu      sync.Mutex // held for a few instructions only
	lanes   [lanes]ring[entry]
	sleeps  bool // the run goroutine found nothing to take and waits on wake
	room    room // while it sleeps: the lanes that it has room for
	started bool // a call was pushed
	closed  bool
	leads   bool  // a caller has the write token
	link    *link // where a caller may write, or nil
}

// push adds a call at the end of its lane, unless the queue is closed. For the very first call
// it counts the run goroutine in wg, under the mutex so that a later Close waits for it; the
// caller must start it.
func (q *queue) push(e entry, wg *sync.WaitGroup) (first, ok bool) {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return false, false
	}
	q.lanes[e.lane()].pushBack(e)
	if first = !q.started; first {
		q.started = true
		wg.Add(1)
	}
	rouse := q.sleeps && !q.leads && q.room[e.lane()] > 0
	q.sleeps = q.sleeps && !rouse
	q.mu.Unlock()
	if rouse {
		q.rouse()
	}
	return first, true
}

// lead gives a caller both tokens of the returned link, on which it must write its call. It
// returns nil if there is no connection, or other calls are queued, being written or in flight.
func (q *queue) lead(call *transport.Call) *link {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.link == nil || q.leads || !q.sleeps || q.closed || q.some(all) || !q.link.flight.lead(call) {
		return nil
	}
	q.leads = true
	return q.link
}

// written takes the write token from a caller.
func (q *queue) written() {
	q.mu.Lock()
	q.leads = false
	rouse := q.sleeps && q.some(q.room)
	q.sleeps = q.sleeps && !rouse
	q.mu.Unlock()
	if rouse {
		q.rouse()
	}
}

// offer lets callers write to l, if not nil.
func (q *queue) offer(l *link) {
	q.mu.Lock()
	q.link = l
	q.mu.Unlock()
}

// restore puts calls back at the front of their lanes, in order, even if the queue is closed.
func (q *queue) restore(es []entry) {
	if len(es) == 0 {
		return
	}
	q.mu.Lock()
	for i := len(es) - 1; i >= 0; i-- {
		q.lanes[es[i].lane()].pushFront(es[i])
	}
	q.sleeps = false
	q.mu.Unlock()
	q.rouse()
}

func (q *queue) rouse() {
	select {
	case q.wake <- struct{}{}:
	default: // a wake-up is pending
	}
}

// take appends calls to dst, by priority, up to its capacity and r. A closed queue gives none.
func (q *queue) take(dst []entry, r room) []entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return dst
	}
	for i := range q.lanes {
		most := min(cap(dst), r[i])
		for l := &q.lanes[i]; l.len() > 0 && len(dst) < most; {
			dst = append(dst, l.popFront())
		}
	}
	return dst
}

// wait returns true when there are calls to take, and false when the queue or stop is closed.
// Calls that flight, if not nil, has no room for do not count: making room must rouse the queue.
func (q *queue) wait(stop <-chan struct{}, flight *inflight) bool {
	for {
		r := all
		if flight != nil {
			r = flight.room()
		}
		q.mu.Lock()
		closed, some := q.closed, !q.leads && q.some(r)
		q.sleeps, q.room = !closed && !some, r
		q.mu.Unlock()
		if closed || some {
			return !closed
		}
		select {
		case <-q.wake:
		case <-stop:
			return false
		}
	}
}

// some reports whether there are calls to take. q.mu is held.
func (q *queue) some(r room) bool {
	for i := range q.lanes {
		if q.lanes[i].len() > 0 && r[i] > 0 {
			return true
		}
	}
	return false
}

// drain removes and returns all calls, even if the queue is closed.
func (q *queue) drain() []entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	var es []entry
	for i := range q.lanes {
		for l := &q.lanes[i]; l.len() > 0; {
			es = append(es, l.popFront())
		}
	}
	return es
}

// close makes push fail and the run goroutine stop.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.rouse()
}

// isClosed reports whether Close has begun: it closes the queue first, and the writer stops
// before Close cancels the context. So isClosed tells Close from a lost connection.
func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// ring is a growing circular buffer. The zero ring is empty and ready. It is not safe for
// concurrent use.
type ring[T any] struct {
	buf  []T // its length is a power of two
	head int
	n    int
}

const (
	ringMin  = 64
	ringKeep = 4096 // a larger buffer is released when the ring is empty
)

func (r *ring[T]) len() int { return r.n }

func (r *ring[T]) pushBack(v T) {
	r.grow()
	r.buf[(r.head+r.n)&(len(r.buf)-1)] = v
	r.n++
}

func (r *ring[T]) pushFront(v T) {
	r.grow()
	r.head = (r.head - 1) & (len(r.buf) - 1)
	r.buf[r.head] = v
	r.n++
}

// popFront removes and returns the oldest value; the ring must not be empty.
func (r *ring[T]) popFront() T {
	var zero T
	v := r.buf[r.head]
	r.buf[r.head] = zero // for the garbage collector
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	if r.n == 0 && len(r.buf) > ringKeep {
		*r = ring[T]{}
	}
	return v
}

// front returns the oldest value; the ring must not be empty.
func (r *ring[T]) front() T { return r.buf[r.head] }

func (r *ring[T]) grow() {
	if r.n < len(r.buf) {
		return
	}
	bigger := make([]T, max(ringMin, 2*len(r.buf)))
	k := copy(bigger, r.buf[r.head:])
	copy(bigger[k:], r.buf[:r.head])
	r.buf, r.head = bigger, 0
}
