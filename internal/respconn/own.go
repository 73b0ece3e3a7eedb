package respconn

import (
	"errors"
	"net"
	"os"
	"time"

	"github.com/gomodule/redigo/redis"
)

// errEarly means that requests and replies are out of step.
var errEarly = errors.New("the server sent a reply that no call asked for")

// lookFor bounds the look at a connection on which something has come that may be no reply.
const lookFor = time.Millisecond

// NewConn returns conn as a connection of the client library, ready to use, with a bound on
// each write. [Below] finds what is below it.
func NewConn(conn net.Conn, write time.Duration) redis.Conn {
	g, ok := conn.(*Guarded)
	if !ok {
		g = Guard(conn)
	}
	if _, ok := g.Conn.(*bounded); !ok && write > 0 {
		g.Conn = Bounded(g.Conn, write)
	}
	return On(redis.NewConn(g, 0, 0), g)
}

// On returns conn, which was made over g.
func On(conn redis.Conn, g *Guarded) redis.Conn {
	timed, ok := conn.(redis.ConnWithTimeout)
	if !ok || g == nil {
		return conn
	}
	return &overGuarded{timed, g}
}

// overGuarded is a connection of the client library, and what is below it.
type overGuarded struct {
	redis.ConnWithTimeout
	below *Guarded
}

// Below returns the guarded connection below conn, nil when there is none. It looks into
// connections that say what they wrap with a method Unwrap.
func Below(conn redis.Conn) *Guarded {
	for {
		switch c := conn.(type) {
		case *overGuarded:
			return c.below
		case interface{ Unwrap() redis.Conn }:
			conn = c.Unwrap()
		default:
			return nil
		}
	}
}

// Own begins the waiting with [Guarded.Fill], on a connection on which each command so far
// was answered. It returns false, and changes nothing, when the connection cannot be looked
// at without reading; and an error when there are replies that no call asked for.
func (g *Guarded) Own() (bool, error) {
	if g.end > g.read {
		return false, errEarly
	}
	if g.socket, g.covered = lookable(g.Conn); g.socket == nil {
		return false, nil
	}
	g.owned = true
	return true, g.deadlines.SetReadDeadline(time.Time{})
}

// SetReadDeadline is part of net.Conn.
func (g *Guarded) SetReadDeadline(t time.Time) error {
	if g.owned {
		return nil // the client library reads only what has come
	}
	return g.Conn.SetReadDeadline(t)
}

// SetDeadline is part of net.Conn.
func (g *Guarded) SetDeadline(t time.Time) error {
	if g.owned {
		return g.SetWriteDeadline(t)
	}
	return g.Conn.SetDeadline(t)
}

// Whole reports whether the next reply is complete.
func (g *Guarded) Whole() bool {
	g.follow()
	return g.whole
}

// Empty reports whether nothing has come that was not read.
func (g *Guarded) Empty() bool { return g.read == g.end }

// Fill waits for bytes and takes them in. An error for which [Ended] is false leaves the
// connection as it was.
func (g *Guarded) Fill() error { return g.fill() }

// Ended reports whether an error of Fill means that the connection is of no use any more.
func Ended(err error) bool { return !errors.Is(err, os.ErrDeadlineExceeded) }

// Within bounds Fill by a time between half of d and d.
func (g *Guarded) Within(d time.Duration) {
	if now := time.Now(); g.fillBy.Sub(now) < d/2 {
		g.fillBy = now.Add(d)
		_ = g.deadlines.SetReadDeadline(g.fillBy) // of a broken connection, whose Fill fails
	}
}

// Unbound takes the bound from Fill.
func (g *Guarded) Unbound() {
	if !g.fillBy.IsZero() {
		g.fillBy = time.Time{}
		_ = g.deadlines.SetReadDeadline(g.fillBy)
	}
}

// Interrupt ends a Fill that is under way, and the next ones until [Guarded.Resume]. It may
// be called while another goroutine fills.
func (g *Guarded) Interrupt() { _ = g.deadlines.SetReadDeadline(time.Unix(1, 0)) }

// Resume ends what Interrupt began.
func (g *Guarded) Resume() {
	g.fillBy = time.Time{}
	_ = g.deadlines.SetReadDeadline(g.fillBy)
}

// Sound returns an error when the connection has ended, or when something has come, which
// no call has asked for. Nothing is being read. It waits for a millisecond at most, and that
// only on a connection with TLS, on which what comes need not be a reply. Within has to be
// called again after it.
func (g *Guarded) Sound() error {
	some, err := g.socket.Look()
	switch {
	case err != nil:
		return err
	case !some:
		return nil
	case !g.covered:
		return errEarly
	}
	g.fillBy = time.Time{}
	if err := g.deadlines.SetReadDeadline(time.Now().Add(lookFor)); err != nil {
		return err
	}
	switch err := g.fill(); {
	case err == nil:
		return errEarly
	case Ended(err):
		return err
	}
	return nil
}
