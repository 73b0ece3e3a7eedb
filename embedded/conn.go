package embedded

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

const (
	maxPending  = 32 << 20    // bytes buffered for a slow reader; Redis has the same limit for subscribers
	partingTime = time.Second // time for a client to read the last reply, for example after QUIT
)

// conn is the server's end of a connection. Write must not block, because miniredis calls it while
// holding its global mutex, so it fills a buffer that a goroutine drains.
type conn struct {
	net.Conn
	server   *Server
	requests requests
	wake     chan struct{} // has capacity 1

	mu         sync.Mutex // guards the fields below; not held during I/O
	pending    []byte
	leaving    int
	ending     bool // to be closed when pending is empty
	dead       bool // closed
	subscribed bool
}

func newConn(s *Server, raw net.Conn) *conn {
	return &conn{Conn: raw, server: s, requests: requests{from: bufio.NewReader(raw)}, wake: make(chan struct{}, 1)}
}

// Read returns only complete requests. After an invalid request, it returns an error.
func (c *conn) Read(b []byte) (int, error) { return c.requests.Read(b) }

// Write queues a reply or a message. If LoseReplies applies or the buffer is full, it closes the
// connection. After Close it discards b.
func (c *conn) Write(b []byte) (int, error) {
	if !c.queue(b) {
		c.drop()
		return 0, net.ErrClosed
	}
	c.poke()
	return len(b), nil
}

func (c *conn) queue(b []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead || c.ending {
		return !c.dead // after Close, only pending bytes are sent
	}
	c.subscribed = c.subscribed || isSubscribeAck(b)
	if !c.subscribed && !isErrorReply(b) && c.server.takeLoss() {
		return false
	}
	if c.leaving+len(c.pending)+len(b) > c.server.limit {
		return false
	}
	c.pending = append(c.pending, b...)
	return true
}

func (c *conn) Close() error {
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	err := c.SetWriteDeadline(time.Now().Add(partingTime))
	c.poke()
	return err
}

func (c *conn) drop() {
	c.mu.Lock()
	c.dead = true
	c.mu.Unlock()
	_ = c.Conn.Close()
	c.poke()
}

func (c *conn) drain() {
	defer c.drop()
	for range c.wake {
		for {
			out, more := c.take()
			if !more {
				return
			}
			if len(out) == 0 {
				break
			}
			if _, err := c.Conn.Write(out); err != nil {
				return
			}
		}
	}
}

func (c *conn) take() ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.pending
	c.pending, c.leaving = nil, len(out)
	return out, !c.dead && (len(out) > 0 || !c.ending)
}

func (c *conn) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *conn) isSubscribed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.subscribed
}

// With RESP3, the reply starts with >.
func isSubscribeAck(b []byte) bool {
	if len(b) == 0 || b[0] != '*' && b[0] != '>' {
		return false
	}
	return bytes.HasPrefix(b[1:], []byte("3\r\n$9\r\nsubscribe\r\n")) ||
		bytes.HasPrefix(b[1:], []byte("3\r\n$10\r\npsubscribe\r\n"))
}

func isErrorReply(b []byte) bool { return len(b) > 0 && b[0] == '-' }

// Limits for requests, which are lower than in Redis.
const (
	maxArgs    = 1 << 20
	maxRequest = 64 << 20 // bytes
	keepBuffer = 64 << 10 // bytes kept between requests
)

var errRequest = errors.New("embedded: invalid or oversized request")

// requests checks requests for miniredis, which would allocate memory for any length that a client
// sends, and would panic on an empty array.
type requests struct {
	from  *bufio.Reader
	ready bytes.Buffer
}

func (r *requests) Read(p []byte) (int, error) {
	if r.ready.Len() == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	return r.ready.Read(p)
}

func (r *requests) next() error {
	if r.ready.Reset(); r.ready.Cap() > keepBuffer {
		r.ready = bytes.Buffer{}
	}
	args, err := r.length('*', maxArgs)
	switch {
	case err != nil:
		return err
	case args == 0:
		return errRequest
	}
	for range args {
		size, err := r.length('$', maxRequest-r.ready.Len())
		if err != nil {
			return err
		}
		if _, err := io.CopyN(&r.ready, r.from, int64(size+len("\r\n"))); err != nil {
			return err
		}
	}
	return nil
}

func (r *requests) length(kind byte, most int) (int, error) {
	line, err := r.from.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	digits, ended := bytes.CutSuffix(line, []byte("\r\n"))
	digits, begun := bytes.CutPrefix(digits, []byte{kind})
	n, err := strconv.ParseUint(string(digits), 10, 31)
	if !begun || !ended || err != nil || int(n) > most {
		return 0, errRequest
	}
	r.ready.Write(line)
	return int(n), nil
}

// guarded runs the command itself, so that a panic in miniredis closes only the connection.
func (s *Server) guarded(p *server.Peer, cmd string, args ...string) (answered bool) {
	if _, again := s.running.LoadOrStore(p, true); again {
		text := s.failing.Load()
		if text == nil || *text == "" {
			return false
		}
		p.WriteError(*text)
		return true
	}
	defer s.running.Delete(p)
	defer func() {
		if v := recover(); v != nil {
			s.unlock(v)
			p.WriteError(fmt.Sprintf("ERR miniredis cannot run %s: %v", cmd, v))
			p.Close()
		}
	}()
	answered = true
	s.srv.Dispatch(p, append([]string{cmd}, args...))
	return answered
}

// unlock unlocks miniredis's mutex if the command that panicked with v left it locked.
func (s *Server) unlock(v any) {
	switch stack := string(debug.Stack()); {
	case strings.Count(stack, "(*Server).guarded(") > 1:
		panic(v)
	case strings.Contains(stack, "miniredis/v2.withTx("):
		s.mini.Unlock()
	}
}
