//go:build unix

package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// limit bounds how long the two ends wait for what is not the release itself.
const limit = 5 * time.Second

// The codes of answers that say nothing of the hold.
const (
	codeOther = -1 // it is one of another owner
	codeEnded = -2 // it was released meanwhile
)

// Server is the socket of one hold.
type Server struct {
	owner    string
	listener *net.UnixListener
	requests chan Request
	stop     chan struct{}
	done     chan struct{}
}

// Request asks for the hold to be released. It must be answered.
type Request struct{ conn net.Conn }

// Listen opens the socket of an owner's hold. Its errors are those of Path and of the system.
func Listen(owner string) (*Server, error) {
	path, err := Path(owner)
	if err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	s := &Server{owner: owner, listener: l, requests: make(chan Request), stop: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s, nil
}

// Path returns the path of the socket.
func (s *Server) Path() string { return s.listener.Addr().String() }

// Requests returns a channel of what is asked for.
func (s *Server) Requests() <-chan Request { return s.requests }

// Close removes the socket.
func (s *Server) Close() {
	close(s.stop)
	_ = s.listener.Close() // it is on no disk
	<-s.done
}

// run takes one connection after the other: each is from a program of the same user.
func (s *Server) run() {
	defer close(s.done)
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			select {
			case <-s.stop:
				return
			case <-time.After(limit / 50): // too many files are open, for a time
				continue
			}
		}
		s.read(conn)
	}
}

// read reads for whom a release is asked, and passes that on. Another owner is refused.
func (s *Server) read(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(limit)) // a socket has deadlines
	var owner string
	if json.NewDecoder(conn).Decode(&owner) != nil {
		_ = conn.Close()
		return
	}
	if owner != s.owner {
		Request{conn}.Answer(Answer{Code: codeOther})
		return
	}
	select {
	case s.requests <- Request{conn}:
	case <-s.stop:
		Request{conn}.Answer(Answer{Code: codeEnded})
	}
}

// Answer tells what became of the hold, and ends the request.
func (r Request) Answer(a Answer) {
	_ = r.conn.SetDeadline(time.Now().Add(limit))
	_ = json.NewEncoder(r.conn).Encode(a) // what asked may be gone
	_ = r.conn.Close()
}

// Ask has the process at a socket release the hold of an owner, and returns what became of it when
// the lock is freed. Its errors are ErrEnded, ErrKilled, ErrOther, that of ctx, and others of the system.
func Ask(ctx context.Context, path, owner string) (Answer, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return Answer{}, ErrEnded
	case errors.Is(err, syscall.ECONNREFUSED):
		if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
			return Answer{}, errors.New(path + " is no socket")
		}
		_ = os.Remove(path) // its process can no longer
		return Answer{}, ErrKilled
	case err != nil:
		return Answer{}, err
	}
	defer func() { _ = conn.Close() }() // nothing is buffered
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	var a Answer
	err = json.NewEncoder(conn).Encode(owner)
	if err == nil {
		var line string
		line, err = bufio.NewReader(conn).ReadString('\n')
		if err == nil {
			err = json.Unmarshal([]byte(strings.TrimSpace(line)), &a)
		}
	}
	switch {
	case ctx.Err() != nil:
		return Answer{}, ctx.Err()
	case err != nil:
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
			return Answer{}, ErrEnded // it removes its socket, and a process that is killed does not
		}
		return Answer{}, ErrKilled
	case a.Code == codeEnded:
		return Answer{}, ErrEnded
	case a.Code < 0:
		return Answer{}, ErrOther
	}
	return a, nil
}
