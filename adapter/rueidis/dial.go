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

// Dialer returns a function that connects to the server at an address, host:port, as a
// rueidis client with these options does, without such a client. What counts is DialCtxFn,
// DialFn, Dialer and TLSConfig, AuthCredentialsFn (called for each connection; RefreshAfter
// is not used), Username and Password, ClientName, SelectDB, ClientNoTouch and
// ClientNoEvict. The function is for redlatch.WithReplicaDialer and its like, and safe for
// concurrent use. It sends AUTH, CLIENT SETNAME, SELECT, CLIENT NO-TOUCH and CLIENT
// NO-EVICT, each if the options ask for it; an error of the server's is a redis.Error of
// redigo. The connection is one of redlatch.NewConn.
func Dialer(option rueidis.ClientOption) func(ctx context.Context, addr string) (redis.Conn, error) {
	return func(ctx context.Context, addr string) (redis.Conn, error) {
		conn, err := reach(ctx, &option, addr)
		if err != nil {
			return nil, fmt.Errorf("rueidis: dial %q: %w", addr, err)
		}
		commands, err := greetings(&option, conn.RemoteAddr())
		if err != nil {
			_ = conn.Close() // unused
			return nil, fmt.Errorf("rueidis: AuthCredentialsFn: %w", err)
		}
		c := redlatch.NewConn(conn, writeTimeout)
		if err := greet(ctx, c, commands); err != nil {
			_ = c.Close() // the first error tells more
			return nil, fmt.Errorf("rueidis: connect to %q: %w", addr, err)
		}
		return c, nil
	}
}

// reach makes a network connection, TLS included, as rueidis does.
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

// errNoConn is for a dial function of the user's that does not do what it is there for.
var errNoConn = errors.New("the dial function has made no connection")

// promptly returns when ctx ends, though dial knows nothing of it: a connection that comes
// later is closed.
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
				_ = conn.Close() // too late to be of use
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

// command is a command with its arguments.
type command struct {
	name string
	args []any
}

// greetings returns the commands that make a connection to the server at addr what the
// options say.
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

// greet sends commands in one go, and returns the first error in their replies.
func greet(ctx context.Context, conn redis.Conn, commands []command) (err error) {
	// The connection knows nothing of ctx: closing it ends what is under way.
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
