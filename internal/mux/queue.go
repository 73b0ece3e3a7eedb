package mux

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch/transport"
)

type entry struct {
	call   *transport.Call
	done   transport.Done
	at     time.Duration // the link's age when the call was put in flight
	eval   bool          // send the script's text, after a NOSCRIPT reply
	asking bool          // see Mux.Ask
}

// The lanes, in order of priority.
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

// A queue holds the calls to be written. Any goroutine may add calls, but only the run goroutine takes them. The queue
// also holds the write token. The run goroutine has the token unless sleeps is set. If sleeps is set, a caller has the
// token if leads is set; otherwise the token is free.
type queue struct {
	wake chan struct{} // cap 1; receives a value when the run goroutine must wake up

	mu      sync.Mutex // held for a few instructions only
	lanes   [lanes]ring[entry]
	sleeps  bool // the run goroutine is waiting on wake
	room    room // while the run goroutine sleeps: the calls that it can take
	started bool
	closed  bool
	leads   bool  // a caller has the write token
	link    *link // the link that a caller may write to, or nil
}

// push adds a call to its lane, unless the queue is closed. If the call is the first one, the caller must start the
// run goroutine. push has counted it in wg, with the mutex held so that a later Close waits for it.
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

// lead gives the caller both tokens of the returned link. The caller must write its call to that link. lead returns
// nil if there is no connection, or if other calls are queued, being written or in flight.
func (q *queue) lead(call *transport.Call) *link {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.link == nil || q.leads || !q.sleeps || q.closed || q.some(all) || !q.link.flight.lead(call) {
		return nil
	}
	q.leads = true
	return q.link
}

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

func (q *queue) offer(l *link) {
	q.mu.Lock()
	q.link = l
	q.mu.Unlock()
}

// restore puts calls back at the front of their lanes, even if the queue is closed.
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
	default:
	}
}

// take removes calls in order of priority and appends them to dst, as far as its capacity and r allow. If the queue is
// closed, it returns dst unchanged.
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

// wait returns true when there are calls to take, and false when the queue or stop is closed. If flight is not nil,
// wait ignores calls for which flight has no room. The queue must then be roused when flight has room again.
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

// some is called with q.mu held.
func (q *queue) some(r room) bool {
	for i := range q.lanes {
		if q.lanes[i].len() > 0 && r[i] > 0 {
			return true
		}
	}
	return false
}

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

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.rouse()
}

// isClosed reports whether Close has begun, which closes the queue first.
func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// A ring is a circular buffer that grows when it is full. The zero value is ready to use.
type ring[T any] struct {
	buf  []T // its length is a power of two
	head int
	n    int
}

const (
	ringMin  = 64
	ringKeep = 4096 // a larger buffer is released when empty
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

// popFront requires a nonempty ring.
func (r *ring[T]) popFront() T {
	var zero T
	v := r.buf[r.head]
	r.buf[r.head] = zero
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	if r.n == 0 && len(r.buf) > ringKeep {
		*r = ring[T]{}
	}
	return v
}

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
