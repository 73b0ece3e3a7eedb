package dialer

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// secure returns a TLS connection over conn, which is connected to addr. It closes conn on an error.
func (d Dialer) secure(ctx context.Context, conn net.Conn, addr string) (net.Conn, error) {
	config := d.TLS.Clone()
	if host, _, err := net.SplitHostPort(addr); err == nil && config.ServerName == "" {
		config.ServerName = host
	}
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	c := &tlsConn{Conn: tls.Client(conn, config)}
	if err := c.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the handshake's error is the cause
		return nil, err
	}
	return c, nil
}

// alertPatience bounds the wait for an alert after a failed write.
const alertPatience = 100 * time.Millisecond

// tlsConn is a TLS connection that reports why the server rejected it. In TLS 1.3 the server
// verifies the client's certificate after the client has finished its handshake. When the client
// writes, the server may have sent an alert and closed the connection, and the write fails with
// a reset.
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

// Write returns the server's alert, if there is one, in place of its own error.
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
