package mux

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/respconn"
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

var errGone = errors.New("no connection yet, and the server has been replaced")

// dial returns a ready connection, or an error after DialTimeout even if Dial hangs.
func (m *Mux) dial() (*link, error) {
	ctx, cancel := context.WithTimeoutCause(m.ctx, m.cfg.DialTimeout,
		fmt.Errorf("no connection within %v: %w", m.cfg.DialTimeout, context.DeadlineExceeded))
	defer cancel()
	type outcome struct {
		link *link
		err  error
	}
	came := make(chan outcome)
	m.wg.Go(func() {
		l, err := m.open(ctx)
		select {
		case came <- outcome{l, err}:
		case <-ctx.Done():
			if l != nil {
				_ = l.conn.Close()
			}
		}
	})
	var look <-chan time.Time
	if m.cfg.Gone != nil {
		t := time.NewTicker(m.cfg.ReplyLimit / looks)
		defer t.Stop()
		look = t.C
	}
	for {
		select {
		case o := <-came:
			return o.link, o.err
		case <-look:
			if m.cfg.Gone() {
				return nil, errGone
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (m *Mux) open(ctx context.Context) (*link, error) {
	conn, err := respconn.Timed(m.cfg.Dial(ctx))
	if err != nil {
		return nil, err
	}
	// Commands on conn don't end with ctx.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	who, err := introduce(conn)
	if !stop() {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	if who.id != 0 {
		who.name = m.cfg.Tag | who.id
	}
	l := newLink(conn, who, m.queue.rouse)
	if err := l.own(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return l, nil
}

// introduce checks in one round trip whether the server accepts commands, and how it identifies the connection. A PING
// error other than NOPERM would also be the reply to every call.
func introduce(conn redis.Conn) (who identity, err error) {
	if err = errors.Join(conn.Send("PING"), conn.Send("CLIENT", "ID"), conn.Send("CLIENT", "INFO"), conn.Flush()); err != nil {
		return who, err
	}
	var replies [3]any
	var refusals [3]*transport.ServerError
	for i := range replies {
		replies[i], refusals[i], err = respconn.Receive(conn, 0)
		if ping := refusals[0]; ping != nil && denied(ping) == "" {
			return who, redis.Error(ping.Text) // the server may close the connection now
		}
		if err != nil {
			return who, err
		}
	}
	who.id, _ = replies[1].(int64)
	info, _ := replies[2].([]byte)
	who.addr = infoField(string(info), "addr")
	who.noID, who.noAddr = denied(refusals[1]), denied(refusals[2])
	return who, nil
}

// denied returns the server's error if it reports a missing permission, otherwise "".
func denied(refusal *transport.ServerError) string {
	if refusal != nil && refusal.Code() == "NOPERM" {
		return refusal.Text
	}
	return ""
}

func infoField(info, name string) string {
	for pair := range strings.FieldsSeq(info) {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

func (m *Mux) dialFailed(err error) {
	if m.queue.isClosed() {
		return // run ends the calls with ErrClosed
	}
	log := m.cfg.Logger.Warn
	if m.backoff.Failures() > 0 {
		log = m.cfg.Logger.Debug // the first failure was logged
	}
	m.backoff.Failed()
	calls := m.queue.drain()
	log("redlatch: cannot connect", "error", err, "calls", len(calls))
	err = fmt.Errorf("%w: %w", transport.ErrNotSent, err)
	for _, e := range calls {
		m.finish(e, nil, err)
	}
}

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
	l.fail(transport.ErrClosed) // without another cause, Close has stopped the writer
	<-l.readerDone
	m.history.leave()
	m.over(l)
	if !m.queue.isClosed() {
		m.late.do(m.cfg.OnLost)
	}
}

// over ends the calls in flight, after the reader and the writer have ended.
func (m *Mux) over(l *link) {
	readOnly := errors.Is(l.cause, errReadOnly)
	if l.answered && (!readOnly || l.age() >= demotedAgain) {
		m.backoff.Reset()
	}
	if !l.answered || readOnly {
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

// demotedAgain is how long a connection must have worked before READONLY is logged again and the pauses start over.
const demotedAgain = 10 * time.Second

func (m *Mux) demoted(l *link) {
	m.moved = true
	log := m.cfg.Logger.Warn
	if m.notified && l.age() < demotedAgain {
		log = m.cfg.Logger.Debug
	}
	m.notified = true
	log("redlatch: the server became a replica: reconnecting until the address leads to a master", "conn", l.who.id)
}
