package goredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/transport"
)

type reachFunc func(ctx context.Context, network, addr string) (net.Conn, error)

var errReady = errors.New("goredis: the connection is ready")

var errNoConn = errors.New("the client's Dialer returned no connection")

// errTooLate is returned by a dial that ends after its caller has returned. Without an error,
// go-redis would panic.
var errTooLate = errors.New("the connection opened after its caller had returned")

func handshake(opt redis.Options) *redis.Options {
	opt.Protocol = 2
	opt.ContextTimeoutEnabled = true
	opt.MaxRetries, opt.DialerRetries = -1, 1 // Redlatch retries
	// After PoolSize failed dials, a pool keeps dialing in the background.
	opt.PoolSize, opt.MaxConcurrentDials, opt.PipelinePoolSize = 10, 1, -1
	opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = 0, 0, 0
	opt.Limiter = nil
	opt.ClientSideCache, opt.ClientSideCacheConfig = nil, nil
	opt.PushNotificationProcessor = nil
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &opt
}

// connect returns a connection that go-redis has initialized.
func connect(ctx context.Context, settings redis.Options) (net.Conn, error) {
	opt := handshake(settings)
	d := &detacher{reach: opt.Dialer}
	defer context.AfterFunc(ctx, d.hangUp)()
	opt.Dialer = d.dial
	opt.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
		if settings.OnConnect != nil {
			if err := settings.OnConnect(ctx, cn); err != nil {
				return err
			}
		}
		d.detach()
		return errReady
	}
	client := redis.NewClient(opt)
	err := client.Ping(ctx).Err() // not sent, because OnConnect returns errReady
	_ = client.Close()
	conn, err := d.detached(err)
	switch {
	case err == nil:
		return conn, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, fmt.Errorf("goredis: connect: %w", serverError(err))
}

func dial(ctx context.Context, settings redis.Options) (redigo.Conn, error) {
	conn, err := connect(ctx, settings)
	if err != nil {
		return nil, err
	}
	return redlatch.NewConn(conn, writeTimeout), nil
}

type detacher struct {
	reach reachFunc

	mu   sync.Mutex // guards the fields below
	conn *heldConn
	over bool // the caller has returned
}

func (d *detacher) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.reach(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if conn == nil {
		return nil, errNoConn
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		_ = conn.Close()
		return nil, errTooLate
	}
	d.conn = &heldConn{Conn: conn}
	return d.conn, nil
}

// hangUp closes the connection when ctx is canceled, because go-redis respects only deadlines.
func (d *detacher) hangUp() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	if d.conn != nil {
		_ = d.conn.Conn.Close()
	}
}

func (d *detacher) detach() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn.gone = true
}

// detached returns the connection, or err if go-redis did not initialize it.
func (d *detacher) detached(err error) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == nil || !d.conn.gone || d.over {
		return nil, err
	}
	if err := d.conn.SetDeadline(time.Time{}); err != nil {
		_ = d.conn.Conn.Close() // go-redis no longer closes it
		return nil, fmt.Errorf("remove deadlines: %w", err)
	}
	return d.conn.Conn, nil
}

// heldConn is the connection that go-redis uses. Only one goroutine uses it.
type heldConn struct {
	net.Conn
	gone bool
}

func (c *heldConn) Close() error {
	if c.gone {
		return nil
	}
	return c.Conn.Close()
}

func serverError(err error) error {
	var sent redis.Error
	if errors.As(err, &sent) && !errors.Is(err, redis.Nil) {
		// The arguments of an unknown AUTH contain the password.
		text, _, _ := strings.Cut(sent.Error(), ", with args beginning with:")
		return &transport.ServerError{Text: text}
	}
	return err
}
