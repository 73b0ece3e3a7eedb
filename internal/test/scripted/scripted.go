// Package scripted provides an in-memory server whose replies are chosen by the test.
package scripted

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

const (
	// OK is the reply OK.
	OK = "+OK\r\n"
	// Silence means that the server does not reply.
	Silence = ""
	// HangUp at the end of a reply closes the connection.
	HangUp = "\x00"
)

// Server is a scripted server. Connections are numbered from 1, including failed dials.
type Server struct {
	// Client makes a connection of the client library. It defaults to that of redigo.
	Client func(net.Conn) redis.Conn
	// Delay, if not nil, runs before each reply.
	Delay func()
	// Buffered must be set for clients that write further commands before they read replies.
	Buffered bool

	mu      sync.Mutex // guards the fields below; held while answer runs
	answer  func(conn int, args []string) string
	refusal error
	dials   []time.Time
	seen    []string
	conns   map[int]net.Conn
	newest  int
	open    int
	stalled chan struct{}
}

// Answer sets the function that returns replies.
func (s *Server) Answer(answer func(conn int, args []string) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// Replies sets the reply for each command.
func (s *Server) Replies(replies map[string]string) {
	s.Answer(func(_ int, args []string) string { return replies[args[0]] })
}

// Refuse makes Dial fail with err, or succeed again if err is nil.
func (s *Server) Refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = err
}

// Dial connects to the server.
func (s *Server) Dial(context.Context) (redis.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials = append(s.dials, time.Now())
	if s.refusal != nil {
		return nil, s.refusal
	}
	ours, theirs := net.Pipe()
	if s.conns == nil {
		s.conns = map[int]net.Conn{}
	}
	s.newest = len(s.dials)
	s.conns[s.newest] = theirs
	s.open++
	go s.serve(s.newest, theirs)
	if s.Client == nil {
		return redis.NewConn(ours, 0, 0), nil
	}
	return s.Client(ours), nil
}

// Dials returns the times of all calls to Dial.
func (s *Server) Dials() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.dials)
}

// Open returns the number of open connections.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Commands returns all received commands.
func (s *Server) Commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Say sends an unsolicited reply on a connection. Connection 0 is the newest one.
func (s *Server) Say(conn int, reply string) { write(s.conn(conn), reply) }

// Cut breaks the newest connection.
func (s *Server) Cut() { _ = s.conn(0).Close() } // never fails for a pipe

// StopReading stops reading from the newest connection until resume is called, so that the client's next write blocks.
func (s *Server) StopReading() (resume func()) {
	stalled := make(chan struct{})
	s.mu.Lock()
	s.stalled = stalled
	s.mu.Unlock()
	_ = s.conn(0).SetReadDeadline(time.Now())
	synctest.Wait()
	return sync.OnceFunc(func() { close(stalled) })
}

func (s *Server) conn(n int) net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n == 0 {
		n = s.newest
	}
	return s.conns[n]
}

func (s *Server) serve(conn int, c net.Conn) {
	defer func() {
		_ = c.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
	}()
	reply := func(text string) bool { return write(c, text) }
	if s.Buffered {
		replies := make(chan string, 1<<14)
		defer close(replies)
		go func() {
			for text := range replies {
				write(c, text)
			}
		}()
		reply = func(text string) bool {
			replies <- text
			return true
		}
	}
	for in := bufio.NewReader(stallable{s, c}); ; {
		args, err := redistest.ReadCommand(in)
		if err != nil {
			return
		}
		if s.Delay != nil {
			s.Delay()
		}
		s.mu.Lock()
		s.seen = append(s.seen, strings.Join(args, " "))
		text := s.answer(conn, args)
		s.mu.Unlock()
		if !reply(text) {
			return
		}
	}
}

func write(c net.Conn, reply string) bool {
	text, end := strings.CutSuffix(reply, HangUp)
	if text != "" {
		if _, err := io.WriteString(c, text); err != nil {
			return false
		}
	}
	if end {
		_ = c.Close()
	}
	return !end
}

type stallable struct {
	s *Server
	net.Conn
}

func (c stallable) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for errors.Is(err, os.ErrDeadlineExceeded) {
		c.s.mu.Lock()
		stalled := c.s.stalled
		c.s.mu.Unlock()
		<-stalled
		if err = c.SetReadDeadline(time.Time{}); err == nil {
			n, err = c.Conn.Read(b)
		}
	}
	return n, err
}
