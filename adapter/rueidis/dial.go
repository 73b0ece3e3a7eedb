package rueidis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
)

// writeTimeout bounds one write to a connection.
const writeTimeout = 3 * time.Second

// Dialer returns a function, such as for redlatch.WithReplicaDialer, that connects to the server at addr,
// host:port, as a rueidis client with these options does. It uses DialCtxFn, DialFn, Dialer and TLSConfig,
// AuthCredentialsFn (for each connection; not RefreshAfter), Username and Password, ClientName, SelectDB,
// ClientNoTouch and ClientNoEvict, and sends AUTH, CLIENT SETNAME, SELECT, CLIENT NO-TOUCH and CLIENT
// NO-EVICT as needed. Errors of the server are redigo's redis.Error. The connection is one of
// redlatch.NewConn. The function is safe for concurrent use.
func Dialer(option rueidis.ClientOption) func(ctx context.Context, addr string) (redis.Conn, error) {
	return func(ctx context.Context, addr string) (redis.Conn, error) {
		conn, err := reach(ctx, &option, addr)
		if err != nil {
			return nil, fmt.Errorf("rueidis: dial %q: %w", addr, err)
		}
		commands, err := greetings(&option, conn.RemoteAddr())
		if err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("rueidis: AuthCredentialsFn: %w", err)
		}
		c := redlatch.NewConn(conn, writeTimeout)
		if err := greet(ctx, c, commands); err != nil {
			_ = c.Close()
			return nil, fmt.Errorf("rueidis: connect to %q: %w", addr, err)
		}
		return c, nil
	}
}

// reach makes a network connection as rueidis does, including TLS.
func reach(ctx context.Context, opt *rueidis.ClientOption, addr string) (conn net.Conn, err error) {
	dialer := opt.Dialer
	switch {
	case opt.DialCtxFn != nil:
		conn, err = opt.DialCtxFn(ctx, addr, &dialer, opt.TLSConfig)
	case opt.DialFn != nil:
		conn, err = promptly(ctx, func() (net.Conn, error) { return opt.DialFn(addr, &dialer, opt.TLSConfig) })
	case opt.TLSConfig != nil:
		secure := tls.Dialer{NetDialer: &dialer, Config: opt.TLSConfig}
		conn, err = secure.DialContext(ctx, "tcp", addr)
	default:
		conn, err = dialer.DialContext(ctx, "tcp", addr)
	}
	if err == nil && conn == nil {
		err = errNoConn
	}
	return conn, err
}

var errNoConn = errors.New("the dial function has made no connection")

// promptly calls dial and returns when ctx ends. It closes a connection that is made later.
func promptly(ctx context.Context, dial func() (net.Conn, error)) (net.Conn, error) {
	type outcome struct {
		conn net.Conn
		err  error
	}
	came := make(chan outcome)
	go func() {
		conn, err := dial()
		select {
		case came <- outcome{conn, err}:
		case <-ctx.Done():
			if conn != nil {
				_ = conn.Close()
			}
		}
	}()
	select {
	case o := <-came:
		return o.conn, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

type command struct {
	name string
	args []any
}

// greetings returns the commands that initialize a connection to the server at addr.
func greetings(opt *rueidis.ClientOption, addr net.Addr) (all []command, err error) {
	user, password := opt.Username, opt.Password
	if opt.AuthCredentialsFn != nil {
		is, err := opt.AuthCredentialsFn(rueidis.AuthCredentialsContext{Address: addr})
		if err != nil {
			return nil, err
		}
		user, password = is.Username, is.Password
	}
	add := func(wanted bool, name string, args ...any) {
		if wanted {
			all = append(all, command{name, args})
		}
	}
	add(user != "", "AUTH", user, password)
	add(user == "" && password != "", "AUTH", password)
	add(opt.ClientName != "", "CLIENT", "SETNAME", opt.ClientName)
	add(opt.SelectDB != 0, "SELECT", opt.SelectDB)
	add(opt.ClientNoTouch, "CLIENT", "NO-TOUCH", "ON")
	add(opt.ClientNoEvict, "CLIENT", "NO-EVICT", "ON")
	return all, nil
}

// greet pipelines commands and returns the first error.
func greet(ctx context.Context, conn redis.Conn, commands []command) (err error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	for _, c := range commands {
		err = errors.Join(err, conn.Send(c.name, c.args...))
	}
	if len(commands) > 0 {
		err = errors.Join(err, conn.Flush())
	}
	for range commands {
		if err == nil {
			_, err = conn.Receive()
		}
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return err
}
