package rlock_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

type wire struct {
	srv     *redistest.MiniServer
	latency time.Duration
	hole    atomic.Bool // what is sent is lost
	deaf    atomic.Bool // replies are lost
	refuse  atomic.Bool // connections are refused

	mu    sync.Mutex // guards sent and conns
	sent  time.Time  // when a script that got through was last sent
	conns []net.Conn
}

// wired starts a server and a client with a wire between them, in a bubble.
func wired(t *testing.T, latency time.Duration, opts ...redlatch.Option) (*wire, *redlatch.Client) {
	t.Helper()
	w := &wire{srv: redistest.Mini(t, embedded.WithInProcess()), latency: latency}
	return w, w.client(t, opts...)
}

func (w *wire) client(t *testing.T, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	client, err := redlatch.New(w.dial, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	_, err = rlock.New(client, "warm-up").IsLocked(t.Context())
	require.NoError(t, err)
	return client
}

func (w *wire) dial(ctx context.Context) (redis.Conn, error) {
	if w.refuse.Load() {
		return nil, errors.New("connection refused")
	}
	conn, err := w.srv.DialNet(ctx, "", "")
	if err != nil {
		return nil, err
	}
	c := &wireConn{Conn: conn, wire: w, parts: make(chan part, 1000), closed: make(chan struct{})}
	go c.deliver()
	w.mu.Lock()
	w.conns = append(w.conns, c)
	w.mu.Unlock()
	return redis.NewConn(c, 0, 0), nil
}

// reset closes all connections.
func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close() // it may be closed already
	}
}

// heal ends a black hole. Its connections have lost commands, and are closed.
func (w *wire) heal() {
	w.hole.Store(false)
	w.reset()
}

func (w *wire) lastSent() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

// wireConn delivers after the latency, without blocking the writer.
type wireConn struct {
	net.Conn
	wire   *wire
	parts  chan part
	once   sync.Once
	closed chan struct{}
}

type part struct {
	data []byte
	due  time.Time
}

func (c *wireConn) Write(p []byte) (int, error) {
	if c.wire.hole.Load() {
		return len(p), nil
	}
	if bytes.Contains(p, []byte("EVALSHA")) {
		c.wire.mu.Lock()
		c.wire.sent = time.Now()
		c.wire.mu.Unlock()
	}
	select {
	case c.parts <- part{bytes.Clone(p), time.Now().Add(c.wire.latency)}:
		return len(p), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *wireConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.wire.deaf.Load() {
			return n, err
		}
	}
}

func (c *wireConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// deliver ends with Close.
func (c *wireConn) deliver() {
	for {
		select {
		case p := <-c.parts:
			select {
			case <-time.After(time.Until(p.due)):
			case <-c.closed:
				return
			}
			if _, err := c.Conn.Write(p.data); err != nil {
				return
			}
		case <-c.closed:
			return
		}
	}
}
