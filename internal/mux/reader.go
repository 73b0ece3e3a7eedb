package mux

import (
	"errors"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/transport"
)

// errReadOnly means that the server has become a replica: no lock can be taken there,
// and the address may lead to another server by now.
var errReadOnly = errors.New("the server is a replica, which takes no writes")

// errUnasked means that requests and replies are out of step: no reply of this
// connection can be trusted any more.
var errUnasked = errors.New("the server sent a reply that no call asked for")

// read takes replies from l and gives them to the calls in flight, in order,
// until l breaks.
func (m *Mux) read(l *link) {
	defer close(l.readerDone)
	for {
		reply, err := receive(l.conn)
		if err != nil {
			l.fail(err)
			return
		}
		l.heard.Store(int64(l.age()))
		e, ok := l.flight.pop()
		if !ok {
			l.fail(errUnasked)
			return
		}
		l.answered = true
		if isReadOnly(reply) {
			l.retire()
		}
		m.answer(e, reply)
		if l.retired() {
			l.tell()
		}
	}
}

// answer ends the call with its reply, or sends it round again when the server
// did not know its script; the writer sees to it when its caller has left.
func (m *Mux) answer(e entry, reply any) {
	sent, failed := reply.(redis.Error)
	switch {
	case !failed:
		m.finish(e, wire.Plain(reply), nil)
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
