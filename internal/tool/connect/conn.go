package connect

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/dialer"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/redisurl"
)

// timeout bounds each step of a short connection: dial, write, read.
const timeout = 5 * time.Second

// errAddress says what an address looks like.
var errAddress = errors.New("the address in --redis or REDIS_URL is not of the form " +
	"redis://[[user]:password@]host[:port][/db], the same with rediss:// for TLS, unix:///path/to/socket, " +
	"redis-cluster://host[:port],host[:port] or redis-sentinel://host[:port],host[:port]/master")

// What is wrong with an address that has the form.
var (
	errOptions = errors.New("the address in --redis or REDIS_URL has options, and that of one server has none: " +
		"leave out the ? and what follows")
	errSocketOptions = errors.New("the address in --redis or REDIS_URL: that of a unix socket has one option at most, " +
		"db, which is the number of the database")
	errDatabase = errors.New("the address in --redis or REDIS_URL: what follows the / is the number of the database, such as /0")
	errPort     = errors.New("the address in --redis or REDIS_URL: a port is a number from 1 to 65535")
)

// Check returns an error that names no part of the address if it cannot be the
// address of a server.
func Check(rawURL string) error {
	u, err := url.Parse(rawURL)
	if err != nil || redisurl.Misplaced(u) {
		return errAddress
	}
	switch {
	case (u.Scheme == "redis" || u.Scheme == "rediss") && u.Hostname() != "":
		return checkTCP(u)
	case u.Scheme == "unix" && u.Path != "":
		return checkSocket(u)
	}
	return errAddress
}

func checkTCP(u *url.URL) error {
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return errOptions
	}
	if db := strings.Trim(u.Path, "/"); db != "" && !isNumber(db) {
		return errDatabase
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return errPort
		}
	}
	return nil
}

func checkSocket(u *url.URL) error {
	options := u.Query()
	if db := options.Get("db"); db != "" && !isNumber(db) {
		return errSocketOptions
	}
	options.Del("db")
	if len(options) > 0 {
		return errSocketOptions
	}
	return nil
}

// isNumber reports whether text can be the number of a database.
func isNumber(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 0 && n <= math.MaxInt32
}

// HasPassword reports whether an address has a password in it.
func HasPassword(rawURL string) bool {
	if redisurl.IsDeployment(rawURL) {
		d, err := redisurl.ParseDeployment(rawURL)
		return err == nil && d.Password != ""
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return false
	}
	_, has := u.User.Password()
	return has
}

// String returns the address without user, password and options.
func (s *Server) String() string { return redisurl.Show(s.address) }

// GoString returns what String does, so that no format shows a password.
func (s *Server) GoString() string { return s.String() }

// Shows reports whether an address has any password in it, that of Sentinels included.
func Shows(rawURL string) bool {
	if redisurl.IsDeployment(rawURL) {
		d, err := redisurl.ParseDeployment(rawURL)
		return err == nil && d.Password+d.SentinelPassword != ""
	}
	return HasPassword(rawURL)
}

// Host returns the name or address of the server's machine, "" for a unix socket and a
// deployment, whose masters have one.
func (s *Server) Host() string {
	if s.many != nil {
		return ""
	}
	u, err := url.Parse(s.address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// User returns the user of the connection, "default" when the address has none.
func (s *Server) User() string {
	if s.many != nil {
		return cmp.Or(s.many.User, "default")
	}
	if u, err := url.Parse(s.address); err == nil && u.User.Username() != "" {
		return u.User.Username()
	}
	return "default"
}

// Open connects as redlatch.Open does. OpenedBy knows the client. Its errors are those of Problem.
func (s *Server) Open(ctx context.Context, opts ...redlatch.Option) (*redlatch.Client, error) {
	if s.tls != nil {
		opts = append(opts, redlatch.WithTLSConfig(s.tls))
	}
	client, err := redlatch.Open(ctx, s.address, opts...)
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
	if s.many != nil {
		return s.Open(ctx, opts...)
	}
	replica := func(ctx context.Context, addr string) (redis.Conn, error) { return s.replica(addr).dial(ctx) }
	return redlatch.New(s.dial, append(opts, redlatch.WithReplicaDialer(replica))...)
}

// replica returns a replica of s, or its master, at host:port, which is reached as s is, over TCP.
func (s *Server) replica(addr string) *Server {
	u, err := url.Parse(s.address)
	if err != nil {
		return s // it was parsed before
	}
	if u.Scheme == "unix" {
		u.Scheme, u.Path, u.RawQuery = "redis", "", ""
	}
	u.Host = addr
	return &Server{address: u.String(), tls: s.tls}
}

// Dial makes one connection: to the server, to the master that Sentinels name now, or
// one to a cluster on which commands find their nodes, and that cannot listen. ctx bounds
// the connecting alone; replies are waited for 5 s. Its errors are those of Problem.
func (s *Server) Dial(ctx context.Context) (redis.Conn, error) {
	c, err := s.dial(ctx)
	if err != nil {
		return nil, s.Problem(err)
	}
	return c, nil
}

func (s *Server) dial(ctx context.Context) (redis.Conn, error) {
	if s.many != nil {
		return s.dialDeployment(ctx)
	}
	u, err := url.Parse(s.address)
	if err != nil {
		return nil, errAddress // its own error quotes the password
	}
	d := dialer.Dialer{Timeout: timeout, Write: timeout}
	if u.Scheme == "rediss" {
		d.TLS = s.tlsConfig()
	}
	return d.Dial(ctx, redisurl.ServerOf(u))
}

// tlsConfig returns how TLS is spoken with s.
func (s *Server) tlsConfig() *tls.Config {
	if s.tls != nil {
		return s.tls
	}
	return &tls.Config{MinVersion: tls.VersionTLS12}
}
