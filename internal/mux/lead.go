package mux

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/builtin"
	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/transport"
)

const (
	// leadBytes is the approximate size up to which a caller may write its call itself. If no call is in flight, the
	// socket buffer has that much room.
	leadBytes = 4 << 10

	// soundFor is how long after a reply a connection that is not being read is assumed to work.
	soundFor = time.Millisecond
)

// Lead is like Start, but writes the call and reads its reply on the caller's goroutine if no other call is queued,
// being written or in flight; see builtin.Leader.
func (m *Mux) Lead(ctx context.Context, call *transport.Call, done transport.Done, caller builtin.Caller) {
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

// Interrupt makes Lead return if it is waiting for call.
func (m *Mux) Interrupt(call *transport.Call) {
	if l := m.history.present(); l != nil {
		l.flight.interrupt(call)
	}
}

// lead is called with both tokens of l. It returns the write token before it calls Started.
func (m *Mux) lead(ctx context.Context, l *link, e entry, caller builtin.Caller) {
	returned := false
	defer func() {
		if !returned {
			// The replies may be out of step with the calls.
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

// writeOne writes and flushes the call. If it returns false, the call has ended or has been queued again, or l has
// failed.
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
	l.flight.push(e) // not earlier; see writer.write
	if err == nil {
		err = l.conn.Flush()
	}
	if err != nil {
		l.fail(err)
	}
	return err == nil
}

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

// sound reports whether l, which is not being read, seems to work. If not, it fails l.
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

// attentive makes sure that the caller that reads from l is interrupted when ctx ends. It returns false if ctx has
// ended already. To save allocations, it keeps the registration for the next call with ctx.
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

func (l *link) unwatch() {
	if l.watched != nil {
		l.stop()
		l.watched, l.stop = nil, nil
	}
}

func small(call *transport.Call) bool {
	n := len(call.Command)
	for _, arg := range call.Args {
		switch a := arg.(type) {
		case string:
			n += len(a)
		case []byte:
			n += len(a)
		}
		n += 16 // protocol overhead
	}
	return n <= leadBytes
}
