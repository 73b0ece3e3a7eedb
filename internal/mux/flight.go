package mux

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/transport"
)

const (
	// flightMax bounds the calls in flight when a call that is not urgent is added. Renewals cannot overtake calls in
	// flight, and a broken connection leaves those in doubt, but not queued calls.
	flightMax = 1024

	// urgentMax bounds urgent calls.
	urgentMax = 2 * flightMax

	boundless = 1 << 30
)

// flightOf is the bound on calls in flight by lane.
var flightOf = [lanes]int{laneRepeat: boundless, laneVital: boundless, laneUrgent: urgentMax, laneNormal: flightMax}

// resume is the number of calls in flight at which a full lane accepts calls again: low enough for a batch to share a
// packet.
func resume(lane int) int { return flightOf[lane] / 4 * 3 }

// room is how many calls of each lane may be added.
type room [lanes]int

var all = room(flightOf)

// inflight holds the calls written to a connection, in the order of their replies. The goroutine with the write token
// adds calls, and the goroutine with the read token removes them.
type inflight struct {
	more func() // called when a full lane has room again

	mu    sync.Mutex // held for a few instructions only
	calls ring[entry]
	full  [lanes]bool // until the number drops to resume

	readToken
}

// room returns how many calls may be added. If a lane has none, more is called later.
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

// resumes reports whether a full lane has room again, f.mu held.
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
	// leadFor bounds a caller's read, at half of it at least; then the reader takes over. A timer due sooner would
	// make each park of the process a timed wait, which is slow.
	leadFor = time.Second

	// idleFor is how long the reader waits without a read by any caller before it reads itself, to notice a closed
	// connection. It may take twice as long.
	idleFor = 125 * time.Millisecond

	// aloneFor is how many calls in a row must not overlap before the reader frees the read token.
	aloneFor = 8
)

// Which goroutine holds the read token.
const (
	withNone   = iota
	withReader // or on the way to it
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
//	     8 calls in a row did not overlap: free again
//
// The write token, in queue, is with the run goroutine while it is awake, and with a leading caller until its call
// is flushed. The invariants:
//
//   - Only the holder of the write token writes and adds calls; only the holder of the read token reads and
//     removes them.
//   - A caller gets both tokens or neither, and only while no call is queued, being written or in flight. So it reads
//     its own reply and doesn't run the done callback of any other call.
//   - The read token is taken while a flushed call is in flight.
//   - While a queued call has room, the write token is with the run goroutine, or with a caller, which wakes the run
//     goroutine on returning it.
//   - An interrupted wait has parsed no bytes, so the reader continues there.
//   - The connection is over when the reader has the token for good. The reader waits for a caller that holds it, so
//     Close does as well.
//
// If the socket cannot be peeked at (Windows, AIX, in memory, not made by respconn), the reader has the token for
// good.
type readToken struct {
	conn  *respconn.Guarded // nil if callers cannot read
	turn  chan struct{}     // cap 1: the reader got the token, or a caller returned it
	with  int
	ended bool
	alone int // answered calls in a row that did not overlap

	// Of the caller that has the token.
	call        *transport.Call
	ctxDone     <-chan struct{} // nil until it waits
	interrupted bool            // it must return the token

	idle  *time.Timer // nil until first used
	armed bool
	given int // returns by callers
	seen  int // given when idle last fired
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

// bound limits the caller's wait again, unless it has been interrupted.
func (f *inflight) bound() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.interrupted {
		f.conn.Interrupt()
		return
	}
	f.conn.Within(leadFor)
}

// attend gives the reader a free token before calls are written.
func (f *inflight) attend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.with == withNone {
		f.alone = 0
		f.give()
	}
}

// give gives the token to the reader, f.mu held.
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

// leave takes the token from a caller, and gives it to the reader if a call is in flight.
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

// free frees the token, f.mu held.
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

// look gives the reader the token if no caller has held it since the previous call to look. It does not change the
// field alone, so the reader frees the token after the next reply.
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

// settled takes the token from the reader if calls have not overlapped for a while, and reports whether it did. The
// reader must have nothing left to read.
func (f *inflight) settled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls.len() > 0 || f.alone < aloneFor || f.ended {
		return false
	}
	f.free()
	return true
}

// await returns false if the connection is dead before the reader has the token.
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

// end gives the reader the token for good. A caller that has it does not block: the connection is dead.
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

// waits records that the caller waits until done is closed.
func (f *inflight) waits(done <-chan struct{}) {
	f.mu.Lock()
	f.ctxDone = done
	f.mu.Unlock()
}

// interrupt makes the caller of call return the token, if it has it.
func (f *inflight) interrupt(call *transport.Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.with == withCaller && f.call == call {
		f.interruptLocked()
	}
}

// contextEnded interrupts the caller if its context has ended.
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
