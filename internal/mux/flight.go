package mux

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/transport"
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

const (
	// leadFor is how long a caller reads at most, half of it at least: the reader takes
	// over from one whose reply takes longer. A shorter time would cost more than
	// leading gains: a timer that is due soon makes each park of the process a wait with
	// a timeout.
	leadFor = time.Second

	// idleFor is for how long no caller must have read before the reader takes the read
	// token, so that the end of an idle connection is noticed: so long, or twice.
	idleFor = 125 * time.Millisecond

	// aloneFor is how many calls in a row must have been answered that did not overlap before
	// the reader gives the read token back.
	aloneFor = 8
)

// Which goroutine has the read token.
const (
	withNone   = iota
	withReader // the reader, or it is about to take it
	withCaller
)

// readToken is the right to read from a connection, and to take calls out of flight. It is
// guarded by the mutex of inflight. On a connection that callers cannot read, the reader has
// it for good.
type readToken struct {
	conn  *respconn.Guarded // nil: callers cannot read
	turn  chan struct{}     // cap 1: the token was given to the reader, or back by a caller
	with  int
	ended bool // callers get it no more
	alone int  // how many calls in a row were answered that did not overlap

	// Of the caller that has it.
	call        *transport.Call
	ctxDone     <-chan struct{} // closed when its context ends; nil until it waits
	interrupted bool            // it was asked to give the token back

	idle  *time.Timer // nil until it is first used
	armed bool
	given int // how often a caller has given it back
	seen  int // the same, when idle last fired
}

// lead gives a caller the read token, if nothing is in flight and none has it.
func (f *inflight) lead(call *transport.Call) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.with != withNone || f.ended || f.calls.len() > 0 {
		return false
	}
	f.with, f.call, f.interrupted = withCaller, call, false
	f.conn.Within(leadFor)
	return true
}

// bound bounds the wait of the caller that has the token once more, unless it was asked to
// give it back.
func (f *inflight) bound() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.interrupted {
		f.conn.Interrupt()
		return
	}
	f.conn.Within(leadFor)
}

// attend gives the token to the reader when none has it, since calls are to be written.
func (f *inflight) attend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.with == withNone {
		f.alone = 0
		f.give()
	}
}

// give gives the token to the reader, mu held.
func (f *inflight) give() {
	f.with = withReader
	f.tell()
}

func (f *inflight) tell() {
	select {
	case f.turn <- struct{}{}:
	default: // it will look anyway
	}
}

// leave takes the token back from a caller: the reader gets it when anything is in flight.
func (f *inflight) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.interrupted {
		f.conn.Resume()
	}
	f.call, f.ctxDone, f.interrupted = nil, nil, false
	if f.ended || f.calls.len() > 0 {
		f.alone = 0
		f.give()
		return
	}
	f.free()
}

// free leaves the token with none, mu held, for a while.
func (f *inflight) free() {
	f.with = withNone
	f.given++
	switch {
	case f.armed || f.ended:
		return
	case f.idle == nil:
		f.idle = time.AfterFunc(idleFor, f.look)
	default:
		f.idle.Reset(idleFor)
	}
	f.armed, f.seen = true, f.given
}

// look gives the token to the reader when no caller has had it since the last look. The
// calls were alone all the same: the first one after it gives the token back.
func (f *inflight) look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.ended || f.with == withReader:
		f.armed = false
	case f.with == withCaller || f.given != f.seen:
		f.seen = f.given
		f.idle.Reset(idleFor)
	default:
		f.armed = false
		f.give()
	}
}

// settled takes the token from the reader, for which nothing more has come, and reports
// whether it did: when callers have not overlapped for a while.
func (f *inflight) settled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls.len() > 0 || f.alone < aloneFor || f.ended {
		return false
	}
	f.free()
	return true
}

// await returns true when the reader has the token, and false when the connection is dead.
func (f *inflight) await(dead <-chan struct{}) bool {
	for {
		select {
		case <-f.turn:
		case <-dead:
			return false
		}
		f.mu.Lock()
		has := f.with == withReader
		f.mu.Unlock()
		if has {
			return true
		}
	}
}

// end gives the token to the reader for good. It waits for a caller that has it: the
// connection is dead, so that caller does not wait for anything.
func (f *inflight) end() {
	f.mu.Lock()
	f.ended = true
	if f.idle != nil {
		f.idle.Stop()
	}
	for f.with == withCaller {
		f.mu.Unlock()
		<-f.turn
		f.mu.Lock()
	}
	f.with = withReader
	f.mu.Unlock()
}

// waits notes that the caller that has the token begins to wait, until done is closed.
func (f *inflight) waits(done <-chan struct{}) {
	f.mu.Lock()
	f.ctxDone = done
	f.mu.Unlock()
}

// interrupt tells the caller of call to give the token back, if it has it.
func (f *inflight) interrupt(call *transport.Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.with == withCaller && f.call == call {
		f.interruptLocked()
	}
}

// contextEnded tells the caller that has the token to give it back, if its context has ended.
func (f *inflight) contextEnded() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.with == withCaller && f.ctxDone != nil && isClosed(f.ctxDone) {
		f.interruptLocked()
	}
}

func (f *inflight) interruptLocked() {
	if !f.interrupted {
		f.interrupted = true
		f.conn.Interrupt()
	}
}
