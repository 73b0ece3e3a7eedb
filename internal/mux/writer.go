package mux

import (
	"runtime"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/transport"
)

const (
	// batchMax is the number of calls that are taken at a time. Urgent calls cannot overtake calls that have been
	// taken.
	batchMax = 64

	// manyCalls is the number of calls in flight above which a yield before the flush costs less than the packets it
	// saves.
	manyCalls = 8

	// flushEvery is the maximum number of calls that are written without a flush.
	flushEvery = 256
)

// A writer writes calls to one link at a time. args belongs to the goroutine with the write token, and the other
// fields belong to the run goroutine.
type writer struct {
	batch     [batchMax]entry
	args      encodeBuffer
	unflushed int
	yielded   bool // since the last flush
}

// serve writes calls until l breaks or is retired, or the Mux is closed. It returns unwritten calls to the queue.
func (w *writer) serve(m *Mux, l *link) {
	w.unflushed, w.yielded = 0, false
	for !l.retired() {
		calls := m.queue.take(w.batch[:0], l.flight.room())
		if len(calls) > 0 {
			l.flight.attend() // a server may block until its replies are read
		}
		n := w.write(m, l, calls)
		if n > 0 {
			l.flight.attend() // the reader may have freed the token in the meantime
		}
		m.queue.restore(calls[n:])
		clear(calls)
		if n > 0 && w.unflushed < flushEvery {
			continue
		}
		if !w.settle(m, l) {
			return
		}
	}
}

func (w *writer) rest(l *link) {
	if w.unflushed == 0 {
		return
	}
	if err := l.conn.Flush(); err != nil {
		l.fail(err)
	}
}

// settle is called when there is nothing to write or flushEvery is reached. It yields once, flushes, or waits for
// calls. It returns false if the Mux is closed or l is retired.
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

// write returns the number of calls that don't have to be written again. If it is less than len(calls), l can no
// longer be used. If l broke while a call was being written, that call is in flight.
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
		// Do not push the call earlier, because an unsolicited reply would end it while send is still reading it. The
		// server cannot answer a call before it has been flushed completely.
		l.flight.push(e)
		if err != nil {
			l.fail(err)
			return i + 1
		}
	}
	return len(calls)
}

// claim reports whether the call may be written to l. An abandoned call must not be repeated after NOSCRIPT or a
// redirection; Fence relies on that.
func claim(e entry, l *link) bool { return e.call.Claim(l.who.name) && !e.call.Abandoned() }

// encodeBuffer builds the arguments of EVALSHA and EVAL without allocating.
type encodeBuffer struct {
	args []any
	shas map[*transport.Script]any
}

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
	clear(s.args)
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

// ask writes ASKING and puts it in flight. Its reply is ignored, because a server that rejects it also rejects the
// next call. ask returns false if the link broke.
func (w *writer) ask(l *link, now time.Duration) bool {
	asking := &transport.Call{Command: "ASKING"}
	l.flight.push(entry{call: asking, done: func(any, error) {}, at: now})
	w.unflushed++
	if err := l.conn.Send(asking.Command); err != nil {
		l.fail(err)
		return false
	}
	return true
}
