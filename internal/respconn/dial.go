package respconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/redisurl"
)

// Dialer makes all connections to servers, for the library and for its commands.
type Dialer struct {
	// Timeout bounds the connect, the TLS handshake, and the wait for each reply.
	Timeout time.Duration
	Write   time.Duration
	// TLS is nil for unencrypted connections. If its ServerName is empty, the host of the address
	// is used.
	TLS *tls.Config
}

// Dial connects, authenticates and selects the database. It returns when ctx ends.
func (d Dialer) Dial(ctx context.Context, to redisurl.Server) (redis.Conn, error) {
	raw, err := (&net.Dialer{Timeout: d.Timeout}).DialContext(ctx, to.Network, to.Addr)
	if err != nil {
		return nil, err
	}
	below := raw
	if d.TLS != nil {
		if below, err = d.secure(ctx, raw, to.Addr); err != nil {
			return nil, err
		}
	}
	conn := over(Guard(Bounded(below, d.Write)), d.Timeout)
	// Closing raw ends the commands on conn, which don't end with ctx.
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	err = logIn(conn, to)
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func logIn(conn redis.Conn, to redisurl.Server) (err error) {
	switch {
	case to.Password == "":
	case to.User == "":
		_, err = conn.Do("AUTH", to.Password)
	default:
		_, err = conn.Do("AUTH", to.User, to.Password)
	}
	err = withoutSecret(err, to.Password)
	if err == nil && to.DB != 0 {
		_, err = conn.Do("SELECT", to.DB)
	}
	return err
}

// withoutSecret cuts the server's error off before the password. A server without AUTH quotes the
// command's arguments, and may truncate or change them.
func withoutSecret(err error, password string) error {
	var refused redis.Error
	if !errors.As(err, &refused) || password == "" {
		return err
	}
	code, text, _ := strings.Cut(string(refused), " ")
	const enough = 4
	before, _, quoted := strings.Cut(text, password[:min(len(password), enough)])
	if !quoted {
		before, _, quoted = strings.Cut(text, "with args beginning with:") // it may replace line ends
	}
	if quoted && !strings.HasPrefix(text, "AUTH <password> called without any password ") {
		return redis.Error(code + " " + before + "...")
	}
	return err
}

// secure returns a TLS connection that uses conn. It closes conn on an error.
func (d Dialer) secure(ctx context.Context, conn net.Conn, addr string) (net.Conn, error) {
	config := d.TLS.Clone()
	if host, _, err := net.SplitHostPort(addr); err == nil && config.ServerName == "" {
		config.ServerName = host
	}
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	c := &tlsConn{Conn: tls.Client(conn, config)}
	if err := c.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

const alertPatience = 100 * time.Millisecond

// tlsConn reports why the server rejected the connection. With TLS 1.3, the server may send an
// alert and close the connection before the client writes. The write then fails with a reset.
type tlsConn struct {
	*tls.Conn
	heard atomic.Bool // the server has sent data, so it accepted the certificate
}

func (c *tlsConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.heard.Store(true)
	}
	return n, err
}

// Write returns the server's alert, if any, in place of the write error.
func (c *tlsConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil && !c.heard.Load() {
		_ = c.SetReadDeadline(time.Now().Add(alertPatience)) // the connection is not read again
		var said *net.OpError
		if _, alert := c.Conn.Read(make([]byte, 1)); errors.As(alert, &said) && said.Op == "remote error" {
			err = alert
		}
	}
	return n, err
}

// NewConn returns a client library connection that uses conn. If write is not zero, it is the time
// limit for each write.
func NewConn(conn net.Conn, write time.Duration) redis.Conn {
	g, ok := conn.(*Guarded)
	if !ok {
		g = Guard(conn)
	}
	if _, ok := g.Conn.(*bounded); !ok && write > 0 {
		g.Conn = Bounded(g.Conn, write)
	}
	return over(g, 0)
}

// Timed takes the results of a caller's dial function. If conn doesn't implement
// redis.ConnWithTimeout, which [Receive] needs, Timed closes it and returns an error.
func Timed(conn redis.Conn, err error) (redis.ConnWithTimeout, error) {
	if err != nil {
		return nil, err
	}
	timed, ok := conn.(redis.ConnWithTimeout)
	if !ok {
		if conn != nil {
			_ = conn.Close()
		}
		return nil, fmt.Errorf("dialed connection %T does not implement redis.ConnWithTimeout", conn)
	}
	return timed, nil
}

func over(g *Guarded, reply time.Duration) redis.Conn {
	timed, _ := redis.NewConn(g, reply, 0).(redis.ConnWithTimeout)
	return &overGuarded{timed, g}
}

type overGuarded struct {
	redis.ConnWithTimeout
	below *Guarded
}

// Below returns the guarded connection below conn, or nil. It follows Unwrap methods.
func Below(conn redis.Conn) *Guarded {
	for {
		switch c := conn.(type) {
		case *overGuarded:
			return c.below
		case interface{ Unwrap() redis.Conn }:
			conn = c.Unwrap()
		default:
			return nil
		}
	}
}
