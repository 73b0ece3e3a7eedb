package embedded

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/gomodule/redigo/redis"
)

// Option configures [Start].
type Option func(*config)

type config struct {
	addr      string
	inProcess bool
}

// WithAddr sets the TCP address, such as "127.0.0.1:6379". The default is a free port on 127.0.0.1.
// The server does not authenticate clients.
func WithAddr(addr string) Option {
	return func(c *config) { c.addr, c.inProcess = addr, false }
}

// WithInProcess starts the server without a port, so that clients connect with Dial and DialNet.
// Use it in a testing/synctest bubble, and start and close the server and its clients inside the
// bubble. Otherwise, or with a port, the fake clock stops and the test hangs:
//
//	srv, err := embedded.Start(embedded.WithInProcess())
//	t.Cleanup(srv.Close)
//	client, err := redlatch.New(srv.Dial)
//	t.Cleanup(func() { client.Close() })
func WithInProcess() Option { return func(c *config) { c.inProcess = true } }

const maxAddr = 512

// Server is an in-process server. All methods are safe for concurrent use.
type Server struct {
	mini     *miniredis.Miniredis
	srv      *server.Server
	listener net.Listener // nil with WithInProcess
	wg       sync.WaitGroup
	lose     atomic.Int64
	failing  atomic.Pointer[string] // the reply to every command, if not nil
	running  sync.Map
	limit    int // maximum number of pending bytes per client

	mu     sync.Mutex // guards the fields below; not held during I/O
	closed bool
	conns  map[*conn]struct{}
}

// Start starts an empty server, by default on a free port on 127.0.0.1. It fails only if it cannot listen.
// Callers must Close the server.
func Start(opts ...Option) (*Server, error) {
	cfg := config{addr: "127.0.0.1:0"}
	for _, o := range opts {
		if o != nil {
			o(&cfg)
		}
	}
	if len(cfg.addr) > maxAddr {
		return nil, fmt.Errorf("embedded: address too long: %d bytes", len(cfg.addr))
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

func (s *Server) open() error {
	first, err := s.mini.Dial() // the first Dial starts miniredis
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
		// Reply like a master without replicas.
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

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		if s.serve(c) != nil {
			_ = c.Close()
		}
	}
}

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

// Addr returns the TCP address, host:port, or "" with WithInProcess.
func (s *Server) Addr() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// URL returns the address as a redis:// URL, or "" with WithInProcess.
func (s *Server) URL() string {
	if s.listener == nil {
		return ""
	}
	return (&url.URL{Scheme: "redis", Host: s.Addr()}).String()
}

// Dial connects in memory, for redlatch.New. It does not block. The error is ctx's error, or wraps
// net.ErrClosed if the server is closed.
func (s *Server) Dial(ctx context.Context) (redis.Conn, error) {
	c, err := s.DialNet(ctx, "", "")
	if err != nil {
		return nil, err
	}
	return redis.NewConn(c, 0, 0), nil
}

// DialNet is like Dial, but for other clients, such as go-redis's Dialer and redigo's DialContextFunc. It
// returns the raw connection and ignores network and address.
func (s *Server) DialNet(ctx context.Context, _, _ string) (net.Conn, error) {
	if ctx == nil {
		panic("embedded: nil Context")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	client, end := net.Pipe()
	if err := s.serve(end); err != nil {
		_ = client.Close()
		_ = end.Close()
		return nil, err
	}
	return client, nil
}

// Close closes the server and its connections, waits for its goroutines and drops the data. It may be
// called more than once.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if s.listener != nil {
		_ = s.listener.Close()
	}
	s.DropConnections()
	// All commands must have returned before miniredis is closed.
	s.mini.CtxCancel() // wakes blocking commands
	s.srv.Close()
	s.mini.Close()
	s.wg.Wait()
}

// FailWith makes every command, including SUBSCRIBE, fail with the server error err, such as "LOADING
// Redis is loading the dataset in memory", until Heal. err must start with a code and not contain line
// breaks. A running script finishes first.
func (s *Server) FailWith(err string) { s.failing.Store(&err) }

// Heal undoes FailWith and LoseReplies.
func (s *Server) Heal() {
	s.failing.Store(nil)
	s.lose.Store(0)
}

// LoseReplies runs the next n commands but closes their connections instead of replying. Commands
// pipelined after them may also run without a reply. Error replies, such as NOSCRIPT, and commands on
// subscribed connections are not affected and do not count. The commands that a client sends when it
// connects do count, so make a call first.
func (s *Server) LoseReplies(n int) { s.lose.Store(int64(n)) }

func (s *Server) takeLoss() bool {
	for {
		n := s.lose.Load()
		if n <= 0 {
			return false
		}
		if s.lose.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// DropConnections closes every connection. It does not wait: sent commands may still run, and
// subscriptions end a moment later. New connections are accepted.
func (s *Server) DropConnections() { s.drop(func(*conn) bool { return true }) }

// DropSubscribers is like DropConnections, but only for connections that have ever subscribed.
func (s *Server) DropSubscribers() { s.drop((*conn).isSubscribed) }

func (s *Server) drop(which func(*conn) bool) {
	s.mu.Lock()
	var doomed []*conn
	for c := range s.conns {
		if which(c) {
			doomed = append(doomed, c)
		}
	}
	s.mu.Unlock()
	for _, c := range doomed {
		c.drop()
	}
}

// FastForward subtracts d from the TTL of every key. The server's TIME does not change.
func (s *Server) FastForward(d time.Duration) { s.mini.FastForward(d) }

// SetTime stops the server's clock at t. If t is later than the server's current time, TTLs shrink by the
// difference. From then on, only SetTime and FastForward advance the clock. The zero time restarts the clock
// without affecting TTLs.
func (s *Server) SetTime(t time.Time) {
	if !t.IsZero() {
		s.mini.SetTime(t)
		return
	}
	// If the clock were running, the jump from the zero time would count as elapsed time.
	s.mini.ClockTTL(false)
	s.mini.SetTime(time.Time{})
	s.mini.ClockTTL(true)
}
