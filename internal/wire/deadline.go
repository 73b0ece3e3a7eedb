package wire

import (
	"net"
	"time"
)

// Lazy returns conn with deadlines that are moved no more often than it matters: the
// client library moves one with every command and every reply, and each time that
// costs as much as a tenth of a command. Bound is the time that each write is given;
// it may end a quarter earlier than was asked for. Deadlines of reads are exact.
//
// Reads must not overlap, nor writes.
func Lazy(conn net.Conn, bound time.Duration) net.Conn {
	return &lazy{Conn: conn, slack: bound / 4}
}

type lazy struct {
	net.Conn
	slack    time.Duration
	writeBy  time.Time // the deadline that is set for writes
	hasty    bool      // there is a deadline for reads
	measured bool      // hasty is known
}

// SetReadDeadline is part of net.Conn.
func (l *lazy) SetReadDeadline(t time.Time) error {
	if l.measured && !l.hasty && t.IsZero() {
		return nil
	}
	l.measured, l.hasty = true, !t.IsZero()
	return l.Conn.SetReadDeadline(t)
}

// SetWriteDeadline is part of net.Conn.
func (l *lazy) SetWriteDeadline(t time.Time) error {
	if later := t.Sub(l.writeBy); !t.IsZero() && later >= 0 && later < l.slack {
		return nil
	}
	l.writeBy = t
	return l.Conn.SetWriteDeadline(t)
}

// SetDeadline is part of net.Conn.
func (l *lazy) SetDeadline(t time.Time) error {
	l.writeBy, l.hasty, l.measured = t, !t.IsZero(), true
	return l.Conn.SetDeadline(t)
}
