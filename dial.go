package redlatch

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/core"
)

type dialFunc = func(ctx context.Context) (redis.Conn, error)

func redigoTransport(dial dialFunc, set *settings) *core.Redigo {
	return core.NewRedigo(core.RedigoConfig{
		Dial:        dial,
		Command:     set.command,
		Lease:       set.watchdog,
		DialTimeout: set.dialTimeout,
		ClientName:  set.clientName,
		Logger:      set.logger,
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

func (s *settings) tcpDialer(u *url.URL) (dialFunc, error) {
	if u.Hostname() == "" {
		return nil, fmt.Errorf("redlatch: address %s has no host", u.Redacted())
	}
	if db := strings.Trim(u.Path, "/"); db != "" {
		if n, err := strconv.Atoi(db); err != nil || n < 0 {
			return nil, fmt.Errorf("redlatch: address %s: %q is no database number", u.Redacted(), db)
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
		return nil, fmt.Errorf("redlatch: address %s has no path", u.Redacted())
	}
	db := 0
	if text := u.Query().Get("db"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("redlatch: address %s: %q is no database number", u.Redacted(), text)
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
// own.
func (s *settings) withOptions(dial func(context.Context, []redis.DialOption) (redis.Conn, error)) dialFunc {
	return func(ctx context.Context) (redis.Conn, error) {
		opts := []redis.DialOption{
			redis.DialConnectTimeout(s.dialTimeout),
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

// redact returns the address without its password.
func redact(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "the given address"
	}
	return u.Redacted()
}
