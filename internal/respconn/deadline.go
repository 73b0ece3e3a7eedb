package respconn

import (
	"net"
	"time"
)

// Bounded returns conn with a bound on each write, and with deadlines that are set no
// more often than it matters: the client library sets one for every command and every
// reply, which costs as much as a tenth of the command. So it is not given a bound for
// writes, and a write may end when three quarters of bound are over. Deadlines of reads
// are exact.
//
// Reads must not overlap, nor writes.
func Bounded(conn net.Conn, bound time.Duration) net.Conn {
	return &bounded{Conn: conn, bound: bound, hasty: true}
}

type bounded struct {
	net.Conn
	bound   time.Duration
	writeBy time.Time // the deadline that is set for writes
	hasty   bool      // there is a deadline for reads, or may be
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
