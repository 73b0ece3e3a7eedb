package redistest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"
)

const (
	startTimeout  = 10 * time.Second
	ioTimeout     = 10 * time.Second
	startAttempts = 10
)

var errExited = errors.New("the server ended while starting")

// Server is a redis-server or valkey-server process. Its methods are safe for concurrent use, except Shutdown
// and Restart.
type Server struct {
	tb    testing.TB // nil for the shared server
	cfg   config
	dir   string
	port  int
	claim io.Closer // reserves the port; nil if another server in this process has reserved it
	pool  *redis.Pool

	mu   sync.Mutex // guards the fields below; never held across I/O
	proc *process
	info serverInfo
}

// Start starts an empty server that runs until the test ends, and waits until it responds. With -short, it skips the
// test if the program is not installed.
func Start(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	s, err := start(resolve(tb, opts))
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	s.tb = tb
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("redistest: last words of the server on %s:\n%s", s.Addr(), s.logTail())
		}
		s.discard()
	})
	return s
}

func resolve(tb testing.TB, opts []Option) config {
	tb.Helper()
	cfg := newConfig(opts)
	if err := cfg.findBinary(); err != nil {
		if testing.Testing() && testing.Short() {
			tb.Skipf("redistest: %v", err)
		}
		tb.Fatalf("redistest: %v", err)
	}
	return cfg
}

func start(cfg config) (*Server, error) {
	// The path of tb.TempDir is too long for the address of a Unix socket.
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, dir: dir}
	s.pool = &redis.Pool{MaxIdle: 1, DialContext: s.dialOwn, TestOnBorrow: ping}
	for range startAttempts {
		s.port = FreePort()
		if s.claim, err = claimPort(s.port); err != nil {
			continue
		}
		if err = s.launch(); err == nil {
			return s, nil
		}
		s.release()
		if !errors.Is(err, errExited) {
			break
		}
	}
	err = fmt.Errorf("start %s: %w\n%s", cfg.binary, err, s.logTail())
	s.discard()
	return nil, err
}

func (s *Server) launch() error {
	args := s.commandLine()
	if s.cfg.sentinel != "" {
		var err error
		if args, err = s.sentinelLine(); err != nil {
			return err
		}
	}
	p, err := spawn(s.cfg.binary, args, s.logPath(), s.cfg.cpus)
	if err != nil {
		return err
	}
	info, err := s.awaitPong(p)
	if err != nil {
		p.kill()
		return err
	}
	s.mu.Lock()
	s.proc, s.info = p, info
	s.mu.Unlock()
	return nil
}

func (s *Server) commandLine() []string {
	args := []string{
		"--bind", "127.0.0.1",
		"--port", strconv.Itoa(s.port),
		"--dir", s.dir,
		"--save", "",
		"--appendonly", "no",
		"--daemonize", "no",
	}
	if s.cfg.unixSocket {
		args = append(args, "--unixsocket", s.Socket(), "--unixsocketperm", "700")
	}
	if s.cfg.password != "" {
		args = append(args, "--requirepass", s.cfg.password)
	}
	return append(args, s.cfg.args...)
}

// awaitPong waits until the server replies with the PID of p. Another process may be using the port.
func (s *Server) awaitPong(p *process) (serverInfo, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		info, err := s.askInfo(ctx)
		if err == nil && info.pid == p.pid() {
			return info, nil
		}
		select {
		case <-p.done:
			return serverInfo{}, errExited
		case <-ctx.Done():
			return serverInfo{}, fmt.Errorf("no reply within %v: %w", startTimeout, err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Addr returns the server's TCP address, host:port.
func (s *Server) Addr() string { return loopback(s.port) }

// URL returns the server's URL, including its password.
func (s *Server) URL() string { return redisURL(s.Addr(), s.cfg.password) }

// Socket returns the path of the Unix socket, or "" without WithUnixSocket.
func (s *Server) Socket() string {
	if !s.cfg.unixSocket {
		return ""
	}
	return filepath.Join(s.dir, "redis.sock")
}

// Pause stops the server with SIGSTOP. The kernel still buffers the bytes that are sent to it.
func (s *Server) Pause() { s.mustSignal("pause", (*process).pause) }

// Resume continues a stopped server with SIGCONT.
func (s *Server) Resume() { s.mustSignal("resume", (*process).resume) }

func (s *Server) mustSignal(verb string, f func(*process) error) {
	tb := s.owner()
	tb.Helper()
	if err := f(s.process()); err != nil {
		tb.Fatalf("redistest: %s the server: %v", verb, err)
	}
}

// Kill kills the server with SIGKILL and waits until it has exited. The data is lost unless WithAppendOnly is used.
// Kill is idempotent.
func (s *Server) Kill() {
	s.owner().Helper()
	s.process().kill()
}

// Shutdown sends SHUTDOWN NOSAVE and waits until the server has exited.
func (s *Server) Shutdown() {
	tb := s.owner()
	tb.Helper()
	p := s.process()
	c, err := s.dialOwn(context.Background())
	if err != nil {
		tb.Fatalf("redistest: shut the server down: %v", err)
	}
	// SHUTDOWN closes the connection instead of replying, so the result is ignored.
	_, _ = c.Do("SHUTDOWN", "NOSAVE")
	_ = c.Close()
	select {
	case <-p.done:
	case <-time.After(ioTimeout):
		tb.Fatalf("redistest: the server is still there %v after SHUTDOWN", ioTimeout)
	}
}

// Restart kills the server if it is running, and starts a new one on the same port. The new server is empty unless
// WithAppendOnly is used.
func (s *Server) Restart() {
	tb := s.owner()
	tb.Helper()
	s.Kill()
	var err error
	for range startAttempts {
		if err = s.launch(); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	tb.Fatalf("redistest: restart the server: %v\n%s", err, s.logTail())
}

func (s *Server) owner() testing.TB {
	if s.tb == nil {
		panic("redistest: the shared server is not one test's to stop: use Start")
	}
	return s.tb
}

func (s *Server) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

func (s *Server) discard() {
	if p := s.process(); p != nil {
		p.kill()
	}
	_ = s.pool.Close()
	_ = os.RemoveAll(s.dir)
	s.release()
}

func (s *Server) release() {
	if s.claim != nil {
		_ = s.claim.Close()
		s.claim = nil
	}
}

type process struct {
	cmd     *exec.Cmd
	started chan error
	done    chan struct{}
}

func spawn(binary string, args []string, logPath string, cpus []int) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()

	cmd := exec.Command(binary, args...) //nolint:gosec // the tester's own choice of server
	// For any writer other than a file, exec would start a goroutine per process.
	cmd.Stdout, cmd.Stderr = log, log
	p := &process{cmd: cmd, started: make(chan error, 1), done: make(chan struct{})}
	go p.run(cpus)
	if err := <-p.started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) run(cpus []int) {
	defer close(p.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := StartOn(p.cmd, cpus)
	p.started <- err
	if err != nil {
		return
	}
	_ = p.cmd.Wait()
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

var shared struct {
	managed atomic.Bool
	once    sync.Once
	server  *Server
	err     error
}

// Shared returns the server that all tests in this test binary share. They must use names from Key, and must not pause,
// kill, restart or flush the server. TestMain must call Main.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	if !shared.managed.Load() {
		tb.Fatal("redistest: Shared needs func TestMain(m *testing.M) { redistest.Main(m) }")
	}
	cfg := resolve(tb, nil)
	shared.once.Do(func() {
		shared.server, shared.err = start(cfg)
	})
	if shared.err != nil {
		tb.Fatalf("redistest: shared server: %v", shared.err)
	}
	return shared.server
}

// Main runs a package's tests, stops the shared server, checks for leaked goroutines and exits.
func Main(m *testing.M, opts ...goleak.Option) {
	shared.managed.Store(true)
	code := m.Run()
	// Do waits if the server is being started, and prevents it from being started later.
	shared.once.Do(func() {})
	if s := shared.server; s != nil {
		s.discard()
	}
	if code == 0 {
		if err := goleak.Find(opts...); err != nil {
			fmt.Fprintf(os.Stderr, "redistest: goroutines left behind:\n%v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}
