package rueidis

import (
	"context"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"
)

// together is how many commands are sent at most before their replies are read.
const together = 256

// commands gives a dedicated connection the shape of a redigo connection on which
// commands are sent: one goroutine calls Send and Flush, another one Receive.
//
// Whoever receives also sends: it takes what was flushed by then, sends it in one go
// and reads the replies, so that nothing overtakes anything and no goroutine stands
// between. All commands are marked as blocking, which on a dedicated connection means
// that rueidis sets no deadline of its own, and that closing the connection does not
// wait for the reply.
type commands struct {
	*dedicated
	unflushed []rueidis.Completed // the sender's
	replies   []rueidis.RedisResult

	wake    chan struct{} // something was flushed
	mu      sync.Mutex    // guards flushed
	flushed []rueidis.Completed
}

var _ redis.ConnWithTimeout = (*commands)(nil)

func newCommands(d *dedicated) *commands {
	return &commands{dedicated: d, wake: make(chan struct{}, 1)}
}

// Send implements redis.Conn.
func (c *commands) Send(command string, args ...any) error {
	if err := c.Err(); err != nil {
		return err
	}
	if command == "HELLO" {
		args = nil // asked without a version it changes nothing about the connection
	}
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = text(arg)
	}
	c.unflushed = append(c.unflushed, c.client.B().Arbitrary(command).Args(words...).Blocking())
	return nil
}

// Flush implements redis.Conn.
func (c *commands) Flush() error {
	c.mu.Lock()
	c.flushed = append(c.flushed, c.unflushed...)
	c.mu.Unlock()
	clear(c.unflushed)
	c.unflushed = c.unflushed[:0]
	select {
	case c.wake <- struct{}{}:
	default: // it is awake
	}
	return c.Err()
}

// Receive implements redis.Conn.
func (c *commands) Receive() (any, error) {
	for len(c.replies) == 0 {
		batch, err := c.next()
		if err != nil {
			return nil, err
		}
		c.replies = c.client.DoMulti(context.Background(), batch...)
	}
	reply, err := received(c.replies[0])
	c.replies = c.replies[1:]
	if err != nil && !isRefusal(err) {
		return nil, c.end(err)
	}
	return reply, err
}

// next waits for commands and returns those to send together.
func (c *commands) next() ([]rueidis.Completed, error) {
	for {
		if err := c.Err(); err != nil {
			return nil, err
		}
		if batch := c.due(); len(batch) > 0 {
			return batch, nil
		}
		select {
		case <-c.wake:
		case <-c.closed:
		}
	}
}

func (c *commands) due() []rueidis.Completed {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(c.flushed), together)
	batch := c.flushed[:n:n]
	if c.flushed = c.flushed[n:]; len(c.flushed) == 0 {
		c.flushed = nil // the batch keeps the array
	}
	return batch
}

// ReceiveWithTimeout implements redis.ConnWithTimeout. A timeout ends the connection.
func (c *commands) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	if timeout > 0 {
		timer := time.AfterFunc(timeout, func() { _ = c.end(context.DeadlineExceeded) })
		defer timer.Stop()
	}
	return c.Receive()
}

// Do implements redis.Conn.
func (c *commands) Do(command string, args ...any) (any, error) {
	if err := c.Send(command, args...); err != nil {
		return nil, err
	}
	if err := c.Flush(); err != nil {
		return nil, err
	}
	return c.Receive()
}

// DoWithTimeout implements redis.ConnWithTimeout.
func (c *commands) DoWithTimeout(timeout time.Duration, command string, args ...any) (any, error) {
	if err := c.Send(command, args...); err != nil {
		return nil, err
	}
	if err := c.Flush(); err != nil {
		return nil, err
	}
	return c.ReceiveWithTimeout(timeout)
}
