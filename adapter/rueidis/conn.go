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

// conn adapts a dedicated connection to a redigo connection. The first command selects [commands]
// or [listening]. A PING is valid for both; if it is sent alone, it selects listening.
type conn struct {
	*dedicated
	pings   int // held back until the role is known; used only by the sender
	decided chan struct{}
	as      role // written by the sender; others read it after decided is closed
}

var _ redis.ConnWithTimeout = (*conn)(nil)

type role interface {
	Send(command string, args ...any) error
	Flush() error
	ReceiveWithTimeout(timeout time.Duration) (any, error)
	DoWithTimeout(timeout time.Duration, command string, args ...any) (any, error)
}

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

func (c *conn) Receive() (any, error) { return c.ReceiveWithTimeout(0) }

// ReceiveWithTimeout closes the connection if a timeout other than zero expires.
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

// Do does not select the role.
func (c *conn) Do(command string, args ...any) (any, error) {
	return c.DoWithTimeout(0, command, args...)
}

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
	errClosed  = errors.New("rueidis: connection closed")
	errListens = errors.New("rueidis: connection is subscribed and cannot send commands")
)

type dedicated struct {
	client rueidis.DedicatedClient
	closed chan struct{}

	once sync.Once
	err  error // set before closed is closed
}

// Err returns why the connection ended, or nil.
func (d *dedicated) Err() error {
	select {
	case <-d.closed:
		return d.err
	default:
		return nil
	}
}

// Close does not wait for rueidis, which may need a second if the server is silent.
func (d *dedicated) Close() error {
	_ = d.end(errClosed)
	return nil
}

func (d *dedicated) end(why error) error {
	d.once.Do(func() {
		d.err = why
		close(d.closed)
		go d.client.Close()
	})
	return d.err
}

func orClosed(err error) error {
	if err == nil {
		return errClosed
	}
	return err
}

// Any error other than an error reply closes the connection.
func (d *dedicated) ask(ctx context.Context, command string, args ...any) (rueidis.RedisResult, error) {
	stop := context.AfterFunc(ctx, func() { _ = d.end(context.Cause(ctx)) })
	r := d.client.Do(context.Background(), d.client.B().Arbitrary(command).Args(texts(args)...).Blocking())
	if err := r.NonRedisError(); !stop() || err != nil {
		return r, d.end(orClosed(err))
	}
	return r, nil
}

// Dedicate cannot be canceled. If ctx ends first, the connection is returned to client when it is
// ready.
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
		return nil, fmt.Errorf("no connection from the rueidis client: %w", context.Cause(ctx))
	}
}
