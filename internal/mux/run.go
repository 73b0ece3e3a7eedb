package mux

import (
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// run is the goroutine that owns the connection, from the first call to Close.
func (m *Mux) run() {
	defer m.wg.Done()
	for m.queue.wait(nil, nil) && m.backoff.Wait(m.ctx) {
		l, err := m.dial()
		if err != nil {
			m.dialFailed(err)
			continue
		}
		m.serve(l)
	}
	for _, e := range m.queue.drain() {
		m.finish(e, nil, errClosedNotSent)
	}
}

// dialFailed ends all calls that wait: they learn why there is no connection
// while it is news, and their callers decide whether to try again.
func (m *Mux) dialFailed(err error) {
	if m.queue.isClosed() {
		return // run ends them as closed
	}
	log := m.cfg.Logger.Warn
	if m.backoff.Failures() > 0 {
		log = m.cfg.Logger.Debug // the first failure of a row has been logged
	}
	m.backoff.Failed()
	calls := m.queue.drain()
	log("redlatch: cannot connect", "error", err, "calls", len(calls))
	err = fmt.Errorf("%w: %w", transport.ErrNotSent, err)
	for _, e := range calls {
		m.finish(e, nil, err)
	}
}

// serve uses l until it breaks or the Mux is closed, and ends what is in flight.
func (m *Mux) serve(l *link) {
	m.wg.Go(func() { m.read(l) })
	m.wg.Go(func() { l.guard(m.ctx.Done(), m.cfg.ReplyLimit, m.cfg.Gone) })
	if m.history.enter(l) {
		m.late.do(m.cfg.OnReconnect)
	}
	if m.moved {
		m.moved = false
		m.late.do(m.cfg.OnMoved)
	}
	m.cfg.Logger.Info("redlatch: connected", "conn", l.who.id)

	if l.below != nil {
		m.queue.offer(l)
	}
	m.writer.serve(m, l)
	m.queue.offer(nil)

	if l.retired() && !l.failed() {
		m.writer.rest(l)
		l.drain()
		l.fail(errReadOnly)
	}
	// Without a cause of its own the writer stopped because of Close.
	l.fail(transport.ErrClosed)
	<-l.readerDone
	m.history.leave()
	m.over(l)
	if !m.queue.isClosed() {
		m.late.do(m.cfg.OnLost)
	}
}

// over ends the calls in flight. Reader and writer have stopped: what is in
// flight now will never be answered.
func (m *Mux) over(l *link) {
	readOnly := errors.Is(l.cause, errReadOnly)
	if l.answered && (!readOnly || l.age() >= demotedAgain) {
		m.backoff.Reset()
	}
	if !l.answered || readOnly {
		// It let us in and was good for nothing: do not hammer at it.
		m.backoff.Failed()
	}
	switch {
	case m.queue.isClosed():
	case readOnly:
		m.demoted(l)
	default:
		m.cfg.Logger.Warn("redlatch: connection lost", "conn", l.who.id, "error", l.cause, "uncertain", l.flight.len())
	}
	err := fmt.Errorf("%w: %w", transport.ErrUncertain, l.cause)
	for e, ok := l.flight.pop(); ok; e, ok = l.flight.pop() {
		m.finish(e, nil, err)
	}
}

// demotedAgain is how long a connection must have served for it to be news that its
// server takes no writes: while none can be reached that does, the connection is made
// anew again and again.
const demotedAgain = 10 * time.Second

// demoted is for a connection whose server takes no writes any more.
func (m *Mux) demoted(l *link) {
	m.moved = true
	log := m.cfg.Logger.Warn
	if m.notified && l.age() < demotedAgain {
		log = m.cfg.Logger.Debug
	}
	m.notified = true
	log("redlatch: the server has become a replica: connecting anew, until the address leads to a master", "conn", l.who.id)
}
