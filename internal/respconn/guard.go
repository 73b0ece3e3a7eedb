// Package respconn makes connections to Redis servers, and protects the client library above them.
// [Guard] limits the announced lengths, which the library would allocate immediately. After
// [Guarded.Own] the guard waits for replies, so that one goroutine can stop waiting and another
// continue. Connections that callers bring are not guarded.
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

// Guarded limits the lengths that the server announces. A Read never returns bytes of more than one
// reply. Calls to Read and Fill must not overlap, and neither may writes.
type Guarded struct {
	net.Conn
	deadlines net.Conn // accepts read deadlines from any goroutine
	replies   follower
	err       error // of reads, once the buffer is empty

	// buf[read:seen] was checked and can be read; buf[seen:end] follows it.
	buf             []byte
	read, seen, end int
	whole           bool // buf[:seen] ends a reply

	owned   bool
	fillBy  time.Time // the current deadline of fills
	socket  looker    // the socket; nil if it cannot be peeked at
	covered bool      // by TLS: its bytes may not be replies
}

// Guard limits the lengths that the server may announce on conn, which must be unread. Once one
// exceeds a limit, every Read fails with [ErrLimit].
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
		g.end, g.err = g.seen, err // without the end of the line
	}
}

// Fill waits for bytes and buffers them. After an error, the connection can be used unless [Ended].
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
		return nil // an error will recur
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
		g.buf = append(g.buf, make([]byte, len(g.buf))...) // for one large reply
	}
}

// errEarly means that requests and replies are out of step.
var errEarly = errors.New("the server sent an unsolicited reply")

const lookFor = time.Millisecond

// Own lets Fill wait for replies in place of the client library. All commands must have been
// answered. If the socket cannot be peeked at, Own returns false and changes nothing. If
// unsolicited replies have arrived, it returns an error.
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

// Within makes Fill time out after between d/2 and d.
func (g *Guarded) Within(d time.Duration) {
	if now := time.Now(); g.fillBy.Sub(now) < d/2 {
		g.fillBy = now.Add(d)
		_ = g.deadlines.SetReadDeadline(g.fillBy) // fails if broken, and so will Fill
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

// Resume ends an Interrupt.
func (g *Guarded) Resume() {
	g.fillBy = time.Time{}
	_ = g.deadlines.SetReadDeadline(g.fillBy)
}

// Sound returns an error if the connection has ended or unsolicited bytes have arrived. No read may
// be in progress. With TLS, where incoming bytes are not necessarily a reply, it waits up to a
// millisecond. It removes the timeout set by Within.
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

// Bounded returns conn with a timeout for each write, and without redundant deadlines, which take
// up to a tenth of the time of a command. As a result, a write times out after between 3/4 of bound
// and bound; read deadlines are exact. Neither reads nor writes may overlap.
func Bounded(conn net.Conn, bound time.Duration) net.Conn {
	return &bounded{Conn: conn, bound: bound, hasty: true}
}

type bounded struct {
	net.Conn
	bound   time.Duration
	writeBy time.Time // the current deadline of writes
	hasty   bool      // there may be a deadline for reads
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
