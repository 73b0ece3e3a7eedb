package rueidis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
)

// New returns a Redlatch client for the server or cluster that client uses. client must stay open until
// the Redlatch client is closed; closing the Redlatch client does not close client. New rejects a
// client that uses Sentinel; use [NewSentinel] instead. If a single server has replicas to which
// Redisson may subscribe, set redlatch.WithReplicaDialer with a [Dialer].
//
// In a cluster, New sends PUBSUB SHARDNUMSUB, unless redlatch.WithShardedPubSub is set, and fails if no
// node replies before ctx ends. Otherwise it does no I/O. It panics if ctx is nil.
func New(ctx context.Context, client rueidis.Client, opts ...redlatch.Option) (*redlatch.Client, error) {
	if ctx == nil {
		panic("rueidis: nil Context")
	}
	if client == nil {
		return nil, fmt.Errorf("%w: rueidis: New needs a client", redlatch.ErrInvalid)
	}
	switch mode := client.Mode(); mode {
	case rueidis.ClientModeStandalone:
		return redlatch.New(func(ctx context.Context) (redis.Conn, error) { return take(ctx, client) }, opts...)
	case rueidis.ClientModeCluster:
		return newCluster(ctx, client, opts)
	case rueidis.ClientModeSentinel:
		return nil, errSentinel
	default:
		return nil, fmt.Errorf("%w: rueidis: unsupported client mode %q", redlatch.ErrInvalid, mode)
	}
}

var errSentinel = fmt.Errorf("%w: rueidis: Sentinel clients are not supported: pass the client's options to NewSentinel", redlatch.ErrInvalid)

// NewSentinel returns a Redlatch client for a master monitored by Sentinels. InitAddress lists the Sentinels, and
// Sentinel.MasterSet is their name for the master; see [Dialer] for the other fields. Redlatch queries all Sentinels
// concurrently and follows the first report of a failover. NewSentinel does no I/O. See redlatch.NewSentinel and
// redlatch.AskSentinels for the commands that are sent later.
func NewSentinel(option rueidis.ClientOption, opts ...redlatch.Option) (*redlatch.Client, error) {
	if option.Sentinel.MasterSet == "" || len(option.InitAddress) == 0 {
		return nil, fmt.Errorf("%w: rueidis: NewSentinel needs Sentinel addresses and a master name", redlatch.ErrInvalid)
	}
	ask := redlatch.AskSentinels(option.Sentinel.MasterSet, option.InitAddress, Dialer(sentinelOption(option)))
	return redlatch.NewSentinel(ask, Dialer(option), opts...)
}

func sentinelOption(opt rueidis.ClientOption) rueidis.ClientOption {
	s := opt.Sentinel
	opt.Username, opt.Password, opt.AuthCredentialsFn = s.Username, s.Password, nil
	opt.TLSConfig, opt.Dialer, opt.ClientName = s.TLSConfig, s.Dialer, s.ClientName
	opt.SelectDB, opt.ClientNoTouch, opt.ClientNoEvict = 0, false, false
	return opt
}

const writeTimeout = 3 * time.Second

// Dialer returns a function for redlatch.WithReplicaDialer that connects to the server at addr (in the form host:port)
// in the same way as rueidis. It uses DialCtxFn, DialFn, Dialer and TLSConfig, AuthCredentialsFn (called for each
// connection; RefreshAfter is ignored), Username and Password, ClientName, SelectDB, ClientNoTouch and ClientNoEvict,
// and sends AUTH, CLIENT SETNAME, SELECT, CLIENT NO-TOUCH and CLIENT NO-EVICT as needed. Errors from the server have
// redigo's type redis.Error. It is safe for concurrent use.
func Dialer(option rueidis.ClientOption) func(ctx context.Context, addr string) (redis.Conn, error) {
	return func(ctx context.Context, addr string) (redis.Conn, error) {
		conn, err := reach(ctx, &option, addr)
		if err != nil {
			return nil, fmt.Errorf("rueidis: dial %q: %w", addr, err)
		}
		user, password, err := credentials(&option, conn.RemoteAddr())
		if err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("rueidis: AuthCredentialsFn: %w", err)
		}
		c := redlatch.NewConn(conn, writeTimeout)
		if err := greet(ctx, c, &option, user, password); err != nil {
			_ = c.Close()
			return nil, fmt.Errorf("rueidis: connect to %q: %w", addr, err)
		}
		return c, nil
	}
}

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

var errNoConn = errors.New("the dial function returned no connection")

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

func credentials(opt *rueidis.ClientOption, addr net.Addr) (user, password string, err error) {
	if opt.AuthCredentialsFn == nil {
		return opt.Username, opt.Password, nil
	}
	is, err := opt.AuthCredentialsFn(rueidis.AuthCredentialsContext{Address: addr})
	return is.Username, is.Password, err
}

func greet(ctx context.Context, conn redis.Conn, opt *rueidis.ClientOption, user, password string) (err error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	sent := 0
	send := func(wanted bool, name string, args ...any) {
		if wanted {
			err = errors.Join(err, conn.Send(name, args...))
			sent++
		}
	}
	send(user != "", "AUTH", user, password)
	send(user == "" && password != "", "AUTH", password)
	send(opt.ClientName != "", "CLIENT", "SETNAME", opt.ClientName)
	send(opt.SelectDB != 0, "SELECT", opt.SelectDB)
	send(opt.ClientNoTouch, "CLIENT", "NO-TOUCH", "ON")
	send(opt.ClientNoEvict, "CLIENT", "NO-EVICT", "ON")
	if sent > 0 {
		err = errors.Join(err, conn.Flush())
	}
	for range sent {
		if err == nil {
			_, err = conn.Receive()
		}
	}
	var refused redis.Error
	if errors.As(err, &refused) {
		// The arguments of an unknown AUTH contain the password.
		text, _, _ := strings.Cut(string(refused), ", with args beginning with:")
		err = redis.Error(text)
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return err
}
