package rlock_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// wire is a network in a bubble.
type wire struct {
	srv     *redistest.MiniServer
	latency time.Duration
	hole    atomic.Bool                   // commands are lost
	deaf    atomic.Bool                   // replies are lost
	refuse  atomic.Bool                   // connections are refused
	gate    atomic.Pointer[chan struct{}] // replies wait until it is closed; if nil, they do not wait

	mu    sync.Mutex // guards the fields below
	sent  time.Time  // when a script that got through was last sent
	conns []*wireConn
	next  *heldCommand // waits for its command
}

// heldCommand is a command that the network holds back, with everything that follows on its
// connection.
type heldCommand struct {
	wire *wire
	text string
	conn *wireConn // nil if it has not been sent yet

	command, rest []byte // what followed on the connection
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
	c := &wireConn{Conn: conn, wire: w, parts: make(chan part, 100), closed: make(chan struct{})}
	go c.deliver()
	w.mu.Lock()
	w.conns = append(w.conns, c)
	w.mu.Unlock()
	return redis.NewConn(c, 0, 0), nil
}

func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close() // it may already be closed
	}
}

// resetThose closes the connections that have subscribed, or else all other connections.
func (w *wire) resetThose(subscribed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		if c.subscribed.Load() == subscribed {
			_ = c.Close()
		}
	}
}

// heal ends a black hole. Its connections have lost commands, and are closed.
func (w *wire) heal() {
	w.hole.Store(false)
	w.reset()
}

func (w *wire) holdReplies() (release func()) {
	gate := make(chan struct{})
	w.gate.Store(&gate)
	return func() {
		w.gate.Store(nil)
		close(gate)
	}
}

// holdCommand holds back the next command that contains text.
func (w *wire) holdCommand(text string) *heldCommand {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = &heldCommand{wire: w, text: text}
	return w.next
}

// catches reports whether the network must hold p back.
func (w *wire) catches(c *wireConn, p []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.next; h != nil && bytes.Contains(p, []byte(h.text)) {
		h.conn, c.held, w.next = c, h, nil
	}
	switch h := c.held; {
	case h == nil:
		return false
	case h.command == nil:
		h.command = bytes.Clone(p)
	default:
		h.rest = append(h.rest, p...)
	}
	return true
}

// release delivers the command, even if the client has closed its connection. What followed it is lost
// with the connection.
func (h *heldCommand) release(t *testing.T) {
	t.Helper()
	synctest.Wait()
	require.NotNil(t, h.conn, "nothing was sent")
	h.wire.mu.Lock()
	to, data := h.conn.Conn, append(h.command, h.rest...)
	h.conn.held = nil
	h.wire.mu.Unlock()
	select {
	case <-h.conn.closed:
		fresh, err := h.wire.srv.DialNet(context.Background(), "", "")
		require.NoError(t, err)
		go func() { _, _ = io.Copy(io.Discard, fresh) }()
		defer fresh.Close() //nolint:errcheck // it has no other use
		to, data = fresh, h.command
	default:
	}
	_, err := to.Write(data)
	require.NoError(t, err)
	synctest.Wait()
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
	held   *heldCommand // nil while it delivers; guarded by wire.mu

	subscribed atomic.Bool
}

type part struct {
	data []byte
	due  time.Time
}

func (c *wireConn) Write(p []byte) (int, error) {
	if c.wire.hole.Load() || c.wire.catches(c, p) {
		return len(p), nil
	}
	if bytes.Contains(p, []byte("SUBSCRIBE")) {
		c.subscribed.Store(true)
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
		if gate := c.wire.gate.Load(); gate != nil && err == nil {
			select {
			case <-*gate:
			case <-c.closed:
				return 0, net.ErrClosed
			}
		}
		if err != nil || !c.wire.deaf.Load() {
			return n, err
		}
	}
}

func (c *wireConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// deliver returns after Close.
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
