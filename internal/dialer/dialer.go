// Package dialer makes every connection of the library and of the tools to a server.
//
//	net.Dial ─▶ TLS ─▶ respconn.Bounded ─▶ respconn.Guard ─▶ the client library: AUTH, SELECT
//
// The guard rejects replies that are larger than any that a lock needs, which the client
// library would otherwise allocate memory for until the process dies. A connection that is
// made anywhere else has no such bound; a test lists the exceptions.
package dialer

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/redisurl"
	"github.com/redlatch/redlatch/internal/respconn"
)

// Dialer makes connections to servers.
type Dialer struct {
	// Timeout bounds the connect, the TLS handshake, and the wait for each reply. Callers
	// may set other bounds for the replies to their own commands.
	Timeout time.Duration
	// Write bounds each write.
	Write time.Duration
	// TLS is nil for plain text. An empty ServerName stands for the host of the address.
	TLS *tls.Config
}

// Dial connects to a server, authenticates and selects the database. It returns when ctx ends.
func (d Dialer) Dial(ctx context.Context, to redisurl.Server) (redis.Conn, error) {
	h := &hangUp{}
	defer context.AfterFunc(ctx, h.now)()
	var guarded *respconn.Guarded
	conn, err := redis.DialContext(ctx, to.Network, to.Addr,
		redis.DialUsername(to.User), redis.DialPassword(to.Password), redis.DialDatabase(to.DB),
		redis.DialReadTimeout(d.Timeout),
		redis.DialContextFunc(func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := d.reach(ctx, h, network, addr)
			if err != nil {
				return nil, err
			}
			guarded = respconn.Guard(respconn.Bounded(conn, d.Write))
			return guarded, nil
		}))
	if err != nil {
		return nil, err
	}
	return respconn.On(conn, guarded), nil
}

// reach makes a network connection, TLS included.
func (d Dialer) reach(ctx context.Context, h *hangUp, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: d.Timeout}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if !h.at(conn) {
		_ = conn.Close() // the context's error is the cause
		return nil, context.Cause(ctx)
	}
	if d.TLS == nil {
		return conn, nil
	}
	return d.secure(ctx, conn, addr)
}

// hangUp closes the connection if the context ends during the handshake.
type hangUp struct {
	mu   sync.Mutex // guards conn and over
	conn net.Conn
	over bool
}

// at sets the connection. It returns false if the context has ended.
func (h *hangUp) at(conn net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conn = conn
	return !h.over
}

func (h *hangUp) now() {
	h.mu.Lock()
	h.over = true
	conn := h.conn
	h.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // Dial reports the error
	}
}
