package respconn

import (
	"errors"
	"net"
	"os"
	"time"
)

const (
	// aheadMin is the size of the buffer of a guarded connection.
	aheadMin = 8 << 10

	// aheadKeep is the size above which the buffer is let go when it is empty.
	aheadKeep = 64 << 10
)

// Guarded is a connection with bounds on what the server at its other end may announce.
// Make one with [Guard]. No Read returns bytes of more than one reply, so the client
// library above it holds nothing that it was not asked for.
//
// After [Guarded.Own] replies are waited for with [Guarded.Fill] and the client library is
// asked for those only that are complete. Such a wait can be given up and go on elsewhere,
// which a Read by the client library cannot. Reads and fills must not overlap, nor writes.
type Guarded struct {
	net.Conn
	deadlines net.Conn // takes deadlines of reads from any goroutine
	replies   follower
	err       error // what reading ends with, after what is in the buffer

	// buf[read:seen] was followed and not yet given on, buf[seen:end] has come behind it.
	buf             []byte
	read, seen, end int
	whole           bool // buf[:seen] ends a reply

	owned   bool
	fillBy  time.Time // the deadline of fills that is set
	socket  looker    // what is at the bottom; nil: it cannot be looked at without reading
	covered bool      // the bytes there are not those of replies
}

// Guard returns conn with bounds on what the server may announce. Once that is exceeded,
// every Read fails with an error that wraps [ErrLimit]. It must see the connection from its
// first byte.
func Guard(conn net.Conn) *Guarded {
	g := &Guarded{Conn: conn, deadlines: conn}
	if b, ok := conn.(*bounded); ok {
		g.deadlines = b.Conn
	}
	return g
}

// Read is part of net.Conn.
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
		if err := g.fill(); err != nil {
			return 0, err
		}
	}
}

// follow looks at what has come, up to the end of one reply.
func (g *Guarded) follow() {
	if g.whole || g.seen == g.end {
		return
	}
	n, err := g.replies.follow(g.buf[g.seen:g.end])
	g.seen += n
	g.whole = g.replies.whole
	if err != nil {
		g.end, g.err = g.seen, err // without the end of the line, so that it says nothing
	}
}

// fill reads once, and follows that.
func (g *Guarded) fill() error {
	if g.err != nil {
		return g.err
	}
	g.makeRoom()
	n, err := g.Conn.Read(g.buf[g.end:])
	g.end += n
	g.follow()
	switch {
	case g.err != nil && n > 0:
		return nil // after what may be let through
	case g.err != nil:
		return g.err
	case n > 0:
		return nil // an error comes again
	}
	return err
}

// makeRoom makes room for bytes behind those that have come.
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
		g.buf = append(g.buf, make([]byte, len(g.buf))...) // one reply that is larger
	}
}

// errEarly means that requests and replies are out of step.
var errEarly = errors.New("the server sent a reply that no call asked for")

// lookFor bounds the look at a connection on which something has come that may be no reply.
const lookFor = time.Millisecond

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
