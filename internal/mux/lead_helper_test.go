package mux_test

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

type waiter struct {
	started func() // if nil, nothing
	left    func() bool
}

func (w waiter) Started() {
	if w.started != nil {
		w.started()
	}
}

func (w waiter) Waits() bool { return w.left == nil || !w.left() }

// lead runs a call with Lead and returns a channel for its outcome. The channel has room for an
// erroneous second outcome.
func lead(ctx context.Context, m *mux.Mux, c *transport.Call) <-chan outcome {
	came := make(chan outcome, 2)
	m.Lead(ctx, c, func(reply any, err error) { came <- outcome{reply, err} }, waiter{})
	return came
}

// seen is a connection in memory that can be peeked at.
type seen struct {
	net.Conn // the other end of it is pumped into text

	mu       sync.Mutex // guards the fields below
	text     []byte
	err      error
	deadline time.Time
	news     chan struct{} // closed and replaced when any of these changes
}

func newSeen(conn net.Conn) *seen {
	s := &seen{Conn: conn, news: make(chan struct{})}
	go s.pump()
	return s
}

func (s *seen) pump() {
	buf := make([]byte, 4096)
	for {
		n, err := s.Conn.Read(buf)
		s.mu.Lock()
		s.text = append(s.text, buf[:n]...)
		s.err = err
		s.tell()
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *seen) tell() {
	close(s.news)
	s.news = make(chan struct{})
}

func (s *seen) Read(p []byte) (int, error) {
	for {
		n, wait, err := s.take(p)
		if n > 0 || err != nil {
			return n, err
		}
		wait()
	}
}

// take returns bytes that have been received, or a function that waits for more.
func (s *seen) take(p []byte) (n int, wait func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.deadline.IsZero() && !time.Now().Before(s.deadline) {
		return 0, nil, os.ErrDeadlineExceeded
	}
	if len(s.text) > 0 {
		n = copy(p, s.text)
		s.text = s.text[n:]
		return n, nil, nil
	}
	news, due := s.news, (<-chan time.Time)(nil)
	if !s.deadline.IsZero() {
		due = time.After(time.Until(s.deadline))
	}
	wait = func() {
		select {
		case <-news:
		case <-due:
		}
	}
	return 0, wait, s.err
}

func (s *seen) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	s.tell()
	return nil
}

func (s *seen) Look() (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.text) == 0 && s.err != nil {
		return false, io.EOF
	}
	return len(s.text) > 0, nil
}

// ledBy returns a Mux connected to p whose next caller reads its own reply.
func ledBy(t *testing.T, p *peer) *mux.Mux {
	t.Helper()
	p.led = true
	m := open(t, p.config())
	settle(t, m)
	return m
}

// settle makes calls that don't overlap until the next caller reads its own reply.
func settle(t *testing.T, m *mux.Mux) {
	t.Helper()
	for range 12 {
		require.NoError(t, await(t, lead(t.Context(), m, command("ECHO", "settle"))).err)
		synctest.Wait()
	}
}

// leading is a caller on another goroutine.
type leading struct {
	came <-chan outcome
	back chan struct{} // closed when Lead has returned
}

// begin leads a call on another goroutine. It returns when the caller reads or Lead has returned.
func begin(ctx context.Context, m *mux.Mux, c *transport.Call) *leading {
	came := make(chan outcome, 2)
	l := &leading{came: came, back: make(chan struct{})}
	go func() {
		defer close(l.back)
		m.Lead(ctx, c, func(reply any, err error) { came <- outcome{reply, err} }, waiter{})
	}()
	synctest.Wait()
	return l
}

// reads reports whether Lead is still waiting.
func (l *leading) reads() bool {
	select {
	case <-l.back:
		return false
	default:
		return true
	}
}
