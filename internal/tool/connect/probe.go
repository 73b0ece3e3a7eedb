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

const probe = 500 * time.Millisecond

func timedOut(err error) bool {
	var timed net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timed) && timed.Timeout()
}

func (s *Server) places() (network string, hosts []string) {
	if s.at.Kind == redisurl.Socket {
		return "unix", []string{s.at.Path}
	}
	return "tcp", s.at.Hosts
}

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

func isUnanswered(err error) bool {
	if timedOut(err) {
		return true
	}
	var op *net.OpError
	var errno syscall.Errno
	call := errors.Is(err, transport.ErrUncertain) || errors.Is(err, transport.ErrNotSent)
	return call && !isBadReply(err) && !errors.As(err, &op) && !errors.As(err, &errno) && !hungUp(err)
}

// silence explains a missing reply, or returns "" if another error explains more.
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
				"They resume when the pause or failover ends; CLIENT UNPAUSE ends a pause.", place)
		case answering:
			why = fmt.Sprintf("Redis at %s answers again, but a command timed out: %s. It was paused, frozen or overloaded: "+
				"check its load, its log and SLOWLOG.", s.placeOf(err), Reason(err))
		}
	}
	return why
}

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

type health int

const (
	unclear  health = iota // another error explains more
	closed                 // does not accept connections
	silent                 // does not reply
	delaying               // replies, but does not run writes
	answering
)

const delayed = 250 * time.Millisecond

// health sends PING and an empty script, because a server with paused writes delays all scripts. The script has no
// key, which a cluster might redirect.
func (s *Server) health() health {
	if !s.accepts() {
		return closed
	}
	ctx, cancel := context.WithTimeout(context.Background(), probe)
	defer cancel()
	c, err := s.dial(ctx)
	if err == nil {
		defer func() { _ = c.Close() }()
		_, err = within(c, probe, "PING")
	}
	if h := healthBy(err, silent); h != answering {
		return h
	}
	_, err = within(c, delayed, "EVAL", "return 1", 0)
	return healthBy(err, delaying)
}

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

func (s *Server) frozen() string {
	if s.at.Secure {
		return "this port does not use TLS (turn TLS off, or use the TLS port), or the server is frozen or overloaded."
	}
	return "it is frozen or overloaded, or is not Redis. Check its process, its load and its log."
}

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
	defer func() { _ = c.Close() }()
	info, err := redis.String(within(c, probe, "INFO", "server"))
	return err == nil && strings.Contains(info, "redis_mode:sentinel")
}

func within(c redis.Conn, d time.Duration, command string, args ...any) (any, error) {
	if _, bounded := c.(redis.ConnWithTimeout); !bounded {
		return c.Do(command, args...) // a connection to a cluster has its own limit
	}
	return redis.DoWithTimeout(c, d, command, args...)
}

// unreadable is redigo's text for a reply that does not follow the protocol.
const unreadable = "(possible server error or unsupported concurrent read by application)"

const shownAnswer = 60

// stranger describes a server that does not reply like Redis, or returns "" for other errors.
func (s *Server) stranger(err error) string {
	if !strings.Contains(err.Error(), unreadable) {
		return ""
	}
	answer := s.answer()
	what := ""
	switch {
	case len(answer) == 0:
		return fmt.Sprintf("the server at %s is not Redis: its reply does not follow the Redis protocol. %s", s, otherPort)
	case bytes.HasPrefix(answer, []byte{alertRecord, tlsMajor}):
		return fmt.Sprintf("the server at %s requires TLS: use rediss:// in --redis or REDIS_URL.", s)
	case bytes.HasPrefix(answer, []byte("HTTP/")):
		what = ", like a web server"
	case bytes.HasPrefix(answer, []byte("SSH-")):
		what = ", like an SSH server"
	}
	return fmt.Sprintf("the server at %s is not Redis: it replied %q%s. %s",
		s, sanitize.Truncate(string(answer), shownAnswer), what, otherPort)
}

const otherPort = "Check the host and the port in --redis or REDIS_URL."

// A TLS server rejects plain text with an alert record that begins with these bytes.
const (
	alertRecord = 21
	tlsMajor    = 3
)

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

func (s *Server) ask(network, host string) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), probe)
	defer cancel()
	dial := (&net.Dialer{}).DialContext
	if s.at.Secure {
		cfg := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // no secret is sent, and only the reply matters
		if s.tls != nil {
			cfg.Certificates = s.tls.Certificates
		}
		dial = (&tls.Dialer{Config: cfg}).DialContext
	}
	c, err := dial(ctx, network, host)
	if err != nil {
		return nil
	}
	defer func() { _ = c.Close() }()
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
