package rueidis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"
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

var (
	errClosed  = errors.New("rueidis: the connection was closed")
	errListens = errors.New("rueidis: the connection listens, and sends nothing")
)

// dedicated is one of the client's connections, and ours alone until it is closed.
type dedicated struct {
	client rueidis.DedicatedClient
	closed chan struct{}

	once sync.Once
	err  error // why it was closed; set before closed is
}

// Err returns why the connection is of no use any more, nil while it is.
func (d *dedicated) Err() error {
	select {
	case <-d.closed:
		return d.err
	default:
		return nil
	}
}

// Close ends the connection at once. rueidis may need a second to let go of one whose
// server is silent, which is not waited for.
func (d *dedicated) Close() error {
	_ = d.end(errClosed)
	return nil
}

// end closes the connection, unless it is closed, and returns why that was done first.
func (d *dedicated) end(why error) error {
	d.once.Do(func() {
		d.err = why
		close(d.closed)
		go d.client.Close()
	})
	return d.err
}

// orClosed returns why rueidis has given a connection up.
func orClosed(err error) error {
	if err == nil {
		return errClosed
	}
	return err
}

// ask sends a command and waits for the reply as long as ctx says. What the server says
// is no error; an error ends the connection.
func (d *dedicated) ask(ctx context.Context, command string, args ...any) (rueidis.RedisResult, error) {
	stop := context.AfterFunc(ctx, func() { _ = d.end(context.Cause(ctx)) })
	r := d.client.Do(context.Background(), d.client.B().Arbitrary(command).Args(texts(args)...).Blocking())
	if err := r.NonRedisError(); !stop() || err != nil {
		return r, d.end(orClosed(err))
	}
	return r, nil
}

// take takes a connection from client, which makes one if it has none that is idle, and
// whose server has answered. rueidis knows no way to stop it once it has begun: when ctx
// ends first the connection is given back as soon as it is there.
func take(ctx context.Context, client rueidis.Client) (redis.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	came := make(chan rueidis.DedicatedClient)
	go func() {
		made, _ := client.Dedicate()
		select {
		case came <- made:
		case <-ctx.Done():
			made.Close()
		}
	}()
	select {
	case made := <-came:
		d := &dedicated{client: made, closed: make(chan struct{})}
		if _, err := d.ask(ctx, "PING"); err != nil {
			return nil, err
		}
		return &conn{dedicated: d, decided: make(chan struct{})}, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("the rueidis client gave no connection: %w", context.Cause(ctx))
	}
}
