package host

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	startTimeout  = 10 * time.Second
	startAttempts = 10
)

// Server is a redis-server on a free loopback port, without persistence. It is for
// one goroutine.
type Server struct {
	cmd  *exec.Cmd
	dir  string
	addr string
	conn redis.Conn
}

// StartServer starts a server with l on these processors, the program being the one
// that REDLATCH_SERVER names, else redis-server, else valkey-server.
func StartServer(l *Launcher, cpus []int) (*Server, error) { return startServer(l, cpus) }

// startServer starts a server with more settings than all have.
func startServer(l *Launcher, cpus []int, more ...string) (*Server, error) {
	program, err := serverProgram()
	if err != nil {
		return nil, err
	}
	for range startAttempts {
		var s *Server
		if s, err = launch(l, program, cpus, more); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("start %s: %w", program, err)
}

func serverProgram() (string, error) {
	if named := os.Getenv("REDLATCH_SERVER"); named != "" {
		return exec.LookPath(named)
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no redis-server here; run `make setup`, or set REDLATCH_SERVER to the path of one")
}

func launch(l *Launcher, program string, cpus []int, more []string) (*Server, error) {
	dir, err := os.MkdirTemp("", "redlatch-bench-")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args := append([]string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--maxclients", "20000",
		"--logfile", "server.log",
	}, more...)
	cmd := exec.Command(program, args...) //nolint:gosec // a program of the user's choice
	s := &Server{cmd: cmd, dir: dir, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	if err := l.Start(cmd, cpus); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	if err := s.awaitPong(); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("a TCP listener without a TCP address")
	}
	return addr.Port, l.Close()
}

// awaitPong waits until the server answers as the process that was started.
func (s *Server) awaitPong() error {
	var err error
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if s.conn, err = redis.Dial("tcp", s.addr); err != nil {
			continue
		}
		var info Info
		if info, err = s.Info(); err == nil && info.pid == s.cmd.Process.Pid {
			return nil
		}
		_ = s.conn.Close()
	}
	return fmt.Errorf("no answer within %v: %w", startTimeout, err)
}

// Addr returns the server's address, host:port.
func (s *Server) Addr() string { return s.addr }

// Do runs one command on the server's own connection.
func (s *Server) Do(cmd string, args ...any) (any, error) { return s.conn.Do(cmd, args...) }

// Clear empties the server, scripts included, so that every measurement begins
// alike.
func (s *Server) Clear() error {
	for _, cmd := range [][]any{{"FLUSHALL"}, {"SCRIPT", "FLUSH"}} {
		if _, err := s.conn.Do(fmt.Sprint(cmd[0]), cmd[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends the server and removes its folder.
func (s *Server) Stop() {
	if s.conn != nil {
		_ = s.conn.Close()
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}
