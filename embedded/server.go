package embedded

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/gomodule/redigo/redis"
)

// Option changes how Start starts a server.
type Option func(*config)

type config struct {
	addr      string
	inProcess bool
}

// WithAddr sets the TCP address to listen on, such as "127.0.0.1:6379". The default is a
// free port of 127.0.0.1. A client that can reach the address can do everything.
func WithAddr(addr string) Option {
	return func(c *config) { c.addr, c.inProcess = addr, false }
}

// WithInProcess opens no port: Dial and DialNet are the only ways in.
func WithInProcess() Option { return func(c *config) { c.inProcess = true } }

// maxAddr is more than any host and port need; errors repeat the address.
const maxAddr = 512

// Server is an in-process server. All methods are safe for concurrent use.
type Server struct {
	mini     *miniredis.Miniredis
	srv      *server.Server
	listener net.Listener // nil in-process
	wg       sync.WaitGroup
	lose     atomic.Int64           // replies still to be lost
	failing  atomic.Pointer[string] // what every command is answered, nil for its own answer
	running  sync.Map               // the peers whose command runs
	limit    int                    // bytes that may wait for a client that does not read

	mu     sync.Mutex // guards what follows; never held across I/O
	closed bool
	conns  map[*conn]struct{}
}

// Start starts an empty server on a free port of 127.0.0.1, or as the options set it. The
// error is that of listening. End it with Close.
func Start(opts ...Option) (*Server, error) {
	cfg := config{addr: "127.0.0.1:0"}
	for _, o := range opts {
		if o != nil {
			o(&cfg)
		}
	}
	if len(cfg.addr) > maxAddr {
		return nil, fmt.Errorf("embedded: an address of %d bytes", len(cfg.addr))
	}
	s := &Server{mini: miniredis.NewMiniRedis(), limit: maxPending, conns: map[*conn]struct{}{}}
	s.mini.ClockTTL(true)
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	if cfg.inProcess {
		return s, nil
	}
	l, err := net.Listen("tcp", cfg.addr)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("embedded: %w", err)
	}
	s.listener = l
	s.wg.Go(s.accept)
	return s, nil
}

// open starts miniredis without a listener of its own and gives it the commands
// it lacks.
func (s *Server) open() error {
	first, err := s.mini.Dial() // this is what starts it
	if err != nil {
		return err
	}
	s.srv = s.mini.Server()
	s.srv.SetPreHook(s.guarded)
	for alias, cmd := range map[string]string{
		"SPUBLISH":     "PUBLISH",
		"SSUBSCRIBE":   "SUBSCRIBE",
		"SUNSUBSCRIBE": "UNSUBSCRIBE",
	} {
		err := s.srv.Register(alias, func(p *server.Peer, _ string, args []string) {
			s.srv.Dispatch(p, append([]string{cmd}, args...))
		})
		if err != nil {
			return err
		}
	}
	err = s.srv.Register("ROLE", func(p *server.Peer, _ string, _ []string) {
		// A master without replicas: it has none, and can have none.
		p.WriteLen(3)
		p.WriteBulk("master")
		p.WriteInt(0)
		p.WriteLen(0)
	})
	if err != nil {
		return err
	}
	return first.Close()
}

// accept serves the listener until it is closed.
func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		if s.serve(c) != nil {
			_ = c.Close() // the server is closing, and so is the listener
		}
	}
}

// serve hands the server's end of a connection to miniredis.
func (s *Server) serve(raw net.Conn) error {
	c := newConn(s, raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("embedded: server: %w", net.ErrClosed)
	}
	s.conns[c] = struct{}{}
	s.wg.Go(func() {
		c.drain()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	})
	s.srv.ServeConn(c)
	return nil
}

// Addr returns the TCP address, host:port, and "" for a server started with
// WithInProcess.
func (s *Server) Addr() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// URL returns the TCP address as a redis:// URL, and "" for a server started
// with WithInProcess.
func (s *Server) URL() string {
	if s.listener == nil {
		return ""
	}
	return (&url.URL{Scheme: "redis", Host: s.Addr()}).String()
}

// Dial connects in memory, without a port. It does not wait for anything, so
// ctx is only looked at once. The error is the context's, or wraps
// net.ErrClosed when the server is closed. Give the method itself to
// redlatch.New.
func (s *Server) Dial(ctx context.Context) (redis.Conn, error) {
	c, err := s.DialNet(ctx, "", "")
	if err != nil {
		return nil, err
	}
	return redis.NewConn(c, 0, 0), nil
}

// DialNet is Dial for other clients: it returns the bare connection, and fits
// redigo's DialContextFunc and the dialler option of go-redis. Network and
// address are ignored.
func (s *Server) DialNet(ctx context.Context, _, _ string) (net.Conn, error) {
	if ctx == nil {
		panic("embedded: nil Context")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	client, end := net.Pipe()
	if err := s.serve(end); err != nil {
		_ = client.Close() // no client has seen it
		_ = end.Close()
		return nil, err
	}
	return client, nil
}

// Close ends the server and its connections, and waits for its goroutines. The
// data is gone. It may be called more than once.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if s.listener != nil {
		_ = s.listener.Close() // only stops the accept loop
	}
	s.DropConnections()
	// The order matters: miniredis's own Close takes the server away from under
	// commands that still run, so they must have ended before.
	s.mini.CtxCancel() // wakes blocking commands
	s.srv.Close()
	s.mini.Close()
	s.wg.Wait()
}
