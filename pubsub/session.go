package pubsub

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/transport"
)

// errDead ends a connection on which the server no longer answers.
var errDead = errors.New("pubsub: no answer from the server")

// errUnwanted ends a connection that works, but perhaps to the wrong server.
var errUnwanted = errors.New("pubsub: the connection is to be made anew")

// patience is how many times DeadAfter an answer may be overdue while other
// things still arrive. It ends connections of which one direction is broken, and
// those that have come out of step.
const patience = 8

// session is one connection. The run goroutine writes to it, and one goroutine
// of its own reads.
type session struct {
	sub  *Subscriber
	conn redis.Conn
	born time.Time

	heard  atomic.Int64 // when something last arrived, in nanoseconds since born
	useful atomic.Bool  // the server has answered for a channel

	once   sync.Once
	err    error         // the first reason to end; set within once
	broken chan struct{} // closed when the reader has ended
}

// serve uses conn until it breaks or the Subscriber is closed. It reports
// whether the server ever answered for a channel, and why the connection ended.
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

// end makes reads and writes on the connection fail, at once and for good.
func (x *session) end(err error) {
	x.once.Do(func() {
		x.err = err
		_ = x.conn.Close() // it is broken already, or not needed any more
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

// write sends what the table asks for and keeps the connection alive, until the
// connection breaks or the Subscriber is closed.
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
			return errDead // the reader has given its own reason
		case <-x.sub.ctx.Done():
			return transport.ErrClosed
		}
	}
}

// next returns the commands to send now, and after how long to look again. When
// that is not positive, the server has not answered for too long.
func (x *session) next() (ops []*op, wait time.Duration) {
	now, heard := time.Since(x.born), time.Duration(x.heard.Load())
	cfg := &x.sub.cfg
	x.sub.mu.Lock()
	defer x.sub.mu.Unlock()
	t := &x.sub.table
	if t.oldest() == nil && now >= heard+cfg.PingInterval && t.pingDue == noPing {
		t.pingDue = keepAlive
	}
	ops = t.collect(now)
	o := t.oldest()
	if o == nil {
		return ops, t.until(now, heard+cfg.PingInterval-now)
	}
	return ops, t.until(now, min(max(o.sent, heard)+cfg.DeadAfter, o.sent+patience*cfg.DeadAfter)-now)
}

// command returns the name of a kind of command.
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
