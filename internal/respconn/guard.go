// Package respconn makes connections to Redis servers and protects the client library that uses
// them. [Guard] limits the lengths that a server may announce, because the library would allocate
// that much memory immediately. After [Guarded.Own], the Guarded waits for replies in place of the
// library, so that one goroutine can stop waiting and another can continue. Connections that
// callers provide are not guarded.
package respconn

import (
	"errors"
	"net"
	"os"
	"time"
)

const (
	aheadMin = 8 << 10

	// aheadKeep is the buffer size above which an empty buffer is released.
	aheadKeep = 64 << 10
)

// Guarded limits the lengths that the server announces. Read never returns bytes from more than one
// reply. Calls to Read and Fill must not overlap, and writes must not overlap.
type Guarded struct {
	net.Conn
	deadlines net.Conn // accepts read deadlines from any goroutine
	replies   follower
	err       error // returned by reads once the buffer is empty

	// buf[read:seen] has been checked and can be read. buf[seen:end] has not been checked yet.
	buf             []byte
	read, seen, end int
	whole           bool // buf[:seen] ends a reply

	owned   bool
	fillBy  time.Time // current deadline for Fill
	socket  looker    // nil if the socket cannot be peeked at
	covered bool      // TLS covers the socket, so its bytes may not be replies
}

// Guard limits the lengths that the server may announce on conn, which must not have been read
// from. Once an announced length exceeds a limit, every Read fails with [ErrLimit].
func Guard(conn net.Conn) *Guarded {
	g := &Guarded{Conn: conn, deadlines: conn}
	if b, ok := conn.(*bounded); ok {
		g.deadlines = b.Conn
	}
	return g
}

// Read implements net.Conn.
func (g *Guarded) Read(p []byte) (int, error) {
	for {
		if g.read < g.seen {
			n := copy(p, g.buf[g.read:g.seen])
			if g.read += n; g.read == g.seen {
				g.whole = false
			}
			return n, nil
		}
		g.follow()
		if g.read < g.seen {
			continue
		}
		if err := g.Fill(); err != nil {
			return 0, err
		}
	}
}

func (g *Guarded) follow() {
	if g.whole || g.seen == g.end {
		return
	}
	n, err := g.replies.follow(g.buf[g.seen:g.end])
	g.seen += n
	g.whole = g.replies.whole
	if err != nil {
		g.end, g.err = g.seen, err // leave out the end of the line
	}
}

// Fill waits for bytes and buffers them. After an error, the connection can still be used unless
// [Ended] reports true.
func (g *Guarded) Fill() error {
	if g.err != nil {
		return g.err
	}
	g.makeRoom()
	n, err := g.Conn.Read(g.buf[g.end:])
	g.end += n
	g.follow()
	switch {
	case g.err != nil && n > 0:
		return nil // the bytes before the error can be read
	case g.err != nil:
		return g.err
	case n > 0:
		return nil // a read error will occur again
	}
	return err
}

func (g *Guarded) makeRoom() {
	switch {
	case g.read == g.end && (g.buf == nil || len(g.buf) > aheadKeep):
		g.buf = make([]byte, aheadMin)
		g.read, g.seen, g.end = 0, 0, 0
	case g.read == g.end:
		g.read, g.seen, g.end = 0, 0, 0
	case g.end < len(g.buf):
	case g.read > 0:
		g.end = copy(g.buf, g.buf[g.read:g.end])
		g.seen -= g.read
		g.read = 0
	default:
		g.buf = append(g.buf, make([]byte, len(g.buf))...)
	}
}

var errEarly = errors.New("the server sent an unsolicited reply")

const lookFor = time.Millisecond

// Own makes Fill wait for replies in place of the client library. All commands must have been
// answered. If the socket cannot be peeked at, Own returns false and has no effect. If unsolicited
// replies have arrived, it returns an error.
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

// SetReadDeadline implements net.Conn.
func (g *Guarded) SetReadDeadline(t time.Time) error {
	if g.owned {
		return nil // the client library reads only complete replies
	}
	return g.Conn.SetReadDeadline(t)
}

// SetDeadline implements net.Conn.
func (g *Guarded) SetDeadline(t time.Time) error {
	if g.owned {
		return g.SetWriteDeadline(t)
	}
	return g.Conn.SetDeadline(t)
}

// Whole reports whether the next reply is complete in the buffer.
func (g *Guarded) Whole() bool {
	g.follow()
	return g.whole
}

// Empty reports whether the buffer is empty.
func (g *Guarded) Empty() bool { return g.read == g.end }

// Ended reports whether an error from Fill means that the connection is unusable.
func Ended(err error) bool { return !errors.Is(err, os.ErrDeadlineExceeded) }

// Within sets a timeout for Fill of between d/2 and d.
func (g *Guarded) Within(d time.Duration) {
	if now := time.Now(); g.fillBy.Sub(now) < d/2 {
		g.fillBy = now.Add(d)
		_ = g.deadlines.SetReadDeadline(g.fillBy) // if this fails, so will Fill
	}
}

// Unbound removes the timeout of Fill.
func (g *Guarded) Unbound() {
	if !g.fillBy.IsZero() {
		g.fillBy = time.Time{}
		_ = g.deadlines.SetReadDeadline(g.fillBy)
	}
}

// Interrupt makes Fill time out until [Guarded.Resume]. It may be called concurrently with Fill.
func (g *Guarded) Interrupt() { _ = g.deadlines.SetReadDeadline(time.Unix(1, 0)) }

// Resume ends the effect of Interrupt.
func (g *Guarded) Resume() {
	g.fillBy = time.Time{}
	_ = g.deadlines.SetReadDeadline(g.fillBy)
}

// Sound returns an error if the connection has ended or unsolicited bytes have arrived. No read may
// be in progress. With TLS, the bytes that have arrived are not necessarily a reply, so Sound waits
// up to a millisecond for one. It then removes the timeout set by Within.
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
	switch err := g.Fill(); {
	case err == nil:
		return errEarly
	case Ended(err):
		return err
	}
	return nil
}

// Bounded returns a connection over conn that has a timeout for each write. It leaves out redundant
// calls that set deadlines, because they would take up to a tenth of a command's time. As a result,
// the timeout for a write is between 3/4 of bound and bound. Read deadlines are exact. Reads must
// not overlap, and neither must writes.
func Bounded(conn net.Conn, bound time.Duration) net.Conn {
	return &bounded{Conn: conn, bound: bound, hasty: true}
}

type bounded struct {
	net.Conn
	bound   time.Duration
	writeBy time.Time // current write deadline
	hasty   bool      // a read deadline may be set
}

func (b *bounded) Write(p []byte) (int, error) {
	if now := time.Now(); b.writeBy.Sub(now) < b.bound-b.bound/4 {
		b.writeBy = now.Add(b.bound)
		if err := b.SetWriteDeadline(b.writeBy); err != nil {
			return 0, err
		}
	}
	return b.Conn.Write(p)
}

func (b *bounded) SetReadDeadline(t time.Time) error {
	if t.IsZero() && !b.hasty {
		return nil
	}
	b.hasty = !t.IsZero()
	return b.Conn.SetReadDeadline(t)
}
