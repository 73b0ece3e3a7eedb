package embedded

import (
	"bufio"
	"bytes"
	"net"
	"sync"
	"time"
)

const (
	// maxPending is how many bytes may wait for a client that does not read, as
	// for subscribers of a Redis server with its default settings.
	maxPending = 32 << 20
	// partingTime bounds the wait for a client to read the last reply of a
	// connection that the server ends, as after QUIT.
	partingTime = time.Second
)

// conn is the server's end of one connection. miniredis writes to it under its
// one big mutex, so writing must never wait for the client: it fills a buffer,
// which a goroutine of the connection empties.
type conn struct {
	net.Conn
	server   *Server
	requests requests
	wake     chan struct{} // holds one: look at the buffer again

	mu         sync.Mutex // guards what follows; never held across I/O
	pending    []byte
	leaving    int  // bytes that are being written
	ending     bool // close after what is pending
	dead       bool // closed; nothing more goes out
	subscribed bool
}

func newConn(s *Server, raw net.Conn) *conn {
	return &conn{Conn: raw, server: s, requests: requests{from: bufio.NewReader(raw)}, wake: make(chan struct{}, 1)}
}

// Read returns complete requests only. Other bytes end the connection.
func (c *conn) Read(b []byte) (int, error) { return c.requests.Read(b) }

// Write queues a reply or a message. It fails when the connection has ended,
// when the reply is one to be lost, and when the client has let too much pile
// up; the last two end the connection. After Close it discards b.
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
		return !c.dead // after Close, what is pending goes out, and no more
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

// Close ends the connection after what is pending has gone out, or after a
// second.
func (c *conn) Close() error {
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	err := c.SetWriteDeadline(time.Now().Add(partingTime))
	c.poke()
	return err
}

// drop ends the connection at once.
func (c *conn) drop() {
	c.mu.Lock()
	c.dead = true
	c.mu.Unlock()
	_ = c.Conn.Close() // closed already, at worst
	c.poke()
}

// drain writes what is pending until the connection ends.
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

// take removes what is pending, after what it removed before has gone out. It reports false when there is nothing and
// there will be nothing.
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
	default: // it will look anyway
	}
}

func (c *conn) isSubscribed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.subscribed
}

// isSubscribeAck reports whether b, which begins where a reply begins,
// acknowledges a subscription. RESP3 begins it with > instead of *.
func isSubscribeAck(b []byte) bool {
	if len(b) == 0 || b[0] != '*' && b[0] != '>' {
		return false
	}
	return bytes.HasPrefix(b[1:], []byte("3\r\n$9\r\nsubscribe\r\n")) ||
		bytes.HasPrefix(b[1:], []byte("3\r\n$10\r\npsubscribe\r\n"))
}

func isErrorReply(b []byte) bool { return len(b) > 0 && b[0] == '-' }
