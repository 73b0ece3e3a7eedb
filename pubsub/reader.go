package pubsub

import (
	"errors"
	"log/slog"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/transport"
)

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
