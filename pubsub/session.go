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

// read takes what the server sends until the connection ends.
func (x *session) read() {
	defer close(x.broken)
	// The writer notices a dead connection before this, unless it hangs in a
	// write of its own.
	bound := x.sub.cfg.PingInterval + 2*x.sub.cfg.DeadAfter
	for {
		reply, err := respconn.Receive(x.conn, bound)
		if err := x.take(reply, err); err != nil {
			x.end(err)
			return
		}
	}
}

// take handles what one Receive returned. An error ends the connection.
func (x *session) take(reply any, err error) error {
	var e redis.Error
	if err != nil && !errors.As(err, &e) {
		return err
	}
	x.heard.Store(int64(time.Since(x.born)))
	if err != nil {
		return x.refused(&transport.ServerError{Text: string(e)})
	}
	p := decode(reply)
	switch p.kind {
	case message:
		x.sub.deliver(p)
	case subscribed:
		if x.sub.acknowledge(subscribe, p) {
			x.useful.Store(true)
		}
	case unsubscribed:
		x.sub.acknowledge(unsubscribe, p)
	case pong:
		x.sub.pong()
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
		return nil // what was asked for is so
	}
	if o.kind == subscribe && len(o.rest) == 1 && !passing(err) {
		x.useful.Store(true) // a refused batch is only asked again
	}
	level := slog.LevelWarn
	if o.again {
		level = slog.LevelDebug
	}
	x.sub.cfg.Logger.Log(x.sub.ctx, level, "pub/sub command refused",
		"command", x.sub.command(o.kind), "channels", len(o.rest), "error", err)
	return nil
}

func (s *Subscriber) deliver(p push) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.deliver(p.channel, p.payload)
}

func (s *Subscriber) acknowledge(k kind, p push) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ok := s.table.acknowledge(k, string(p.channel))
	s.nudgeIfDue()
	return ok
}

func (s *Subscriber) refuse(err *transport.ServerError) (*op, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.nudgeIfDue()
	return s.table.refuse(err)
}

func (s *Subscriber) pong() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.pong()
}

// nudgeIfDue has the writer look at channels that an answer made dirty, or paused.
func (s *Subscriber) nudgeIfDue() {
	if len(s.table.dirty) > 0 || len(s.table.paused) > 0 && s.table.resumeAt == 0 {
		s.nudge()
	}
}

// pushKind is what a reply on a subscribed connection tells.
type pushKind uint8

const (
	unknown pushKind = iota
	message
	subscribed
	unsubscribed
	pong
)

// pushKinds are the first words of the replies that matter. Channels of a shard
// have words of their own; they mean the same here.
var pushKinds = map[string]pushKind{
	"message":      message,
	"smessage":     message,
	"subscribe":    subscribed,
	"ssubscribe":   subscribed,
	"unsubscribe":  unsubscribed,
	"sunsubscribe": unsubscribed,
	"pong":         pong,
}

// push is one reply, decoded. channel and payload are set where the kind has
// them.
type push struct {
	kind             pushKind
	channel, payload []byte
}

// decode understands what redigo's Receive returns. A PING is answered with an
// array on a connection that has subscriptions, and with a plain string on one
// that has none. What is not understood is unknown, and harmless.
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
