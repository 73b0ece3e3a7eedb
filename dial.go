package redlatch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/core"
)

type dialFunc = func(ctx context.Context) (redis.Conn, error)

func redigoTransport(dial dialFunc, set *settings) *core.Redigo {
	return core.NewRedigo(core.RedigoConfig{
		Dial:        dial,
		DialReplica: set.dialReplica,
		Command:     set.command,
		Lease:       set.watchdog,
		DialTimeout: set.dialTimeout,
		ClientName:  set.clientName,
		Logger:      set.logger,
		Hooks:       hooks(set),
	})
}

// dialer returns the function that makes connections to rawURL.
func (s *settings) dialer(rawURL string) (dialFunc, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		// The parser's error quotes the URL, password and all.
		return nil, errors.New("redlatch: the address is not a URL")
	}
	switch u.Scheme {
	case "redis", "rediss":
		return s.tcpDialer(u)
	case "unix":
		return s.unixDialer(u)
	}
	return nil, fmt.Errorf("redlatch: address %s: the scheme must be redis, rediss or unix", redact(rawURL))
}

// replicaDialer returns the function that makes connections to the replicas of the
// server at rawURL, which dialer has accepted, as to itself. They are where the
// server says, over TCP even when it is itself reached by a socket.
func (s *settings) replicaDialer(rawURL string) func(context.Context, string) (redis.Conn, error) {
	target := url.URL{Scheme: "redis"}
	if u, err := url.Parse(rawURL); err == nil {
		if u.Scheme == "rediss" {
			target.Scheme = u.Scheme
		}
		if s.credentials == nil {
			target.User = u.User
		}
	}
	return func(ctx context.Context, addr string) (redis.Conn, error) {
		replica := target
		replica.Host = addr
		return s.withOptions(func(ctx context.Context, opts []redis.DialOption) (redis.Conn, error) {
			return redis.DialURLContext(ctx, replica.String(), opts...)
		})(ctx)
	}
}

func (s *settings) tcpDialer(u *url.URL) (dialFunc, error) {
	if u.Hostname() == "" {
		return nil, fmt.Errorf("redlatch: address %s has no host", shown(u))
	}
	if db := strings.Trim(u.Path, "/"); db != "" {
		if n, err := strconv.Atoi(db); err != nil || n < 0 {
			return nil, fmt.Errorf("redlatch: address %s: %q is no database number", shown(u), db)
		}
	}
	target := *u
	if s.credentials != nil {
		target.User = nil
	}
	return s.withOptions(func(ctx context.Context, opts []redis.DialOption) (redis.Conn, error) {
		return redis.DialURLContext(ctx, target.String(), opts...)
	}), nil
}

func (s *settings) unixDialer(u *url.URL) (dialFunc, error) {
	if u.Path == "" {
		return nil, fmt.Errorf("redlatch: address %s has no path", shown(u))
	}
	db := 0
	if text := u.Query().Get("db"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("redlatch: address %s: %q is no database number", shown(u), text)
		}
		db = n
	}
	password, _ := u.User.Password()
	user := u.User.Username()
	return s.withOptions(func(ctx context.Context, opts []redis.DialOption) (redis.Conn, error) {
		opts = append([]redis.DialOption{
			redis.DialDatabase(db), redis.DialUsername(user), redis.DialPassword(password),
		}, opts...)
		return redis.DialContext(ctx, "unix", u.Path, opts...)
	}), nil
}

// withOptions adds the settings that every connection has. The read timeout is
// for the handshake: the executor and the subscriber read with bounds of their
// own. redigo heeds ctx until the connection stands; hangUp heeds it until the
// handshake is over, too.
func (s *settings) withOptions(dial func(context.Context, []redis.DialOption) (redis.Conn, error)) dialFunc {
	return func(ctx context.Context) (redis.Conn, error) {
		h := &hangUp{}
		defer context.AfterFunc(ctx, h.now)()
		opts := []redis.DialOption{
			redis.DialContextFunc(h.dial(s.dialTimeout)),
			redis.DialTLSHandshakeTimeout(s.dialTimeout),
			redis.DialReadTimeout(s.dialTimeout),
			redis.DialWriteTimeout(s.command),
		}
		if s.tls != nil {
			opts = append(opts, redis.DialTLSConfig(s.tls))
		}
		if s.credentials != nil {
			user, password, err := s.credentials(ctx)
			if err != nil {
				return nil, fmt.Errorf("redlatch: credentials: %w", err)
			}
			opts = append(opts, redis.DialUsername(user), redis.DialPassword(password))
		}
		return dial(ctx, opts)
	}
}

// hangUp closes a connection whose dial was given up during the handshake.
type hangUp struct {
	mu   sync.Mutex // guards conn and over
	conn net.Conn
	over bool
}

func (h *hangUp) dial(timeout time.Duration) func(context.Context, string, string) (net.Conn, error) {
	d := net.Dialer{Timeout: timeout}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		h.mu.Lock()
		h.conn = conn
		over := h.over
		h.mu.Unlock()
		if over {
			_ = conn.Close() // nobody waits for it any more
			return nil, context.Cause(ctx)
		}
		return conn, nil
	}
}

func (h *hangUp) now() {
	h.mu.Lock()
	h.over = true
	conn := h.conn
	h.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // the dial that used it fails, and reports that
	}
}

// redact returns what may be shown of an address: no user, no password, and
// nothing at all of an address that cannot be taken apart.
func redact(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Opaque != "" {
		return "the given address"
	}
	return shown(u)
}

func shown(u *url.URL) string {
	if u.Opaque != "" {
		return "the given address"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
