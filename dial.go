package redlatch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/dialer"
	"github.com/redlatch/redlatch/internal/limits"
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

// dialer returns the function that makes connections to rawURL.
func (s *settings) dialer(rawURL string) (dialFunc, error) {
	if len(rawURL) > redisurl.Longest {
		return nil, fmt.Errorf("redlatch: an address of %d bytes", len(rawURL))
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		// The parser's error quotes the URL, password and all.
		return nil, errors.New("redlatch: the address is not a URL")
	}
	switch {
	case u.Scheme == "unix" && u.Host != "":
		return nil, errors.New("redlatch: the address of a socket has three slashes: unix:///path")
	case redisurl.Misplaced(u) || u.Fragment != "":
		return nil, errors.New("redlatch: the address is not a URL: what is special in its user or password must be escaped")
	case s.tls != nil && u.Scheme != "rediss":
		// It would be plain text, without a warning.
		return nil, fmt.Errorf("redlatch: address %s: WithTLSConfig needs an address with the scheme rediss", redisurl.Show(rawURL))
	}
	switch u.Scheme {
	case "redis", "rediss":
		if u.RawQuery != "" {
			return nil, fmt.Errorf("redlatch: address %s: the address of one server has no options: "+
				"leave out the ? and what follows, see the options of Open", redisurl.Show(rawURL))
		}
		return s.tcpDialer(u)
	case "unix":
		return s.unixDialer(u)
	}
	return nil, fmt.Errorf("redlatch: %s: the scheme must be redis, rediss or unix, or one with -cluster or -sentinel", redisurl.Show(rawURL))
}

// replicaDialer returns the function that makes connections to the replicas of the
// server at rawURL, which dialer has accepted, as to itself. They are where the
// server says, over TCP even when it is itself reached by a socket.
func (s *settings) replicaDialer(rawURL string) func(context.Context, string) (redis.Conn, error) {
	to, secure := redisurl.Server{Network: "tcp"}, false
	if u, err := url.Parse(rawURL); err == nil {
		secure = u.Scheme == "rediss"
		as := redisurl.ServerOf(u)
		to.User, to.Password = as.User, as.Password
	}
	return func(ctx context.Context, addr string) (redis.Conn, error) {
		to := to
		to.Addr = addr
		return s.dialTo(ctx, to, secure)
	}
}

func (s *settings) tcpDialer(u *url.URL) (dialFunc, error) {
	if u.Hostname() == "" {
		return nil, fmt.Errorf("redlatch: %s has no host", redisurl.ShowURL(u))
	}
	if db := strings.Trim(u.Path, "/"); db != "" {
		if n, err := strconv.Atoi(db); err != nil || n < 0 {
			return nil, badDatabase(u, db)
		}
	}
	password, given := u.User.Password() // a user alone counts as the password
	if given && u.User.Username() != "" && password == "" && s.credentials == nil {
		return nil, needsPassword(redisurl.ShowURL(u))
	}
	return s.dialerOf(u), nil
}

func (s *settings) unixDialer(u *url.URL) (dialFunc, error) {
	if u.Path == "" {
		return nil, fmt.Errorf("redlatch: %s has no path", redisurl.ShowURL(u))
	}
	if err := checkSocketDatabase(u); err != nil {
		return nil, err
	}
	password, _ := u.User.Password()
	if u.User.Username() != "" && password == "" && s.credentials == nil {
		return nil, needsPassword(redisurl.ShowURL(u))
	}
	return s.dialerOf(u), nil
}

// dialerOf returns the function that makes connections to the server at u, which was checked.
func (s *settings) dialerOf(u *url.URL) dialFunc {
	to, secure := redisurl.ServerOf(u), u.Scheme == "rediss"
	return func(ctx context.Context) (redis.Conn, error) { return s.dialTo(ctx, to, secure) }
}

// needsPassword refuses an address whose user the server would not hear of: it would take the client
// for its default user.
func needsPassword(shown string) error {
	return fmt.Errorf("redlatch: %s: its user needs a password, any for a user with nopass", shown)
}

// checkSocketDatabase checks the database in the address of a socket, whose path is a file.
func checkSocketDatabase(u *url.URL) error {
	options, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fmt.Errorf("redlatch: %s: its options cannot be read", redisurl.ShowURL(u))
	}
	for name, values := range options {
		if name != "db" || len(values) > 1 {
			return fmt.Errorf("redlatch: %s: a socket's address has one option at most, db", redisurl.ShowURL(u))
		}
	}
	text := options.Get("db")
	if text == "" {
		return nil
	}
	if db, err := strconv.Atoi(text); err != nil || db < 0 {
		return badDatabase(u, text)
	}
	return nil
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
	d := dialer.Dialer{Timeout: s.dialTimeout, Write: s.command}
	switch {
	case secure && s.tls != nil:
		d.TLS = s.tls
	case secure:
		d.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return d.Dial(ctx, to)
}

// badDatabase says that text is no number of a database. It may be no database at all
// but the password of an address with a slash too many.
func badDatabase(u *url.URL, text string) error {
	if strings.Contains(text, "@") {
		return fmt.Errorf("redlatch: %s: the database is no number", redisurl.ShowURL(u))
	}
	return fmt.Errorf("redlatch: %s: %s is no database number", redisurl.ShowURL(u), limits.Quote(text))
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
