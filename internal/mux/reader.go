package mux

import (
	"errors"

	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/transport"
)

var errReadOnly = errors.New("the server is a replica, which rejects writes")

var errUnasked = errors.New("the server sent an unsolicited reply")

var errAborted = errors.New("a call's callback panicked or exited its goroutine")

// read delivers replies to the calls in flight until l breaks.
func (m *Mux) read(l *link) {
	defer close(l.readerDone)
	if l.below == nil {
		for m.receive(l) {
		}
		return
	}
	for l.flight.await(l.dead) {
		if !m.follow(l) {
			break
		}
	}
	l.flight.end()
	l.unwatch()
}

// follow reads until callers may read again. It returns false if l is broken.
func (m *Mux) follow(l *link) bool {
	l.unwatch()
	l.below.Unbound()
	for {
		for l.below.Whole() {
			e, reply, refusal, ok := m.next(l)
			if !ok {
				return false
			}
			// Do this before deliver, which may wake the caller that leads next.
			settled := l.below.Empty() && l.flight.settled()
			m.deliver(l, e, reply, refusal)
			if settled {
				return true
			}
		}
		if err := l.below.Fill(); err != nil {
			l.fail(err)
			return false
		}
	}
}

func (m *Mux) receive(l *link) bool {
	e, reply, refusal, ok := m.next(l)
	if ok {
		m.deliver(l, e, reply, refusal)
	}
	return ok
}

// next reads one reply and removes its call from the calls in flight. It returns false if l is broken.
func (m *Mux) next(l *link) (e entry, reply any, refusal *transport.ServerError, ok bool) {
	reply, refusal, err := respconn.Receive(l.conn, 0)
	if err != nil {
		l.fail(err)
		return e, nil, nil, false
	}
	l.heard.Store(int64(l.age()))
	if e, ok = l.flight.pop(); !ok {
		l.fail(errUnasked)
		return e, nil, nil, false
	}
	l.answered = true
	if refusal != nil && transport.IsCode(refusal, "READONLY") {
		l.retire()
	}
	return e, reply, refusal, true
}

func (m *Mux) deliver(l *link, e entry, reply any, refusal *transport.ServerError) {
	m.answer(e, reply, refusal)
	if l.retired() {
		l.tell()
	}
}

// answer ends the call, or queues it again as EVAL if the server did not know its script.
func (m *Mux) answer(e entry, reply any, refusal *transport.ServerError) {
	switch {
	case refusal == nil:
		m.finish(e, reply, nil)
	case refusal.Code() != "NOSCRIPT" || e.call.Script == nil || e.eval:
		m.finish(e, nil, refusal)
	default:
		e.eval = true
		m.queue.restore([]entry{e})
	}
}
