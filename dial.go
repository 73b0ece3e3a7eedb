package redlatch

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/redisurl"
	"github.com/redlatch/redlatch/internal/respconn"
)

type dialFunc = func(ctx context.Context) (redis.Conn, error)

// conn returns what all connections of a client have in common.
func (s *settings) conn() redisconn.Config {
	return redisconn.Config{
		DialReplica: s.dialReplica,
		Command:     s.command,
		Lease:       s.watchdog,
		DialTimeout: s.dialTimeout,
		ClientName:  s.clientName,
		Logger:      s.logger,
		Reconnected: s.reconnected(),
	}
}

// single returns the transport to one master.
func (s *settings) single(dial dialFunc) *redisconn.Redigo {
	cfg := s.conn()
	cfg.Dial = dial
	return redisconn.NewRedigo(cfg)
}

// parse returns the address at rawURL, which the settings go with.
func (s *settings) parse(rawURL string) (*redisurl.Address, error) {
	a, err := redisurl.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("redlatch: %w", err)
	}
	if s.tls != nil && !a.Secure {
		// It would be plain text, without a warning.
		return nil, fmt.Errorf("redlatch: address %s: WithTLSConfig needs an address with the scheme rediss, "+
			"rediss-cluster or rediss-sentinel", a)
	}
	if _, _, err := a.Credentials(); err != nil && s.credentials == nil {
		return nil, fmt.Errorf("redlatch: address %s: %w", a, err)
	}
	return a, nil
}

// dialer returns the function that makes connections to the one server at a.
func (s *settings) dialer(a *redisurl.Address) dialFunc {
	return func(ctx context.Context) (redis.Conn, error) { return s.dialTo(ctx, a.Server(), a.Secure) }
}

// nodes returns the function that makes connections to servers by their addresses, host:port, with
// the credentials, the database and the TLS of a. The replicas of a socket's server are reached over TCP.
func (s *settings) nodes(a *redisurl.Address) nodeDialer {
	return func(ctx context.Context, addr string) (redis.Conn, error) { return s.dialTo(ctx, a.At(addr), a.Secure) }
}

// dialTo connects to a server with the settings that every connection has.
func (s *settings) dialTo(ctx context.Context, to redisurl.Server, secure bool) (redis.Conn, error) {
	if s.credentials != nil {
		user, password, err := s.credentials(ctx)
		if err != nil {
			return nil, fmt.Errorf("redlatch: credentials: %w", err)
		}
		to.User, to.Password = user, password
	}
	d := respconn.Dialer{Timeout: s.dialTimeout, Write: s.command}
	switch {
	case secure && s.tls != nil:
		d.TLS = s.tls
	case secure:
		d.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return d.Dial(ctx, to)
}

// LimitReplies returns conn with the bounds on what a server may announce that the
// connections of [Open] have: an array or a text that is longer than any answer to
// Redlatch ends the connection with an error, before memory is taken for it. It is for
// dial functions, and must see the first byte that the server sends. It sets no deadlines.
func LimitReplies(conn net.Conn) net.Conn { return respconn.Guard(conn) }

// NewConn returns conn, on which the server is ready for commands, for a dial function to
// return: an alternative to redigo's redis.NewConn. On it, a caller that is alone does its
// own reading and writing, as on the connections of [Open], which with few callers halves
// the time that Redlatch takes for a call; this needs a TCP or Unix socket, with or without
// TLS, and has no effect on Windows and AIX. A write that takes longer than write ends the
// connection; 0 sets no such bound. conn may come from [LimitReplies], and is limited by
// NewConn if not. Nothing is sent. The caller does not use conn any more.
func NewConn(conn net.Conn, write time.Duration) redis.Conn { return respconn.NewConn(conn, write) }
