package respconn

import (
	"net"
	"syscall"
)

type looker interface {
	// Look reports whether unread bytes have arrived, without waiting. An error means that
	// the connection has ended.
	Look() (some bool, err error)
}

// lookable returns the socket below conn, or nil if it cannot be peeked at, and whether TLS covers it.
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

type socket struct {
	raw  syscall.RawConn
	peek func(fd uintptr) bool // bound once, because binding it allocates
	some bool
	err  error
}

func newSocket(raw syscall.RawConn) *socket {
	s := &socket{raw: raw}
	s.peek = func(fd uintptr) bool {
		s.some, s.err = peek(fd)
		return true // don't wait
	}
	return s
}

func (s *socket) Look() (bool, error) {
	s.some, s.err = false, nil
	if err := s.raw.Read(s.peek); err != nil && Ended(err) {
		return false, err // an Interrupt says nothing about the connection
	}
	return s.some, s.err
}
