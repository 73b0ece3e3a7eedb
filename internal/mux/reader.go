package mux

import (
	"errors"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/transport"
)

// errReadOnly means that the server has become a replica: no lock can be taken there,
// and the address may lead to another server by now.
var errReadOnly = errors.New("the server is a replica, which takes no writes")

// errUnasked means that requests and replies are out of step: no reply of this
// connection can be trusted any more.
var errUnasked = errors.New("the server sent a reply that no call asked for")

// errAborted means that what was called for a call did not return.
var errAborted = errors.New("a callback of a call panicked, or ended its goroutine")

// read takes replies from l and gives them to the calls in flight, in order,
// until l breaks. While a caller has the read token, or none has it, it waits.
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

// follow reads until callers may; it returns false when l is broken.
func (m *Mux) follow(l *link) bool {
	l.unwatch()
	l.below.Unbound()
	for {
		for l.below.Whole() {
			e, reply, ok := m.next(l)
			if !ok {
				return false
			}
			// Before its caller goes on, which may be the next one to lead.
			settled := l.below.Empty() && l.flight.settled()
			m.deliver(l, e, reply)
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

// receive takes one reply and gives it to its call; it returns false when l is broken.
func (m *Mux) receive(l *link) bool {
	e, reply, ok := m.next(l)
	if ok {
		m.deliver(l, e, reply)
	}
	return ok
}

// next takes one reply, and its call out of flight; it returns false when l is broken.
func (m *Mux) next(l *link) (e entry, reply any, ok bool) {
	reply, err := receive(l.conn)
	if err != nil {
		l.fail(err)
		return e, nil, false
	}
	l.heard.Store(int64(l.age()))
	if e, ok = l.flight.pop(); !ok {
		l.fail(errUnasked)
		return e, nil, false
	}
	l.answered = true
	if isReadOnly(reply) {
		l.retire()
	}
	return e, reply, true
}

// deliver ends a call that was taken out of flight, or sends it round again.
func (m *Mux) deliver(l *link, e entry, reply any) {
	m.answer(e, reply)
	if l.retired() {
		l.tell()
	}
}

// answer ends the call with its reply, or sends it round again when the server
// did not know its script; the writer sees to it when its caller has left.
func (m *Mux) answer(e entry, reply any) {
	sent, failed := reply.(redis.Error)
	switch {
	case !failed:
		m.finish(e, respconn.Plain(reply), nil)
	case !isNoScript(sent) || e.call.Script == nil || e.eval:
		m.finish(e, nil, &transport.ServerError{Text: string(sent)})
	default:
		e.eval = true
		m.queue.restore([]entry{e})
	}
}

// isReadOnly reports whether a reply says that the server takes no writes.
func isReadOnly(reply any) bool {
	sent, failed := reply.(redis.Error)
	return failed && (&transport.ServerError{Text: string(sent)}).HasCode("READONLY")
}

// isNoScript goes by the code alone: the text behind it differs from server to
// server.
func isNoScript(e redis.Error) bool {
	return e == "NOSCRIPT" || strings.HasPrefix(string(e), "NOSCRIPT ")
}
