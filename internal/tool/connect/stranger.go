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
	"time"

	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

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
