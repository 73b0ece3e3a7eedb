package mux

import (
	"runtime"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/transport"
)

const (
	// batchMax is how many calls are taken from the queue at a time. An urgent
	// call overtakes all but these.
	batchMax = 64

	// manyCalls is the number of calls in flight above which it pays to let other
	// goroutines add to the batch before it is flushed: with fewer, the yield
	// costs more than the packet it saves.
	manyCalls = 8

	// flushEvery bounds how many calls are written without a flush while the
	// queue never runs empty.
	flushEvery = 256
)

// writer writes calls to one link after the other. It belongs to the run
// goroutine, args to the goroutine with the write token; what it keeps are
// buffers.
type writer struct {
	batch     [batchMax]entry
	args      encodeBuffer
	unflushed int
	yielded   bool // since the last flush
}

// serve writes calls to l until l breaks or is retired, or the Mux is closed. Calls
// taken but not written are back in the queue when it returns.
func (w *writer) serve(m *Mux, l *link) {
	w.unflushed, w.yielded = 0, false
	for !l.retired() {
		calls := m.queue.take(w.batch[:0], l.flight.room())
		if len(calls) > 0 {
			l.flight.attend() // a server may wait for its replies to be read
		}
		n := w.write(m, l, calls)
		if n > 0 {
			l.flight.attend() // the reader may have been about to leave, with nothing in flight
		}
		m.queue.restore(calls[n:])
		clear(calls) // keep nothing alive
		if n > 0 && w.unflushed < flushEvery {
			continue
		}
		if !w.settle(m, l) {
			return
		}
	}
}

// rest flushes what was written to a link that takes no more.
func (w *writer) rest(l *link) {
	if w.unflushed == 0 {
		return
	}
	if err := l.conn.Flush(); err != nil {
		l.fail(err)
	}
}

// settle is for when there is nothing to write: it yields once, flushes, or
// waits, whichever is due. It returns false when the Mux was closed or l is dead.
func (w *writer) settle(m *Mux, l *link) bool {
	switch {
	case w.unflushed == 0:
		return m.queue.wait(l.full, &l.flight)
	case !w.yielded && w.unflushed < flushEvery && l.flight.len() > manyCalls:
		w.yielded = true
		runtime.Gosched()
		return true
	}
	w.unflushed, w.yielded = 0, false
	if err := l.conn.Flush(); err != nil {
		l.fail(err)
	}
	return true
}

// write writes calls and returns how many it has dealt with: fewer than all when
// the link broke. The call that was being written then is in flight.
func (w *writer) write(m *Mux, l *link, calls []entry) int {
	if len(calls) == 0 {
		return 0
	}
	now := l.age()
	for i, e := range calls {
		if l.retired() {
			return i
		}
		if !claim(e, l) {
			m.finish(e, nil, transport.ErrNotSent)
			continue
		}
		e.at = now
		if e.asking && !w.ask(l, now) {
			return i
		}
		w.unflushed++
		err := w.args.send(l.conn, e)
		// Not before: a server that sends more replies than it owes would end a call
		// that is still read. None that is not flushed to its end can be answered.
		l.flight.push(e)
		if err != nil {
			l.fail(err)
			return i + 1
		}
	}
	return len(calls)
}

// claim reports whether the call may be written to l. One that is to be repeated,
// as EVAL or on another server, for a caller that has left is not: it has not run
// yet, and Fence relies on it that it never will.
func claim(e entry, l *link) bool {
	if !e.call.Claim(l.who.name) {
		return false
	}
	return !e.eval && !e.redirected || !e.call.Abandoned()
}

// encodeBuffer makes the arguments of EVALSHA and EVAL without allocating: it uses one
// slice again and again and boxes each script's digest once.
type encodeBuffer struct {
	args []any
	shas map[*transport.Script]any
}

// shasMax bounds the digests kept, for callers that make scripts on the fly.
const shasMax = 256

func (s *encodeBuffer) send(conn redis.Conn, e entry) error {
	c := e.call
	if c.Script == nil {
		return conn.Send(c.Command, c.Args...)
	}
	command, script := "EVALSHA", s.sha(c.Script)
	if e.eval {
		command, script = "EVAL", c.Script.Text()
	}
	s.args = append(append(s.args[:0], script, c.NumKeys), c.Args...)
	err := conn.Send(command, s.args...)
	clear(s.args) // keep nothing alive
	return err
}

func (s *encodeBuffer) sha(script *transport.Script) any {
	if sha, ok := s.shas[script]; ok {
		return sha
	}
	if s.shas == nil || len(s.shas) >= shasMax {
		s.shas = make(map[*transport.Script]any)
	}
	sha := any(script.SHA())
	s.shas[script] = sha
	return sha
}
