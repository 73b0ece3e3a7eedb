package replication

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/builtin"
	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/transport"
)

type request struct {
	call     *transport.Call
	replicas int
	until    time.Time
	done     func(any, int64, error)
	asking   bool // send ASKING first, since the server does not own the slot yet
	sent     int
	eval     bool // send the script's text, since the server did not know the script

	reply   any                    // of the latest exchange
	refusal *transport.ServerError // the server's error in the latest exchange
}

// A link is a connection. It is used by one goroutine.
type link struct {
	conn     redis.Conn
	stop     func() bool                  // unregisters the function that closes conn when the context ends
	known    map[*transport.Script]string // digests of the scripts that were sent on conn
	answered bool
	readOnly bool
}

var errFull = errors.New("the server's connection limit is reached")

func newLink(ctx context.Context, conn redis.Conn) *link {
	return &link{
		conn:  conn,
		stop:  context.AfterFunc(ctx, func() { _ = conn.Close() }),
		known: map[*transport.Script]string{},
	}
}

func (l *link) close() {
	l.stop()
	_ = l.conn.Close()
}

// verdict is the reply to WAIT, or the server's error.
type verdict struct {
	have    int64
	refusal *transport.ServerError
}

// exchange sends the calls and WAIT, and ends the calls that the server rejects. It returns the other calls, which
// were answered or whose script the server did not know. If it also returns an error, the outcome of the returned
// calls is unknown and the connection is unusable.
func (l *link) exchange(batch []*request, command time.Duration) (left []*request, v verdict, err error) {
	if len(batch) == 0 {
		return nil, v, nil
	}
	replicas, wait := demand(batch)
	// This is the only timeout, because reads and writes on conn have none.
	silence := time.AfterFunc(wait+command, func() { _ = l.conn.Close() })
	defer silence.Stop()
	if err := l.write(batch, replicas, wait); err != nil {
		return batch, v, err
	}
	for i, r := range batch {
		if err := l.answer(r); err != nil {
			return append(left, batch[i:]...), v, silent(err, wait+command, silence)
		}
		switch {
		case r.unknown():
			r.sent--
		case r.refusal != nil:
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

func notRun(batch []*request) {
	for _, r := range batch {
		r.sent--
	}
}

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

// unproven ends the calls that have timed out, reporting that no replica has them, and returns the
// others.
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

func withdraw(batch []*request, lost error) []*request {
	sent := make([]*request, 0, len(batch))
	for _, r := range batch {
		switch {
		case r.call.Abandoned() && r.sent > 0:
			r.done(nil, 0, fmt.Errorf("%w: %w", transport.ErrUncertain, lost))
		case !r.call.Abandoned() && r.call.Claim(0):
			r.sent++
			sent = append(sent, r)
		default:
			r.done(nil, 0, transport.ErrNotSent)
		}
	}
	return sent
}

// demand returns the arguments of a WAIT that satisfies all the calls: the largest number of
// replicas and the longest timeout, which is at least a millisecond because 0 means no limit.
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

// send sends a script's text the first time, because a NOSCRIPT reply would waste a WAIT.
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

// answer ignores an error reply to ASKING, because a server that rejects ASKING also rejects the call.
func (l *link) answer(r *request) (err error) {
	if r.asking {
		if _, _, err := l.receive(); err != nil {
			return err
		}
	}
	r.reply, r.refusal, err = l.receive()
	return err
}

func (l *link) receive() (reply any, refusal *transport.ServerError, err error) {
	reply, refusal, err = respconn.Receive(l.conn, 0)
	switch {
	case err != nil:
		return nil, nil, err
	case refusal != nil && !l.answered && builtin.IsFull(refusal):
		return nil, nil, fmt.Errorf("%w: %s", errFull, refusal.Text)
	}
	l.answered = true
	l.readOnly = l.readOnly || refusal != nil && transport.IsCode(refusal, "READONLY")
	return reply, refusal, nil
}

func silent(err error, limit time.Duration, timer *time.Timer) error {
	if timer.Stop() {
		return err
	}
	return fmt.Errorf("no reply within %v", limit)
}

func (r *request) unknown() bool {
	return r.refusal != nil && !r.eval && r.call.Script != nil && r.refusal.Code() == "NOSCRIPT"
}
