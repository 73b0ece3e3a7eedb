package mux

import (
	"sync"
	"time"
)

const (
	// flightMax is how many calls may be in flight when one is added that is not
	// urgent. What is in flight cannot be overtaken by a renewal, is in doubt when
	// its caller stops waiting, and again when the connection breaks; what is queued
	// is none of this. The price is that no more than so many are answered in one
	// round trip: at a millisecond that is more than a server can do.
	flightMax = 1024

	// urgentMax is the same for urgent calls, of which there is one for each call
	// that was answered, or so.
	urgentMax = 2 * flightMax

	// boundless is the same for the rest, of which there are few.
	boundless = 1 << 30
)

// flightOf is how many calls may be in flight when one of a lane is added.
var flightOf = [lanes]int{laneRepeat: boundless, laneVital: boundless, laneUrgent: urgentMax, laneNormal: flightMax}

// resume is how many are left in flight when more of a lane are added, once there
// were too many: then a batch of them shares a packet again.
func resume(lane int) int { return flightOf[lane] / 4 * 3 }

// room is how many calls of each lane may be added to those in flight, those of other
// lanes included.
type room [lanes]int

// all is the room when nothing is in flight.
var all = room(flightOf)

// inflight holds the calls written to a connection, or about to be, in the order
// in which the server will answer them. The goroutine with the write token adds, the
// one with the read token removes, the guard looks.
type inflight struct {
	more func() // called when there is room again after there was none

	mu    sync.Mutex // guards what follows; held for a few instructions only
	calls ring[entry]
	full  [lanes]bool // there were too many for the lane, and it does not resume yet

	readToken
}

// room returns what may be added. When that is nothing for some lane, more is called
// when it has room again.
func (f *inflight) room() (r room) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.calls.len()
	for lane, most := range flightOf {
		if f.full[lane] = f.full[lane] || n >= most; !f.full[lane] {
			r[lane] = most - n
		}
	}
	return r
}

func (f *inflight) push(e entry) {
	f.mu.Lock()
	f.calls.pushBack(e)
	if f.calls.len() > 1 {
		f.alone = 0
	}
	f.mu.Unlock()
}

// pop removes the oldest call; ok is false when there is none.
func (f *inflight) pop() (e entry, ok bool) {
	f.mu.Lock()
	if ok = f.calls.len() > 0; ok {
		e = f.calls.popFront()
		if f.alone++; f.calls.len() > 0 {
			f.alone = 0
		}
	}
	again := f.resumes()
	f.mu.Unlock()
	if again {
		f.more()
	}
	return e, ok
}

// resumes reports whether a lane that was full has room again, mu held.
func (f *inflight) resumes() (some bool) {
	n := f.calls.len()
	for lane, full := range f.full {
		if full && n <= resume(lane) {
			f.full[lane], some = false, true
		}
	}
	return some
}

func (f *inflight) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls.len()
}

// oldest returns when the oldest call was put in; ok is false when there is none.
func (f *inflight) oldest() (at time.Duration, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls.len() == 0 {
		return 0, false
	}
	return f.calls.front().at, true
}
