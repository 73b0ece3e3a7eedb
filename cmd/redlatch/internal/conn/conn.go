// Package conn makes the short connections of the command line, and turns what
// can go wrong with an address into one line that says what to do. No address
// is ever shown with its user or password.
package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/transport"
)

// timeout bounds each step of a short connection: dial, write, read.
const timeout = 5 * time.Second

// form is what an address looks like.
const form = "redis://[[user]:password@]host[:port][/db], the same with rediss:// for TLS, or unix:///path/to/socket"

// Check returns an error that names no part of the address if it cannot be the
// address of a server. An address that was mistyped may hold a password where
// no parser would look for it.
func Check(rawURL string) error {
	u, err := url.Parse(rawURL)
	if err == nil {
		switch {
		case (u.Scheme == "redis" || u.Scheme == "rediss") && u.Hostname() != "":
			return nil
		case u.Scheme == "unix" && u.Path != "":
			return nil
		}
	}
	return errors.New("the address in --redis or REDIS_URL is not of the form " + form)
}

// Show returns the address without user, password and options.
func Show(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Opaque != "" {
		return "the given address"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// Dial connects to the server at rawURL, whose forms are those of
// redlatch.Open. ctx bounds the connecting alone; replies are waited for 5 s.
func Dial(ctx context.Context, rawURL string) (redis.Conn, error) {
	if err := Check(rawURL); err != nil {
		return nil, err
	}
	opts := []redis.DialOption{
		redis.DialConnectTimeout(timeout),
		redis.DialTLSHandshakeTimeout(timeout),
		redis.DialReadTimeout(timeout),
		redis.DialWriteTimeout(timeout),
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("the address is not a URL") // its own error quotes the password
	}
	if u.Scheme != "unix" {
		return redis.DialURLContext(ctx, rawURL, opts...)
	}
	password, _ := u.User.Password()
	db := 0
	if text := u.Query().Get("db"); text != "" {
		if db, err = strconv.Atoi(text); err != nil {
			return nil, fmt.Errorf("%q is no database number", text)
		}
	}
	opts = append(opts, redis.DialUsername(u.User.Username()), redis.DialPassword(password), redis.DialDatabase(db))
	return redis.DialContext(ctx, "unix", u.Path, opts...)
}

// Problem returns the line to show when the server at rawURL could not be used
// because of err: what is wrong, and what to do about it.
func Problem(rawURL string, err error) string {
	if bad := Check(rawURL); bad != nil {
		return bad.Error()
	}
	if text, refused := refusal(err); refused {
		return fmt.Sprintf("Redis at %s refuses: %s. Check user, password and database in --redis or REDIS_URL.",
			Show(rawURL), text)
	}
	return fmt.Sprintf("cannot reach Redis at %s: %s. Start one, or set --redis or REDIS_URL; "+
		"`redlatch serve` starts one for development.", Show(rawURL), Reason(err))
}

// refusal returns the text of an error that the server itself sent.
func refusal(err error) (string, bool) {
	var plain redis.Error
	if errors.As(err, &plain) {
		return strings.TrimRight(plain.Error(), "."), true
	}
	var wrapped *transport.ServerError
	if errors.As(err, &wrapped) {
		return strings.TrimRight(wrapped.Text, "."), true
	}
	return "", false
}

// Reason returns the innermost cause of a network error, in few words.
func Reason(err error) string {
	var errno syscall.Errno
	var dns *net.DNSError
	var timed net.Error
	switch {
	case errors.As(err, &dns):
		return dns.Err
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timed) && timed.Timeout():
		return "timed out"
	}
	// Errors of several lines come from errors.Join.
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}
