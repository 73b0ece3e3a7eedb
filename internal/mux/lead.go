package mux

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/transport"
)

const (
	// leadBytes is about how large a call is that its caller may write: when nothing is in
	// flight the system has room for so much, so the write does not wait for the server.
	leadBytes = 4 << 10

	// soundFor is for how long after a reply a connection that none reads counts as sound.
	soundFor = time.Millisecond
)

// Lead is Start that writes the call and reads its reply on the caller's goroutine, if no
// other call is queued, being written or in flight: see transport.Leader. For a reply that
// does not come within a second it does not wait.
func (m *Mux) Lead(ctx context.Context, call *transport.Call, done transport.Done, caller transport.Caller) {
	var l *link
	if small(call) {
		l = m.queue.lead(call)
	}
	if l == nil {
		m.Start(call, done)
		caller.Started()
		return
	}
	m.lead(ctx, l, entry{call: call, done: done}, caller)
}

// Interrupt makes the Lead of call return, if it waits.
func (m *Mux) Interrupt(call *transport.Call) {
	if l := m.history.present(); l != nil {
		l.flight.interrupt(call)
	}
}

// lead is for a caller that has both tokens of l. It gives the write token back before it
// tells the caller, and the read token at the end.
func (m *Mux) lead(ctx context.Context, l *link, e entry, caller transport.Caller) {
	returned := false
	defer func() {
		if !returned {
			// A done or a Started has panicked, or ended the goroutine: the replies on
			// this connection may have come out of step.
			l.fail(errAborted)
		}
		l.flight.leave()
	}()
	sent := m.writeOne(l, e)
	caller.Started()
	if sent && l.attentive(ctx) && caller.Waits() {
		m.readOne(l)
	}
	returned = true
}

// writeOne writes the only call and flushes it. It returns false when it could not: then
// the call has ended, or goes to the next connection.
func (m *Mux) writeOne(l *link, e entry) bool {
	defer m.queue.written()
	if !l.sound() || l.retired() {
		m.queue.restore([]entry{e})
		return false
	}
	if !claim(e, l) {
		m.finish(e, nil, transport.ErrNotSent)
		return false
	}
	e.at = l.age()
	err := m.writer.args.send(l.conn, e)
	l.flight.push(e) // not before: see writer.write
	if err == nil {
		err = l.conn.Flush()
	}
	if err != nil {
		l.fail(err)
	}
	return err == nil
}

// readOne waits for one reply: that of the only call which was in flight.
func (m *Mux) readOne(l *link) {
	for !l.below.Whole() {
		if err := l.below.Fill(); err != nil {
			if respconn.Ended(err) {
				l.fail(err)
			}
			return
		}
	}
	if m.receive(l) && !l.below.Empty() && l.flight.len() == 0 {
		l.fail(errUnasked)
	}
}

// sound reports whether l, which none reads, is not known to be broken.
func (l *link) sound() bool {
	if l.age()-time.Duration(l.heard.Load()) < soundFor {
		return true
	}
	err := l.below.Sound()
	if err != nil {
		l.fail(err)
	}
	l.flight.bound()
	return err == nil
}

// attentive sees to it that the caller that reads l is interrupted when ctx ends. It returns
// false when that is so already. The registration is kept for the next call with that
// context: a new one costs allocations.
func (l *link) attentive(ctx context.Context) bool {
	done := ctx.Done()
	if done == nil {
		return true
	}
	l.flight.waits(done)
	if l.watched != done {
		l.unwatch()
		l.watched, l.stop = done, context.AfterFunc(ctx, l.ended)
	}
	return !isClosed(done)
}

// unwatch forgets the context of the last caller that has read.
func (l *link) unwatch() {
	if l.watched != nil {
		l.stop()
		l.watched, l.stop = nil, nil
	}
}

// small reports whether a caller may write the call.
func small(call *transport.Call) bool {
	n := len(call.Command)
	for _, arg := range call.Args {
		switch a := arg.(type) {
		case string:
			n += len(a)
		case []byte:
			n += len(a)
		}
		n += 16 // of a number, and of what is around each
	}
	return n <= leadBytes
}
