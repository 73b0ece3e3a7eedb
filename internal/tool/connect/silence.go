package connect

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redlatch/redlatch/internal/redisurl"
)

// probe bounds how long a server that did not answer in time has to accept one more
// connection.
const probe = 500 * time.Millisecond

// timedOut reports whether err says that something took too long.
func timedOut(err error) bool {
	var timed net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timed) && timed.Timeout()
}

// places returns the network, and host:port of the servers that the address names, or the path of
// a unix socket.
func (s *Server) places() (network string, hosts []string) {
	if s.at.Kind == redisurl.Socket {
		return "unix", []string{s.at.Path}
	}
	return "tcp", s.at.Hosts
}

// accepts reports whether a connection can be made now, to the server or to one of those
// that the address names. It sends nothing.
func (s *Server) accepts() bool {
	network, hosts := s.places()
	for _, host := range hosts {
		if c, err := net.DialTimeout(network, host, probe); err == nil {
			_ = c.Close() // nothing was sent
			return true
		}
	}
	return false
}

// silence says why a server that accepts connections may not answer.
func (s *Server) silence() string {
	if s.at.Secure {
		return "it does not speak TLS on this port (leave TLS out, or name the port that does), or it is frozen or overloaded."
	}
	return "it is frozen or overloaded, or is no Redis. Look at its process, its load and its log."
}
