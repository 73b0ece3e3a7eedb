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
	target, secure := url.URL{Scheme: "redis"}, false
	if u, err := url.Parse(rawURL); err == nil {
		secure = u.Scheme == "rediss"
		if s.credentials == nil {
			target.User = u.User
		}
	}
	return func(ctx context.Context, addr string) (redis.Conn, error) {
		replica := target
		replica.Host = addr
		if _, err := url.Parse(replica.String()); err != nil {
			// The parser's error would quote the password.
			return nil, fmt.Errorf("redlatch: a replica cannot be at %s", limits.Quote(addr))
		}
		return s.withOptions(secure, func(ctx context.Context, opts []redis.DialOption) (redis.Conn, error) {
			return redis.DialURLContext(ctx, replica.String(), opts...)
		})(ctx)
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
	target := *u
	target.Scheme = "redis" // TLS is ours, and below it
	if s.credentials != nil {
		target.User = nil
	}
	return s.withOptions(u.Scheme == "rediss", func(ctx context.Context, opts []redis.DialOption) (redis.Conn, error) {
		return redis.DialURLContext(ctx, target.String(), opts...)
	}), nil
}

func (s *settings) unixDialer(u *url.URL) (dialFunc, error) {
	if u.Path == "" {
		return nil, fmt.Errorf("redlatch: %s has no path", redisurl.ShowURL(u))
	}
	db, err := socketDatabase(u)
	if err != nil {
		return nil, err
	}
	password, _ := u.User.Password()
	user := u.User.Username()
	if user != "" && password == "" && s.credentials == nil {
		return nil, needsPassword(redisurl.ShowURL(u))
	}
	return s.withOptions(false, func(ctx context.Context, opts []redis.DialOption) (redis.Conn, error) {
		opts = append([]redis.DialOption{
			redis.DialDatabase(db), redis.DialUsername(user), redis.DialPassword(password),
		}, opts...)
		return redis.DialContext(ctx, "unix", u.Path, opts...)
	}), nil
}

// needsPassword refuses an address whose user the server would not hear of: it would take the client
// for its default user.
func needsPassword(shown string) error {
	return fmt.Errorf("redlatch: %s: its user needs a password, any for a user with nopass", shown)
}

// socketDatabase returns the database in the address of a socket, whose path is a file.
func socketDatabase(u *url.URL) (int, error) {
	options, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return 0, fmt.Errorf("redlatch: %s: its options cannot be read", redisurl.ShowURL(u))
	}
	for name, values := range options {
		if name != "db" || len(values) > 1 {
			return 0, fmt.Errorf("redlatch: %s: a socket's address has one option at most, db", redisurl.ShowURL(u))
		}
	}
	text := options.Get("db")
	if text == "" {
		return 0, nil
	}
	db, err := strconv.Atoi(text)
	if err != nil || db < 0 {
		return 0, badDatabase(u, text)
	}
	return db, nil
}

// withOptions adds the settings that every connection has, secure ones with TLS. The read timeout is for the
// handshake: the executor and the subscriber read with bounds of their own. redigo heeds
// ctx until the connection stands; hangUp heeds it until the handshake is over, too.
func (s *settings) withOptions(secure bool, dial func(context.Context, []redis.DialOption) (redis.Conn, error)) dialFunc {
	return func(ctx context.Context) (redis.Conn, error) {
		h := &hangUp{}
		defer context.AfterFunc(ctx, h.now)()
		reach := h.dial(s.dialTimeout)
		if secure {
			reach = s.secure(reach)
		}
		var below *respconn.Guarded
		opts := []redis.DialOption{
			redis.DialContextFunc(s.guarded(reach, &below)),
			redis.DialReadTimeout(s.dialTimeout),
		}
		if s.credentials != nil {
			user, password, err := s.credentials(ctx)
			if err != nil {
				return nil, fmt.Errorf("redlatch: credentials: %w", err)
			}
			opts = append(opts, redis.DialUsername(user), redis.DialPassword(password))
		}
		conn, err := dial(ctx, opts)
		if err != nil {
			return nil, err
		}
		return respconn.On(conn, below), nil
	}
}

// badDatabase says that text is no number of a database. It may be no database at all
// but the password of an address with a slash too many.
func badDatabase(u *url.URL, text string) error {
	if strings.Contains(text, "@") {
		return fmt.Errorf("redlatch: %s: the database is no number", redisurl.ShowURL(u))
	}
	return fmt.Errorf("redlatch: %s: %s is no database number", redisurl.ShowURL(u), limits.Quote(text))
}

// guarded adds to reach, TLS and all, bounds on what the server may announce and on
// each write, and stores what it made in below.
func (s *settings) guarded(reach reachFunc, below **respconn.Guarded) reachFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := reach(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		*below = respconn.Guard(respconn.Bounded(conn, s.command))
		return *below, nil
	}
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

// hangUp closes a connection whose dial was given up during the handshake.
type hangUp struct {
	mu   sync.Mutex // guards conn and over
	conn net.Conn
	over bool
}

func (h *hangUp) dial(timeout time.Duration) reachFunc {
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
			_ = conn.Close() // no caller waits for it any more
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
