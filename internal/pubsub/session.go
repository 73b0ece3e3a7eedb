package pubsub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/builtin"
	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/transport"
)

// maxMute is the number of connections in a row that may end without an answer for a channel before waiting callers
// get an error.
const maxMute = 3

func (s *Subscriber) run() {
	defer close(s.done)
	pause := clock.Backoff{Min: s.cfg.BackoffMin, Max: s.cfg.BackoffMax}
	lost := false
	for s.awaitDemand() && pause.Wait(s.ctx) {
		conn, err := s.dial()
		if err != nil && s.ctx.Err() != nil {
			return
		}
		if err != nil {
			pause.Failed()
			s.dialFailed(pause.Failures(), err)
			s.cfg.OnLost(err)
			continue
		}
		if lost {
			s.cfg.OnReconnect()
		}
		useful, err := s.serve(conn)
		if s.ctx.Err() != nil {
			return
		}
		lost = true
		level := slog.LevelWarn
		if errors.Is(err, errUnwanted) {
			level = slog.LevelDebug // Reconnect's caller has logged why
		}
		s.cfg.Logger.Log(s.ctx, level, "redlatch: pub/sub connection lost", "error", err)
		if useful {
			pause.Reset()
		}
		pause.Failed()
		s.connectionLost(pause.Failures(), useful, err)
		s.cfg.OnLost(err)
	}
}

func (s *Subscriber) awaitDemand() bool {
	for !s.demand() {
		select {
		case <-s.wake:
		case <-s.ctx.Done():
			return false
		}
	}
	return s.ctx.Err() == nil
}

func (s *Subscriber) demand() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.table.channels) > 0
}

func (s *Subscriber) dial() (redis.Conn, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.DialTimeout)
	defer cancel()
	return respconn.Timed(s.cfg.Dial(ctx))
}

// dialFailed fails pending listeners. Established listeners receive a gap later.
func (s *Subscriber) dialFailed(failures int, err error) {
	level := slog.LevelDebug
	if failures == 1 {
		level = slog.LevelWarn // only once while the server is unreachable
	}
	s.cfg.Logger.Log(s.ctx, level, "redlatch: pub/sub connection failed", "error", err, "failures", failures)
	s.failPending(notSent(serverError(err)))
}

func (s *Subscriber) connectionLost(failures int, useful bool, err error) {
	var se *transport.ServerError
	switch {
	case errors.As(err, &se) && !builtin.IsFull(se):
		s.failPending(se)
	case se != nil:
		s.failPending(notSent(se))
	case !useful && failures >= maxMute:
		s.failPending(notSent(err))
	}
}

func (s *Subscriber) failPending(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.failPending(err)
}

func notSent(err error) error {
	return fmt.Errorf("%w: subscribe: %w", transport.ErrNotSent, err)
}

func serverError(err error) error {
	var e redis.Error
	if errors.As(err, &e) {
		return &transport.ServerError{Text: string(e)}
	}
	return err
}

var errDead = errors.New("pubsub: no reply from the server")

// errUnwanted ends a connection that may lead to the wrong server.
var errUnwanted = errors.New("pubsub: reconnecting")

// patience times DeadAfter is how long an answer may be overdue while other data still arrives.
const patience = 8

// A session is a connection. The run goroutine writes, and another goroutine reads.
type session struct {
	sub  *Subscriber
	conn redis.Conn
	born time.Time

	heard  atomic.Int64 // when something last arrived, in nanoseconds since born
	useful atomic.Bool

	once   sync.Once
	err    error // the first reason to end; set by once
	broken chan struct{}
}

// serve uses conn until it breaks or the Subscriber is closed. useful reports whether the server answered a
// command for a channel.
func (s *Subscriber) serve(conn redis.Conn) (useful bool, err error) {
	x := &session{sub: s, conn: conn, born: time.Now(), broken: make(chan struct{})}
	if !s.attach(x) {
		x.end(transport.ErrClosed)
		return false, x.err
	}
	go x.read()
	x.end(x.write())
	<-x.broken
	s.detach()
	return x.useful.Load(), x.err
}

func (x *session) end(err error) {
	x.once.Do(func() {
		x.err = err
		_ = x.conn.Close()
	})
}

func (s *Subscriber) attach(x *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.session = x
	s.dials++
	s.table.attach()
	return true
}

func (s *Subscriber) detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = nil
	s.table.detach()
}

func (x *session) write() error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		ops, wait := x.next()
		if wait <= 0 {
			return errDead
		}
		if err := x.send(ops); err != nil {
			return err
		}
		timer.Reset(wait)
		select {
		case <-x.sub.wake:
		case <-timer.C:
		case <-x.broken:
			return errDead // unless the reader has given a reason
		case <-x.sub.ctx.Done():
			return transport.ErrClosed
		}
	}
}

// next returns the commands to send, and the time until it must be called again. The time is not positive if an answer
// is long overdue.
func (x *session) next() (ops []*op, wait time.Duration) {
	now, heard := time.Since(x.born), time.Duration(x.heard.Load())
	cfg := &x.sub.cfg
	x.sub.mu.Lock()
	defer x.sub.mu.Unlock()
	t := &x.sub.table
	if t.oldest() == nil && now >= heard+cfg.PingInterval {
		t.pingDue = true
	}
	ops = t.collect(now)
	o := t.oldest()
	if o == nil {
		return ops, t.until(now, heard+cfg.PingInterval-now)
	}
	return ops, t.until(now, min(max(o.sent, heard)+cfg.DeadAfter, o.sent+patience*cfg.DeadAfter)-now)
}

func (s *Subscriber) command(k kind) string {
	if s.cfg.Sharded && k != ping {
		return "S" + k.String()
	}
	return k.String()
}

func (x *session) send(ops []*op) error {
	if len(ops) == 0 {
		return nil
	}
	for _, o := range ops {
		if err := x.conn.Send(x.sub.command(o.kind), o.args...); err != nil {
			return err
		}
	}
	return x.conn.Flush()
}

func (x *session) read() {
	defer close(x.broken)
	// The writer notices a dead connection first, unless it is blocked in a write.
	bound := x.sub.cfg.PingInterval + 2*x.sub.cfg.DeadAfter
	for {
		reply, refusal, err := respconn.Receive(x.conn, bound)
		if err == nil {
			err = x.take(reply, refusal)
		}
		if err != nil {
			x.end(err)
			return
		}
	}
}

// take handles a message or an answer. Unknown replies are ignored. An error ends the connection.
func (x *session) take(reply any, refusal *transport.ServerError) error {
	x.heard.Store(int64(time.Since(x.born)))
	if refusal != nil {
		return x.refused(refusal)
	}
	s := x.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.nudgeIfDue()
	switch r := reply.(type) {
	case string, []byte:
		s.table.pong()
	case []any:
		if len(r) >= 2 {
			word, _ := r[0].([]byte)
			channel, _ := r[1].([]byte)
			x.takePush(word, channel, r[2:])
		}
	}
	return nil
}

func (x *session) takePush(word, channel []byte, rest []any) {
	t := &x.sub.table
	switch string(word) {
	case "message", "smessage":
		if len(rest) == 1 {
			payload, _ := rest[0].([]byte)
			t.deliver(channel, payload)
		}
	case "subscribe", "ssubscribe":
		if t.acknowledge(subscribe, string(channel)) {
			x.useful.Store(true)
		}
	case "unsubscribe", "sunsubscribe":
		t.acknowledge(unsubscribe, string(channel))
	case "pong":
		t.pong()
	}
}

func (x *session) refused(err *transport.ServerError) error {
	o, fatal := x.sub.refuse(err)
	if fatal != nil {
		return fatal
	}
	if unsubscribedAlready(err) {
		return nil
	}
	if o.kind == subscribe && len(o.rest) == 1 && !passing(err) {
		x.useful.Store(true) // for a batch, the channels are subscribed again
	}
	level := slog.LevelWarn
	if o.again {
		level = slog.LevelDebug
	}
	x.sub.cfg.Logger.Log(x.sub.ctx, level, "redlatch: pub/sub command rejected",
		"command", x.sub.command(o.kind), "channels", len(o.rest), "error", err)
	return nil
}

func (s *Subscriber) refuse(err *transport.ServerError) (*op, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.nudgeIfDue()
	return s.table.refuse(err)
}

func (s *Subscriber) nudgeIfDue() {
	if len(s.table.dirty) > 0 || len(s.table.paused) > 0 && s.table.resumeAt == 0 {
		s.nudge()
	}
}
