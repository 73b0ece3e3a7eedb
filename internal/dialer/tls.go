package dialer

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// secure returns conn, which leads to addr, with TLS above it.
func (d Dialer) secure(ctx context.Context, conn net.Conn, addr string) (net.Conn, error) {
	config := d.TLS.Clone()
	if host, _, err := net.SplitHostPort(addr); err == nil && config.ServerName == "" {
		config.ServerName = host
	}
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	c := &tlsConn{Conn: tls.Client(conn, config)}
	if err := c.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the first error tells more
		return nil, err
	}
	return c, nil
}

// alertPatience is how long an alert is waited for when there may be one.
const alertPatience = 100 * time.Millisecond

// tlsConn is a TLS connection that tells why the server does not want it. In TLS 1.3
// a server looks at the client's certificate when the client takes the handshake to be
// over, and has sent its alert and gone by the time that the client writes: what the
// client sees is a connection that was reset.
type tlsConn struct {
	*tls.Conn
	heard atomic.Bool // the server has sent something: it wants us
}

// Read is part of net.Conn.
func (c *tlsConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.heard.Store(true)
	}
	return n, err
}

// Write is part of net.Conn. Its error is the server's alert, if there is one.
func (c *tlsConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil && !c.heard.Load() {
		_ = c.SetReadDeadline(time.Now().Add(alertPatience)) // it is not read after this
		var said *net.OpError
		if _, alert := c.Conn.Read(make([]byte, 1)); errors.As(alert, &said) && said.Op == "remote error" {
			err = alert
		}
	}
	return n, err
}
