package connect

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/dialer"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/redisurl"
)

// timeout bounds each step of a short connection: dial, write, read.
const timeout = 5 * time.Second

// HasPassword reports whether an address has a password for the server in it.
func HasPassword(rawURL string) bool {
	a, err := redisurl.Parse(rawURL)
	return err == nil && a.Password != ""
}

// Shows reports whether an address has any password in it, that of Sentinels included.
func Shows(rawURL string) bool {
	a, err := redisurl.Parse(rawURL)
	return err == nil && a.Password+a.SentinelPassword != ""
}

// String returns the address without user, password and options.
func (s *Server) String() string { return s.at.String() }

// GoString returns what String does, so that no format shows a password.
func (s *Server) GoString() string { return s.String() }

// Host returns the name or address of the server's machine, "" for a unix socket and a
// deployment, whose masters have one.
func (s *Server) Host() string {
	if s.at.Kind != redisurl.Single {
		return ""
	}
	host, _, _ := net.SplitHostPort(s.at.Hosts[0]) // it was put together by the parser
	return host
}

// User returns the user of the connection, "default" when the address has none.
func (s *Server) User() string {
	user, _, _ := s.at.Credentials() // New has checked them
	return cmp.Or(user, "default")
}

// Open connects as redlatch.Open does. OpenedBy knows the client. Its errors are those of Problem.
func (s *Server) Open(ctx context.Context, opts ...redlatch.Option) (*redlatch.Client, error) {
	if s.tls != nil {
		opts = append(opts, redlatch.WithTLSConfig(s.tls))
	}
	client, err := redlatch.Open(ctx, s.at.Full(), opts...)
	if err != nil {
		return nil, s.Problem(err)
	}
	engine.EngineOf(client).Opener = s
	return client, nil
}

// OpenedBy returns the server whose Open has made the client, nil for other clients.
func OpenedBy(client *redlatch.Client) *Server {
	s, _ := engine.EngineOf(client).Opener.(*Server)
	return s
}

// New returns a client that connects when it is first used, see redlatch.New; that of a
// deployment connects at once, as Open does.
func (s *Server) New(ctx context.Context, opts ...redlatch.Option) (*redlatch.Client, error) {
	if s.IsDeployment() {
		return s.Open(ctx, opts...)
	}
	replica := func(ctx context.Context, addr string) (redis.Conn, error) { return s.node(addr).dial(ctx) }
	return redlatch.New(s.dial, append(opts, redlatch.WithReplicaDialer(replica))...)
}

// Dial makes one connection: to the server, to the master that Sentinels name now, or
// one to a cluster on which commands find their nodes, and that cannot listen. ctx bounds
// the connecting alone; replies are waited for 5 s. Its errors are those of Problem, but for those
// of ctx.
func (s *Server) Dial(ctx context.Context) (redis.Conn, error) {
	c, err := s.dial(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err) // no one waits for an explanation
	case err != nil:
		return nil, s.Problem(err)
	}
	return c, nil
}

func (s *Server) dial(ctx context.Context) (redis.Conn, error) {
	if s.IsDeployment() {
		return s.dialDeployment(ctx)
	}
	d := dialer.Dialer{Timeout: timeout, Write: timeout}
	if s.at.Secure {
		d.TLS = s.tlsConfig()
	}
	return d.Dial(ctx, s.at.Server())
}

// tlsConfig returns how TLS is spoken with s.
func (s *Server) tlsConfig() *tls.Config {
	if s.tls != nil {
		return s.tls
	}
	return &tls.Config{MinVersion: tls.VersionTLS12}
}
