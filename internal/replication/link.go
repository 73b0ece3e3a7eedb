package replication

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

// request is a call on its way.
type request struct {
	call     *transport.Call
	replicas int
	until    time.Time // when its time is over
	done     transport.Replicated
	asking   bool // the server does not own the call's slot yet: ASKING is sent before it
	sent     int  // how often, by this Batcher
	eval     bool // the server did not know the script: send its text

	reply   any   // of the exchange
	refusal error // what the server said instead
}

// endAll ends calls of which nothing else is known.
func endAll(batch []*request, err error) {
	for _, r := range batch {
		r.done(nil, 0, err)
	}
}

// endUnsent ends calls for which there is no connection. Some may have been sent on an
// earlier one.
func endUnsent(batch []*request, err error) {
	for _, r := range batch {
		class := transport.ErrNotSent
		if r.sent > 0 {
			class = transport.ErrUncertain
		}
		r.done(nil, 0, fmt.Errorf("%w: %w", class, err))
	}
}

// link is the connection. It belongs to one goroutine.
type link struct {
	conn     redis.Conn
	stop     func() bool                  // ends the watch for Close
	known    map[*transport.Script]string // the digests of scripts that the server was sent on it
	answered bool                         // the server has answered a command
	readOnly bool                         // the server has said so
}

// errFull means that the server has no room for the connection: it has run nothing.
var errFull = errors.New("the server has no room for another connection")

// notRun takes back that calls were sent on a connection, and ends them.
func notRun(batch []*request, err error) {
	for _, r := range batch {
		r.sent--
	}
	endUnsent(batch, err)
}

// newLink makes a link of conn, which ends with ctx.
func newLink(ctx context.Context, conn redis.Conn) (*link, error) {
	if _, ok := conn.(redis.ConnWithTimeout); !ok {
		if conn != nil {
			_ = conn.Close() // it is of no use
		}
		return nil, errNoTimeouts
	}
	return &link{
		conn:  conn,
		stop:  context.AfterFunc(ctx, func() { _ = conn.Close() }),
		known: map[*transport.Script]string{},
	}, nil
}

func (l *link) close() {
	l.stop()
	_ = l.conn.Close() // broken already, or of no use any more
}

// verdict is what the server said of replicas, or why it did not.
type verdict struct {
	have    int64
	refusal error
}

// exchange sends calls and a WAIT behind them. Calls that the server refuses end at
// once: a caller that knows another server need not wait here. It returns the others,
// which have not ended: after an error nothing is known of them, and the connection is
// of no use; else they were answered, or their script was not known.
func (l *link) exchange(batch []*request, command time.Duration) (left []*request, v verdict, err error) {
	if len(batch) == 0 {
		return nil, v, nil
	}
	replicas, wait := demand(batch)
	// The connection knows no other end: neither reads nor writes have a bound.
	silence := time.AfterFunc(wait+command, func() { _ = l.conn.Close() })
	defer silence.Stop()
	if err := l.write(batch, replicas, wait); err != nil {
		return batch, v, err
	}
	for i, r := range batch {
		if err := l.answer(r); err != nil {
			return append(left, batch[i:]...), v, silent(err, wait+command, silence)
		}
		if r.refusal != nil && !r.unknown() {
			r.done(nil, 0, r.refusal)
			continue
		}
		left = append(left, r)
	}
	reply, refusal, err := l.receive()
	if err != nil {
		return left, v, silent(err, wait+command, silence)
	}
	have, ok := reply.(int64)
	if !ok && refusal == nil {
		return left, v, fmt.Errorf("unexpected reply to WAIT: %T", reply)
	}
	return left, verdict{have, refusal}, nil
}

// settle ends calls that were answered, and returns those whose script the server did
// not know.
func settle(batch []*request, v verdict) (again []*request) {
	for _, r := range batch {
		switch {
		case r.refusal != nil:
			r.eval = true
			again = append(again, r)
		case v.refusal != nil:
			r.done(nil, 0, v.refusal)
		default:
			r.done(r.reply, v.have, nil)
		}
	}
	return again
}

// unproven ends those calls whose time is over, since no replica is known that has
// them, and returns the others.
func unproven(batch []*request) (again []*request) {
	now := time.Now()
	for _, r := range batch {
		if r.refusal == nil && !now.Before(r.until) {
			r.done(r.reply, 0, nil)
			continue
		}
		again = append(again, r)
	}
	return again
}

// withdraw ends the calls that were taken back, and returns the others.
func withdraw(batch []*request) []*request {
	sent := make([]*request, 0, len(batch))
	for _, r := range batch {
		switch {
		case r.call.Abandoned() && r.sent > 0: // on an earlier connection
			r.done(nil, 0, transport.ErrUncertain)
		case !r.call.Abandoned() && r.call.Claim(0):
			r.sent++
			sent = append(sent, r)
		default:
			r.done(nil, 0, transport.ErrNotSent)
		}
	}
	return sent
}

// demand returns what calls wait for: the most replicas, and the longest time. WAIT
// takes 0 for no end, so it is a millisecond at least.
func demand(batch []*request) (replicas int, wait time.Duration) {
	now := time.Now()
	for _, r := range batch {
		replicas = max(replicas, r.replicas)
		wait = max(wait, r.until.Sub(now))
	}
	return replicas, max(wait.Truncate(time.Millisecond), time.Millisecond)
}

func (l *link) write(batch []*request, replicas int, wait time.Duration) error {
	for _, r := range batch {
		if r.asking {
			if err := l.conn.Send("ASKING"); err != nil {
				return err
			}
		}
		if err := l.send(r); err != nil {
			return err
		}
	}
	if err := l.conn.Send("WAIT", replicas, wait.Milliseconds()); err != nil {
		return err
	}
	return l.conn.Flush()
}

// send writes one call. A script's text goes first on each connection, so that a new
// server does not cost a WAIT for nothing.
func (l *link) send(r *request) error {
	c := r.call
	if c.Script == nil {
		return l.conn.Send(c.Command, c.Args...)
	}
	command, script := "EVALSHA", l.known[c.Script]
	if script == "" || r.eval {
		l.known[c.Script] = c.Script.SHA()
		command, script = "EVAL", c.Script.Text()
	}
	args := make([]any, 0, 2+len(c.Args))
	return l.conn.Send(command, append(append(args, script, c.NumKeys), c.Args...)...)
}

// answer takes in what the server said to a call. If it refused ASKING, it refuses the
// call, too.
func (l *link) answer(r *request) (err error) {
	if r.asking {
		if _, _, err := l.receive(); err != nil {
			return err
		}
	}
	r.reply, r.refusal, err = l.receive()
	return err
}

// receive returns the next reply: what the server said, or how it refused.
func (l *link) receive() (reply any, refusal, err error) {
	reply, err = respconn.Receive(l.conn, 0)
	var sent redis.Error
	switch {
	case err == nil:
		l.answered = true
		return respconn.Plain(reply), nil, nil
	case !errors.As(err, &sent):
		return nil, nil, err
	}
	se := &transport.ServerError{Text: string(sent)}
	if !l.answered && se.IsFull() {
		return nil, nil, fmt.Errorf("%w: %w", errFull, sent)
	}
	l.answered = true
	l.readOnly = l.readOnly || se.HasCode("READONLY")
	return nil, se, nil
}

// silent makes the error of a connection that was given up say why.
func silent(err error, limit time.Duration, timer *time.Timer) error {
	if timer.Stop() {
		return err
	}
	return fmt.Errorf("no reply within %v", limit)
}

// unknown reports whether the server did not know the script, for the first time.
func (r *request) unknown() bool {
	var se *transport.ServerError
	return !r.eval && r.call.Script != nil && errors.As(r.refusal, &se) && strings.HasPrefix(se.Text, "NOSCRIPT")
}
