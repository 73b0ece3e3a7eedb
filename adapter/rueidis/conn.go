package rueidis

import (
	"context"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// conn gives a dedicated connection the shape of a redigo connection. rueidis treats
// commands and subscriptions in different ways, and the first command that is sent decides
// for one of them, [commands] or [listening]. PING, which goes either way, decides only
// when it is sent alone: for listening, where it may be.
type conn struct {
	*dedicated
	pings   int // held back until it is decided; the sender's
	decided chan struct{}
	as      redis.ConnWithTimeout // the sender's; others read it when decided is closed
}

var _ redis.ConnWithTimeout = (*conn)(nil)

// Send implements redis.Conn.
func (c *conn) Send(command string, args ...any) error {
	if c.as == nil {
		if command == "PING" {
			c.pings++
			return c.Err()
		}
		if err := c.decide(strings.HasSuffix(command, "SUBSCRIBE")); err != nil {
			return err
		}
	}
	return c.as.Send(command, args...)
}

// decide makes the connection what it is from now on, and sends what was held back.
func (c *conn) decide(listens bool) error {
	if listens {
		c.as = listen(c.dedicated)
	} else {
		c.as = newCommands(c.dedicated)
	}
	close(c.decided)
	for range c.pings {
		if err := c.as.Send("PING"); err != nil {
			return err
		}
	}
	return nil
}

// Flush implements redis.Conn.
func (c *conn) Flush() error {
	if c.as == nil && c.pings > 0 {
		if err := c.decide(true); err != nil {
			return err
		}
	}
	if c.as == nil {
		return c.Err()
	}
	return c.as.Flush()
}

// Receive implements redis.Conn.
func (c *conn) Receive() (any, error) { return c.ReceiveWithTimeout(0) }

// ReceiveWithTimeout implements redis.ConnWithTimeout. A timeout, zero is none, ends the
// connection.
func (c *conn) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	var late <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-c.decided:
		return c.as.ReceiveWithTimeout(timeout)
	case <-c.closed:
		return nil, c.err
	case <-late:
		return nil, c.end(context.DeadlineExceeded)
	}
}

// Do implements redis.Conn. It decides nothing.
func (c *conn) Do(command string, args ...any) (any, error) {
	return c.DoWithTimeout(0, command, args...)
}

// DoWithTimeout implements redis.ConnWithTimeout.
func (c *conn) DoWithTimeout(timeout time.Duration, command string, args ...any) (any, error) {
	if c.as != nil {
		return c.as.DoWithTimeout(timeout, command, args...)
	}
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	r, err := c.ask(ctx, command, args...)
	if err != nil {
		return nil, err
	}
	return received(r)
}
