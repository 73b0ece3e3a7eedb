package mux

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/transport"
)

const (
	// flightMax is the maximum number of calls in flight, not counting urgent calls that are added later. Renewals
	// cannot overtake calls in flight.
	flightMax = 1024

	urgentMax = 2 * flightMax

	boundless = 1 << 30
)

var flightOf = [lanes]int{laneRepeat: boundless, laneVital: boundless, laneUrgent: urgentMax, laneNormal: flightMax}

// resume returns the number of calls in flight at which a full lane accepts calls again. It is low enough for a batch
// to share a packet.
func resume(lane int) int { return flightOf[lane] / 4 * 3 }

type room [lanes]int

var all = room(flightOf)

// inflight holds the calls that are waiting for replies, in the order in which they were written. The goroutine with
// the write token adds calls, and the goroutine with the read token removes them.
type inflight struct {
	more func() // called when a full lane has room again

	mu    sync.Mutex // held for a few instructions only
	calls ring[entry]
	full  [lanes]bool // set until the number of calls drops to resume

	readToken
}

// room returns how many calls may be added. If a lane is full, more is called when it has room again.
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

// resumes is called with f.mu held.
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

func (f *inflight) oldest() (at time.Duration, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls.len() == 0 {
		return 0, false
	}
	return f.calls.front().at, true
}

const (
	// leadFor is the longest time that a caller reads before the reader takes over. The shortest is half of it. A
	// shorter timer would make each park of the process a timed wait, which is slow.
	leadFor = time.Second

	// idleFor is how long the reader waits while no caller reads before it takes the token, so that it notices a closed
	// connection.
	idleFor = 125 * time.Millisecond

	// aloneFor is the number of calls in a row that must not overlap before the reader frees the read token.
	aloneFor = 8
)

// Which goroutine holds the read token.
const (
	withNone   = iota
	withReader // the reader has it or will take it
	withCaller
)

// readToken is the right to read from a connection and to remove calls from the calls in flight. It is guarded by
// inflight.mu.
//
//	           a caller of Lead, with nothing queued, being written or in flight
//	  free ◀──────────────────────────────────────────────▶ with a caller
//	   ▲ │             reply, with no other call in flight        │
//	   │ │ the run goroutine writes a call,                       │ context ended, interrupted,
//	   │ ▼ or no caller has read for 125 to 250 ms                │ a second passed, or others
//	with the reader ◀─────────────────────────────────────────────┘ are in flight
//	     after 8 calls in a row that did not overlap
//
// The write token, which is part of queue, belongs to the run goroutine while it is awake, and to a leading caller
// until its call is flushed. The invariants are:
//
//   - Only the holder of the write token writes and adds calls. Only the holder of the read token reads and
//     removes calls.
//   - A caller gets both tokens or neither, and only while no call is queued, being written or in flight. So it reads
//     its own reply and doesn't run the done callback of any other call.
//   - The read token is not free while a flushed call is in flight.
//   - While there is room for a queued call, the write token belongs to the run goroutine, or to a caller that wakes
//     the run goroutine when it returns the token.
//   - A caller that is interrupted has not parsed any bytes, so the reader can continue in its place.
//   - When the connection has ended, the reader keeps the token. Before that, the reader waits for a caller that has
//     the token, so Close waits for it as well.
//
// The reader always has the token if the socket cannot be peeked at: on Windows and AIX, for connections in memory, and
// for connections that respconn did not make.
type readToken struct {
	conn  *respconn.Guarded // nil if callers cannot read
	turn  chan struct{}     // cap 1; receives a value when the reader gets the token or a caller returns it
	with  int
	ended bool
	alone int // answered calls in a row that did not overlap

	// These fields describe the caller that has the token.
	call        *transport.Call
	ctxDone     <-chan struct{} // nil until the caller waits
	interrupted bool            // the caller must return the token

	idle  *time.Timer // nil until first used
	armed bool
	given int // how often the token was freed
	seen  int // value of given when idle was last started
}

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

func (f *inflight) bound() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.interrupted {
		f.conn.Interrupt()
		return
	}
	f.conn.Within(leadFor)
}

func (f *inflight) attend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.with == withNone {
		f.alone = 0
		f.give()
	}
}

// give is called with f.mu held.
func (f *inflight) give() {
	f.with = withReader
	f.tell()
}

func (f *inflight) tell() {
	select {
	case f.turn <- struct{}{}:
	default:
	}
}

// leave takes the token from the caller. It gives the token to the reader if a call is in flight, and frees it
// otherwise.
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

// free is called with f.mu held.
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

// look gives the token to the reader if no caller has held it since the previous call to look.
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

// settled frees the reader's token if calls have not overlapped for a while, and reports whether it did. The reader
// must have nothing left to read.
func (f *inflight) settled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls.len() > 0 || f.alone < aloneFor || f.ended {
		return false
	}
	f.free()
	return true
}

// await waits until the reader has the token. It returns false if the connection is dead before that.
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

// end gives the token to the reader for good.
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

// waits records that the caller is waiting and must be interrupted when done is closed.
func (f *inflight) waits(done <-chan struct{}) {
	f.mu.Lock()
	f.ctxDone = done
	f.mu.Unlock()
}

// interrupt makes the caller of call return the token if it has the token.
func (f *inflight) interrupt(call *transport.Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.with == withCaller && f.call == call {
		f.interruptLocked()
	}
}

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
