package connect

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/redisurl"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/transport"
)

// probe bounds how long a server that did not answer in time has to accept one more
// connection.
const probe = 500 * time.Millisecond

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

// isUnanswered reports whether err may say that there was no answer, and not that a connection
// failed.
func isUnanswered(err error) bool {
	if timedOut(err) {
		return true
	}
	var op *net.OpError
	var errno syscall.Errno
	call := errors.Is(err, transport.ErrUncertain) || errors.Is(err, transport.ErrNotSent)
	return call && !isBadReply(err) && !errors.As(err, &op) && !errors.As(err, &errno) && !hungUp(err)
}

// silence finds out why there was no answer, and returns the line about it; "" when no connection
// can be made.
func (s *Server) silence(err error) string {
	why := ""
	for _, one := range s.suspects(err) {
		switch place := one.placeOf(nil); one.health() {
		case unclear:
			return ""
		case closed:
			if one.of != nil {
				return fmt.Sprintf("cannot reach Redis at %s: timed out. %s", place, one.advice(err))
			}
			return ""
		case silent:
			return fmt.Sprintf("Redis at %s accepts connections, but does not answer in time: %s", place, one.frozen())
		case delaying:
			return fmt.Sprintf("Redis at %s answers PING, but delays writes: CLIENT PAUSE or FAILOVER has paused them. "+
				"They go on when the pause or the failover ends; CLIENT UNPAUSE ends a pause.", place)
		case answering:
			why = fmt.Sprintf("Redis at %s answers now, but did not answer a command in time: %s. It was paused, frozen or overloaded: "+
				"look at its load, its log and SLOWLOG.", s.placeOf(err), Reason(err))
		}
	}
	return why
}

// suspects returns the servers that an error without an address may be about.
func (s *Server) suspects(err error) []*Server {
	if at := (*redisconn.NodeError)(nil); s.IsDeployment() && errors.As(err, &at) {
		return []*Server{s.member(at.Addr)}
	}
	ctx, cancel := context.WithTimeout(context.Background(), probe)
	defer cancel()
	masters, err := s.masters(ctx)
	if err != nil {
		return []*Server{s}
	}
	return masters
}

// health is what a server does now.
type health int

const (
	unclear  health = iota // another error says more
	closed                 // it takes no connection
	silent                 // it does not answer
	delaying               // it answers, but does not run what may write
	answering
)

// delayed is how long a script that does nothing is waited for on a server that answers.
const delayed = 250 * time.Millisecond

// health asks the server. It sends PING, and EVAL of a script that does nothing: a server that
// pauses writes delays every script. The script has no key, since a node of a cluster redirects
// keys of other nodes, and a user may lack the right to a key. A server that rejects scripts
// without keys has answered.
func (s *Server) health() health {
	if !s.accepts() {
		return closed
	}
	ctx, cancel := context.WithTimeout(context.Background(), probe)
	defer cancel()
	c, err := s.dial(ctx)
	if err == nil {
		defer func() { _ = c.Close() }() // nothing was changed
		_, err = within(c, probe, "PING")
	}
	if h := healthBy(err, silent); h != answering {
		return h
	}
	_, err = within(c, delayed, "EVAL", "return 1", 0)
	return healthBy(err, delaying)
}

// healthBy returns late for a command that was not answered in time. A refusal is an answer.
func healthBy(err error, late health) health {
	_, refused := refusal(err)
	switch {
	case err == nil || refused:
		return answering
	case timedOut(err):
		return late
	}
	return unclear
}

// frozen says why a server that accepts connections may not answer.
func (s *Server) frozen() string {
	if s.at.Secure {
		return "it does not speak TLS on this port (leave TLS out, or name the port that does), or it is frozen or overloaded."
	}
	return "it is frozen or overloaded, or is no Redis. Look at its process, its load and its log."
}

// sentinel returns host:port of the first server of the address that is a Sentinel, "" when there
// is none.
func (s *Server) sentinel() string {
	_, hosts := s.places()
	for _, host := range hosts {
		one := s
		if s.IsDeployment() {
			one = s.node(host)
		}
		if one.isSentinel() {
			return host
		}
	}
	return ""
}

func (s *Server) isSentinel() bool {
	ctx, cancel := context.WithTimeout(context.Background(), probe)
	defer cancel()
	c, err := s.dial(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }() // only read from
	info, err := redis.String(within(c, probe, "INFO", "server"))
	return err == nil && strings.Contains(info, "redis_mode:sentinel")
}

// within sends a command and waits no longer than d for the reply.
func within(c redis.Conn, d time.Duration, command string, args ...any) (any, error) {
	if _, bounded := c.(redis.ConnWithTimeout); !bounded {
		return c.Do(command, args...) // that of a cluster, which has a bound of its own
	}
	return redis.DoWithTimeout(c, d, command, args...)
}

// unreadable is what redigo says of an answer that is not of Redis's protocol. Its error has no
// type that is exported.
const unreadable = "(possible server error or unsupported concurrent read by application)"

// shownAnswer is how many columns of such an answer are shown.
const shownAnswer = 60

// stranger returns the line about a program that answers, but not as Redis does, "" when err is
// about something else.
func (s *Server) stranger(err error) string {
	if !strings.Contains(err.Error(), unreadable) {
		return ""
	}
	answer := s.answer()
	what := ""
	switch {
	case len(answer) == 0:
		return fmt.Sprintf("what listens at %s is no Redis: its answer is not of Redis's protocol. %s", s, otherPort)
	case bytes.HasPrefix(answer, []byte{alertRecord, tlsMajor}):
		return fmt.Sprintf("what listens at %s speaks TLS: use --tls, or rediss:// in --redis or REDIS_URL.", s)
	case bytes.HasPrefix(answer, []byte("HTTP/")):
		what = ", as a web server does"
	case bytes.HasPrefix(answer, []byte("SSH-")):
		what = ", as an SSH server does"
	}
	return fmt.Sprintf("what listens at %s is no Redis: it answers %q%s. %s",
		s, sanitize.Truncate(string(answer), shownAnswer), what, otherPort)
}

const otherPort = "Check the host and the port in --redis or REDIS_URL."

// A TLS server refuses plain text with an alert: the first two bytes of its record.
const (
	alertRecord = 21
	tlsMajor    = 3
)

// answer asks each of the servers that the address names, and returns the first line of one that
// does not answer as Redis does, nil when there is none.
func (s *Server) answer() []byte {
	network, hosts := s.places()
	for _, host := range hosts {
		line := s.ask(network, host)
		if len(line) > 0 && !bytes.ContainsAny(line[:1], "+-$*:") {
			return line
		}
	}
	return nil
}

// ask sends PING, and returns the first line that comes back within a probe.
func (s *Server) ask(network, host string) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), probe)
	defer cancel()
	dial := (&net.Dialer{}).DialContext
	if s.at.Secure {
		cfg := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // no secret is sent: only what answers is of interest
		if s.tls != nil {
			cfg.Certificates = s.tls.Certificates
		}
		dial = (&tls.Dialer{Config: cfg}).DialContext
	}
	c, err := dial(ctx, network, host)
	if err != nil {
		return nil
	}
	defer func() { _ = c.Close() }() // nothing that matters was sent
	if err := c.SetDeadline(time.Now().Add(probe)); err != nil {
		return nil
	}
	if _, err := io.WriteString(c, "*1\r\n$4\r\nPING\r\n"); err != nil {
		return nil
	}
	text := make([]byte, 256)
	n, err := c.Read(text)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	line, _, _ := bytes.Cut(text[:n], []byte("\n"))
	return bytes.TrimRight(line, "\r")
}
