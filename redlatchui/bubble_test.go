package redlatchui_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
)

// server is an embedded server that counts the commands of clients, and can stall.
type server struct {
	*redistest.MiniServer
	stalls atomic.Bool
	mu     sync.Mutex
	sent   []byte // since the last call to count
	// failsAt makes all commands fail from that PUBSUB on, counting from 1.
	failsAt int
}

// counted is a client's connection to a server.
type counted struct {
	net.Conn
	to *server
}

func (c counted) Write(p []byte) (int, error) {
	c.to.mu.Lock()
	c.to.sent = append(c.to.sent, p...)
	if bytes.Contains(p, []byte("\r\nPUBSUB\r\n")) {
		if c.to.failsAt--; c.to.failsAt == 0 {
			c.to.FailWith("ERR out of order")
		}
	}
	c.to.mu.Unlock()
	if c.to.stalls.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (s *server) dial(ctx context.Context) (redis.Conn, error) {
	c, err := s.DialNet(ctx, "", "")
	return redis.NewConn(counted{c, s}, 0, 0), err
}

// count returns the number of times that clients have sent a command since the last call.
func (s *server) count(command string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := bytes.Count(s.sent, []byte("\r\n"+command+"\r\n"))
	s.sent = nil
	return n
}

func start(t *testing.T) *server {
	t.Helper()
	return &server{MiniServer: redistest.Mini(t, embedded.WithInProcess())}
}

func clientOf(t *testing.T, s redistest.Target, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	dial := func(ctx context.Context) (redis.Conn, error) { return redis.DialContext(ctx, "tcp", s.Addr()) }
	if mini, is := s.(*server); is {
		dial = mini.dial
	}
	client, err := redlatch.New(dial, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func open(t *testing.T, s redistest.Target, o redlatchui.Options) *redlatchui.Page {
	t.Helper()
	page, err := redlatchui.New(clientOf(t, s), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, page.Close()) })
	return page
}

type tab struct {
	header http.Header
	events chan string   // the data of each event
	over   chan struct{} // closed when the stream has ended
}

func (b *tab) Header() http.Header { return b.header }
func (b *tab) WriteHeader(int)     {}
func (b *tab) Flush()              {}

func (b *tab) Write(p []byte) (int, error) {
	b.events <- string(p)
	return len(p), nil
}

// openTab opens a stream and waits for its first event.
func openTab(page http.Handler, r *http.Request) *tab {
	b := &tab{header: http.Header{}, events: make(chan string, 1000), over: make(chan struct{})}
	go func() {
		defer close(b.over)
		page.ServeHTTP(b, r)
	}()
	<-b.events
	return b
}
