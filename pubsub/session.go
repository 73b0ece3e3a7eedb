package pubsub

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/transport"
)

// errDead ends a connection on which the server has stopped answering.
var errDead = errors.New("pubsub: no answer from the server")

// errUnwanted ends a working connection that may lead to the wrong server.
var errUnwanted = errors.New("pubsub: the connection is to be made anew")

// patience, times DeadAfter, is how long an answer may be overdue while other data arrives. It
// detects connections that are broken in one direction or out of step.
const patience = 8

// session is one connection. The run goroutine writes, another goroutine reads.
type session struct {
	sub  *Subscriber
	conn redis.Conn
	born time.Time

	heard  atomic.Int64 // when something last arrived, in nanoseconds since born
	useful atomic.Bool  // the server has answered for a channel

	once   sync.Once
	err    error         // the first reason to end; set by once
	broken chan struct{} // closed when the reader has ended
}

// serve uses conn until it breaks or the Subscriber is closed. It reports whether the server ever
// answered for a channel, and why the connection ended.
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

// end closes the connection, which ends reads and writes on it.
func (x *session) end(err error) {
	x.once.Do(func() {
		x.err = err
		_ = x.conn.Close() // err is the error to report
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

// write sends commands as the table requires and keeps the connection alive, until it breaks or
// the Subscriber is closed.
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

// next returns the commands to send now, and when to look again: not positive if an answer is
// overdue for too long.
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

// command returns the name of a command.
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

// read handles received data until the connection ends.
func (x *session) read() {
	defer close(x.broken)
	// The writer notices a dead connection first, unless it blocks in a write.
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

// take handles a message or an answer. An error ends the connection.
func (x *session) take(reply any, refusal *transport.ServerError) error {
	x.heard.Store(int64(time.Since(x.born)))
	if refusal != nil {
		return x.refused(refusal)
	}
	s := x.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.nudgeIfDue()
	switch p := decode(reply); p.kind {
	case message:
		s.table.deliver(p.channel, p.payload)
	case subscribed:
		if s.table.acknowledge(subscribe, string(p.channel)) {
			x.useful.Store(true)
		}
	case unsubscribed:
		s.table.acknowledge(unsubscribe, string(p.channel))
	case pong:
		s.table.pong()
	}
	return nil
}

// refused handles an error reply.
func (x *session) refused(err *transport.ServerError) error {
	o, fatal := x.sub.refuse(err)
	if fatal != nil {
		return fatal
	}
	if unsubscribedAlready(err) {
		return nil // already unsubscribed
	}
	if o.kind == subscribe && len(o.rest) == 1 && !passing(err) {
		x.useful.Store(true) // the channels of a refused batch are subscribed again
	}
	level := slog.LevelWarn
	if o.again {
		level = slog.LevelDebug
	}
	x.sub.cfg.Logger.Log(x.sub.ctx, level, "pub/sub command refused",
		"command", x.sub.command(o.kind), "channels", len(o.rest), "error", err)
	return nil
}

func (s *Subscriber) refuse(err *transport.ServerError) (*op, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.nudgeIfDue()
	return s.table.refuse(err)
}

// nudgeIfDue wakes the writer for channels that an answer made dirty or paused.
func (s *Subscriber) nudgeIfDue() {
	if len(s.table.dirty) > 0 || len(s.table.paused) > 0 && s.table.resumeAt == 0 {
		s.nudge()
	}
}

// pushKind is the kind of a reply on a subscribed connection.
type pushKind uint8

const (
	unknown pushKind = iota
	message
	subscribed
	unsubscribed
	pong
)

// pushKinds maps the first word of a reply. Shard channels have their own words.
var pushKinds = map[string]pushKind{
	"message":      message,
	"smessage":     message,
	"subscribe":    subscribed,
	"ssubscribe":   subscribed,
	"unsubscribe":  unsubscribed,
	"sunsubscribe": unsubscribed,
	"pong":         pong,
}

// push is a decoded reply.
type push struct {
	kind             pushKind
	channel, payload []byte
}

// decode decodes a reply. PING is answered with an array on a connection with subscriptions, and
// with a string on others. Unknown replies are ignored.
func decode(reply any) push {
	switch r := reply.(type) {
	case string:
		return push{kind: pong}
	case []byte:
		return push{kind: pong}
	case []any:
		return decodeArray(r)
	}
	return push{}
}

func decodeArray(r []any) push {
	if len(r) < 2 {
		return push{}
	}
	word, _ := r[0].([]byte)
	p := push{kind: pushKinds[string(word)]}
	p.channel, _ = r[1].([]byte)
	if p.kind != message {
		return p
	}
	if len(r) != 3 {
		return push{}
	}
	p.payload, _ = r[2].([]byte)
	return p
}
