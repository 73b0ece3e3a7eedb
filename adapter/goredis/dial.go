package goredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/transport"
)

// reachFunc makes a network connection, TLS included, as redis.Options.Dialer does.
type reachFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// errReady tells go-redis that a connection is Redlatch's from here on.
var errReady = errors.New("goredis: the connection is ready")

// errNoConn is for a Dialer of the user's that does not do what it is there for.
var errNoConn = errors.New("the client's Dialer has made no connection")

// errTooLate is for a dial that took longer than its caller waited. It must be an error
// of its own: go-redis's context of the dial need not have ended, and with neither a
// connection nor an error it panics.
var errTooLate = errors.New("the connection came too late")

// handshake returns go-redis's settings for the making of one connection that is
// then taken away from it. What they say of pools, retries and caches is left out.
func handshake(opt redis.Options) *redis.Options {
	opt.Protocol = 2 // the one that Redlatch speaks
	opt.ContextTimeoutEnabled = true
	opt.MaxRetries, opt.DialerRetries = -1, 1 // the caller of the dial tries again
	// After as many failures as there is room for connections, a pool goes on dialling
	// in the background.
	opt.PoolSize, opt.MaxConcurrentDials, opt.PipelinePoolSize = 10, 1, -1
	opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = 0, 0, 0
	opt.Limiter = nil
	opt.ClientSideCache, opt.ClientSideCacheConfig = nil, nil
	opt.PushNotificationProcessor = nil
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &opt
}

// connect makes a connection with the settings of a go-redis client: go-redis dials it,
// and does all that it does with a new connection, from HELLO and AUTH to the user's
// OnConnect. Then it is the caller's alone.
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
	err := client.Ping(ctx).Err() // never sent: errReady comes first
	_ = client.Close()            // it has nothing any more, or is broken
	conn := d.detached()
	switch {
	case ctx.Err() != nil && conn == nil:
		return nil, context.Cause(ctx)
	case conn == nil:
		return nil, fmt.Errorf("goredis: connect: %w", serverError(err))
	}
	return conn, nil
}

// dial is connect for a Redlatch client.
func dial(ctx context.Context, settings redis.Options) (redigo.Conn, error) {
	conn, err := connect(ctx, settings)
	if err != nil {
		return nil, err
	}
	return redlatch.NewConn(conn, writeTimeout), nil
}

// detacher dials a connection for go-redis and takes it away from it again.
type detacher struct {
	reach reachFunc

	mu   sync.Mutex // guards what follows
	conn *heldConn  // nil until there is one
	over bool       // the caller has left
}

// dial is redis.Options.Dialer.
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
		_ = conn.Close() // the dial took longer than its caller waited
		return nil, errTooLate
	}
	// The bound on what a server may announce has to see the first byte.
	d.conn = &heldConn{Conn: redlatch.LimitReplies(conn)}
	return d.conn, nil
}

// hangUp ends a handshake that no caller waits for any more: go-redis heeds the
// deadline of a context only.
func (d *detacher) hangUp() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	if d.conn != nil {
		_ = d.conn.Conn.Close() // broken anyway
	}
}

// detach takes the connection away: what go-redis does to it from now on has no effect.
func (d *detacher) detach() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn.gone = true
}

// detached returns the connection, nil when there is none, or it is of no use.
func (d *detacher) detached() net.Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == nil || !d.conn.gone || d.over {
		return nil
	}
	if err := d.conn.SetDeadline(time.Time{}); err != nil {
		return nil
	}
	return d.conn.Conn
}

// heldConn is what go-redis is given. It uses it on one goroutine only: the one that
// waits for it.
type heldConn struct {
	net.Conn
	gone bool
}

// Close is part of net.Conn.
func (c *heldConn) Close() error {
	if c.gone {
		return nil
	}
	return c.Conn.Close()
}

// serverError turns an error that a server sent, and go-redis returned, into the
// transport's type of it. Others stay what they are.
func serverError(err error) error {
	var sent redis.Error
	if errors.As(err, &sent) && !errors.Is(err, redis.Nil) {
		return &transport.ServerError{Text: sent.Error()}
	}
	return err
}
