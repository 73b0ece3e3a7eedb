package badinput_test

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeServer is a server on a real socket that answers as Redis does, but for one command.
type fakeServer struct {
	command string // in upper case; "" for none
	answer  []byte

	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex // guards what follows
	conns  map[net.Conn]struct{}
	closed bool
}

// startFakeServer starts a server that answers command with answer. It ends with the test.
func startFakeServer(t *testing.T, command, answer string) *fakeServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &fakeServer{command: command, answer: []byte(answer), listener: l, conns: map[net.Conn]struct{}{}}
	s.wg.Go(s.accept)
	t.Cleanup(s.close)
	return s
}

func (s *fakeServer) url() string { return "redis://" + s.listener.Addr().String() }

func (s *fakeServer) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.closed {
			_ = c.Close()
		}
		s.conns[c] = struct{}{}
		s.mu.Unlock()
		s.wg.Go(func() { s.serve(c) })
	}
}

func (s *fakeServer) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func (s *fakeServer) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	for {
		args, err := readCommand(in)
		if err != nil {
			return
		}
		_ = c.SetWriteDeadline(time.Now().Add(5 * time.Second)) // a client that left reads nothing
		if _, err = c.Write(s.reply(args)); err != nil {
			return
		}
	}
}

func (s *fakeServer) reply(args []string) []byte {
	if strings.ToUpper(args[0]) == s.command {
		return s.answer
	}
	return []byte(proto(args))
}

// proto is what Redis answers.
func proto(args []string) string {
	command := strings.ToUpper(args[0])
	switch {
	case command == "PING":
		return "+PONG\r\n"
	case command == "CLIENT" && len(args) > 1 && args[1] == "ID":
		return ":7\r\n"
	case command == "CLIENT":
		return "$-1\r\n"
	case command == "SUBSCRIBE" || command == "UNSUBSCRIBE":
		var b strings.Builder
		for _, name := range args[1:] {
			b.WriteString("*3\r\n" + bulk(strings.ToLower(command)) + bulk(name) + ":1\r\n")
		}
		return b.String()
	}
	return ":0\r\n"
}

func bulk(text string) string { return "$" + strconv.Itoa(len(text)) + "\r\n" + text + "\r\n" }

// readCommand reads one array of strings.
func readCommand(in *bufio.Reader) ([]string, error) {
	n, err := readNumber(in)
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := readNumber(in)
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, err
		}
		args[i] = string(text[:size])
	}
	return args, nil
}

func readNumber(in *bufio.Reader) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
