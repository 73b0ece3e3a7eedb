package mux

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// entry is a call on its way through the Mux.
type entry struct {
	call *transport.Call
	done transport.Done
	at   time.Duration // when it was put in flight, on its link's clock
	eval bool          // the server did not know the script: send its text

	// Another server has sent the call here, and, with asking, wants it to say so.
	redirected, asking bool
}

// The lanes of the queue, the first goes first.
const (
	laneRepeat = iota // calls the server sent back with NOSCRIPT
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

// queue holds the calls that are to be written. Any number of goroutines put
// calls in; the run goroutine alone takes them out.
//
// It also has the write token, without which nothing is written to a connection: while
// sleeps, the token is free, or with a caller if leads; otherwise it is with the run
// goroutine.
type queue struct {
	wake chan struct{} // cap 1: the taker, if it sleeps, has something to do

	mu      sync.Mutex // guards what follows; held for a few instructions only
	lanes   [lanes]ring[entry]
	sleeps  bool // the taker found nothing that it can take and waits on wake
	room    room // while it sleeps: it cannot take calls of lanes without
	started bool // the first call has been put in
	closed  bool
	leads   bool  // a caller has the write token
	link    *link // where a caller may write, nil: nowhere
}

func (q *queue) init() { q.wake = make(chan struct{}, 1) }

// push adds a call at the end of its lane. It returns ok = false, and does
// nothing, when the queue is closed. For the first call of all it returns
// first = true and counts the goroutine that is to take calls out in wg, under
// the mutex, so that a Close that follows waits for it.
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

// lead gives a caller both tokens for the connection that it returns: then the caller's
// call is not put in, and goes there at once. It returns nil while other calls are queued,
// being written or in flight, and when there is no connection.
func (q *queue) lead(call *transport.Call) *link {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.link == nil || q.leads || !q.sleeps || q.closed || q.some(all) || !q.link.flight.lead(call) {
		return nil
	}
	q.leads = true
	return q.link
}

// written takes the write token back from a caller.
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

// offer lets callers write to l, which may be nil.
func (q *queue) offer(l *link) {
	q.mu.Lock()
	q.link = l
	q.mu.Unlock()
}

// restore puts calls back at the front of their lanes, in their order. It works
// on a closed queue too, whose calls are then drained by the taker.
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
	default: // it is roused already
	}
}

// take moves calls to the end of dst, the more urgent first, until its capacity
// is used up, as far as there is room for them. A closed queue gives nothing.
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

// wait returns true as soon as there are calls to take, and false when the queue
// is closed or stop is. Calls for which flight has no room do not count: the goroutine
// that makes room must rouse the queue. With nil there is room for all.
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

// some reports whether there are calls to take, mu held.
func (q *queue) some(r room) bool {
	for i := range q.lanes {
		if q.lanes[i].len() > 0 && r[i] > 0 {
			return true
		}
	}
	return false
}

// drain removes all calls, of a closed queue too.
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

// close makes push refuse calls and the taker stop.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.rouse()
}

// isClosed reports whether Close has begun. It is what tells an end that Close made from a
// loss: Close closes the queue first, and the writer stops before Close cancels the context.
func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// ring is a queue in a circular buffer that grows as needed. The zero ring is
// empty and ready. It is not safe for concurrent use.
type ring[T any] struct {
	buf  []T // its length is a power of two
	head int
	n    int
}

const (
	ringMin  = 64
	ringKeep = 4096 // a larger buffer is let go when the ring runs empty
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

// popFront returns the oldest value; the ring must not be empty.
func (r *ring[T]) popFront() T {
	var zero T
	v := r.buf[r.head]
	r.buf[r.head] = zero // keep nothing alive
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	if r.n == 0 && len(r.buf) > ringKeep {
		*r = ring[T]{}
	}
	return v
}

// front returns the oldest value without removing it; the ring must not be empty.
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
