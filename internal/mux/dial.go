package mux

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/respconn"
)

// dial makes a connection ready for calls, within DialTimeout, unless the server is replaced.
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
				_ = l.conn.Close() // too late to be of use
			}
		}
	})
	var look <-chan time.Time // nil, which is never
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

// errGone means that it is of no use to go on dialling.
var errGone = errors.New("no connection yet, and the server has been replaced")

// open dials and sets up.
func (m *Mux) open(ctx context.Context) (*link, error) {
	conn, err := m.cfg.Dial(ctx)
	if err != nil {
		return nil, err
	}
	if _, ok := conn.(redis.ConnWithTimeout); !ok {
		if conn != nil {
			_ = conn.Close() // it is not the error to report
		}
		return nil, fmt.Errorf("the dialled connection, a %T, does not support redis.ConnWithTimeout", conn)
	}
	// The connection knows nothing of ctx: end its reads and writes with it.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	who, err := introduce(conn)
	if !stop() {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close() // the first error tells more
		return nil, err
	}
	if who.id != 0 {
		who.name = m.cfg.Tag | who.id
	}
	l := newLink(conn, who, m.queue.rouse)
	if err := l.own(); err != nil {
		_ = conn.Close() // broken anyway
		return nil, err
	}
	return l, nil
}

// introduce finds out, in one round trip, whether the server is willing, and
// what it calls us. An error in answer to PING concerns all calls (it is loading,
// it wants a password) unless it is about PING alone. Not every server tells a
// connection's id, nor to every user, and that is no error.
func introduce(conn redis.Conn) (who identity, err error) {
	if err = errors.Join(conn.Send("PING"), conn.Send("CLIENT", "ID"), conn.Send("CLIENT", "INFO"), conn.Flush()); err != nil {
		return who, err
	}
	var replies [3]any
	for i := range replies {
		replies[i], err = receive(conn)
		if refusal, ok := replies[0].(redis.Error); ok && noRight(refusal) == "" {
			return who, refusal // it may hang up after that
		}
		if err != nil {
			return who, err
		}
	}
	who.id, _ = replies[1].(int64)
	info, _ := replies[2].([]byte)
	who.addr = infoField(string(info), "addr")
	who.noID, who.noAddr = noRight(replies[1]), noRight(replies[2])
	return who, nil
}

// noRight returns the text of a reply that says that the user lacks a right, else "".
func noRight(reply any) string {
	if refusal, _ := reply.(redis.Error); strings.HasPrefix(string(refusal), "NOPERM ") {
		return string(refusal)
	}
	return ""
}

// receive returns the next reply. An error that the server sent is a reply like
// others, a redis.Error; any other error is the connection's end.
func receive(conn redis.Conn) (any, error) {
	reply, err := respconn.Receive(conn, 0)
	if err == nil {
		return reply, nil
	}
	var sent redis.Error
	if errors.As(err, &sent) {
		return sent, nil
	}
	return nil, err
}

// infoField returns the value of one name=value pair in a line of them.
func infoField(info, name string) string {
	for pair := range strings.FieldsSeq(info) {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}
