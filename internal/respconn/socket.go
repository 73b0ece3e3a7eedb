package respconn

import (
	"net"
	"syscall"
)

// looker is what can be looked at without reading.
type looker interface {
	// Look reports whether something has come that was not read. An error says that the
	// connection has ended. It does not wait.
	Look() (some bool, err error)
}

// lookable returns what is at the bottom of conn, nil if that cannot be looked at, and
// whether it is covered by TLS.
func lookable(conn net.Conn) (at looker, covered bool) {
	for {
		switch c := conn.(type) {
		case looker:
			return c, covered
		case *bounded:
			conn = c.Conn
		case interface{ NetConn() net.Conn }:
			conn, covered = c.NetConn(), true
		case syscall.Conn:
			raw, err := c.SyscallConn()
			if err != nil || !canPeek {
				return nil, false
			}
			return newSocket(raw), covered
		default:
			return nil, false
		}
	}
}

// socket is one of the operating system's.
type socket struct {
	raw  syscall.RawConn
	peek func(fd uintptr) bool // bound once: a function value costs an allocation
	some bool
	err  error
}

func newSocket(raw syscall.RawConn) *socket {
	s := &socket{raw: raw}
	s.peek = func(fd uintptr) bool {
		s.some, s.err = peek(fd)
		return true // whatever has come: it does not wait
	}
	return s
}

// Look is part of looker.
func (s *socket) Look() (bool, error) {
	s.some, s.err = false, nil
	if err := s.raw.Read(s.peek); err != nil && Ended(err) {
		return false, err // an Interrupt says nothing of the connection
	}
	return s.some, s.err
}
