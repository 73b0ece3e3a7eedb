package mux

import (
	"time"

	"github.com/redlatch/redlatch/transport"
)

// Redirect is Start for a call that another server of a cluster has refused and sent
// here, so that it has not run. With asking, ASKING is sent directly
// before the call: the server does not own the call's slot yet. When the caller has left,
// the call is not sent, and ends with transport.ErrNotSent.
func (m *Mux) Redirect(call *transport.Call, done transport.Done, asking bool) {
	e := entry{call: call, done: done, redirected: true, asking: asking}
	switch first, ok := m.queue.push(e, &m.wg); {
	case !ok:
		done(nil, errClosedNotSent)
	case first:
		go m.run()
	}
}

// ask writes ASKING and puts it in flight, as a call that no caller waits for: if
// the server refuses it, it refuses the call, too. It returns false when the link
// broke.
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
