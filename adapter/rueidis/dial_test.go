package rueidis

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	lib "github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestAConnectionIsWhatTheOptionsSay(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do(t, "ACL", "SETUSER", "u", "on", ">p", "+@all", "~*", "&*")
	var asked net.Addr
	for name, change := range map[string]func(o *lib.ClientOption){
		"password": func(*lib.ClientOption) {},
		"function": func(o *lib.ClientOption) {
			o.Username, o.Password = "", ""
			o.AuthCredentialsFn = func(c lib.AuthCredentialsContext) (lib.AuthCredentials, error) {
				asked = c.Address
				return lib.AuthCredentials{Username: "u", Password: "p"}, nil
			}
		},
		"old dial function": func(o *lib.ClientOption) {
			o.DialFn = func(addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) { return d.Dial("tcp", addr) }
		},
		"dial function": func(o *lib.ClientOption) {
			o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return d.DialContext(ctx, "tcp", addr)
			}
		},
	} {
		opt := lib.ClientOption{Username: "u", Password: "p", ClientName: "n", SelectDB: 3, ClientNoEvict: true}
		change(&opt)
		conn, err := Dialer(opt)(t.Context(), server.Addr())
		require.NoError(t, err, name)
		info, err := redis.String(conn.Do("CLIENT", "INFO"))
		require.NoError(t, err, name)
		for _, want := range []string{" user=u ", " name=n ", " db=3 ", " flags=e "} {
			assert.Contains(t, info, want, name)
		}
		require.NoError(t, conn.Close())
	}
	require.NotNil(t, asked)
	assert.Equal(t, server.Addr(), asked.String())
}

func TestAPasswordAloneIsEnough(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithPassword("p"))
	conn, err := Dialer(lib.ClientOption{Password: "p"})(t.Context(), server.Addr())
	require.NoError(t, err)
	_, err = conn.Do("PING")
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	_, err = Dialer(lib.ClientOption{Password: "wrong"})(t.Context(), server.Addr())
	var refusal redis.Error
	require.ErrorAs(t, err, &refusal)
	require.ErrorContains(t, err, "WRONGPASS")
}

func TestConnectionsOfSentinelsHaveTheirOwnOptions(t *testing.T) {
	t.Parallel()
	servers, sentinels := &tls.Config{MinVersion: tls.VersionTLS13}, &tls.Config{MinVersion: tls.VersionTLS12}
	opt := sentinelOption(lib.ClientOption{
		Username: "u", Password: "p", ClientName: "n", SelectDB: 3, TLSConfig: servers,
		AuthCredentialsFn: func(lib.AuthCredentialsContext) (c lib.AuthCredentials, err error) { return c, err },
		Sentinel:          lib.SentinelOption{Username: "su", Password: "sp", ClientName: "sn", TLSConfig: sentinels},
	})
	assert.Equal(t, []any{"su", "sp", "sn", 0}, []any{opt.Username, opt.Password, opt.ClientName, opt.SelectDB})
	assert.Same(t, sentinels, opt.TLSConfig)
	assert.Nil(t, opt.AuthCredentialsFn)
}

func TestAServerThatSaysNothingIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = mute.Close() }()
	leave := make(chan struct{})
	defer close(leave)
	for name, opt := range map[string]lib.ClientOption{
		"handshake": {Password: "p"},
		"TLS":       {TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13, ServerName: "redis"}},
		"dial": {DialFn: func(string, *net.Dialer, *tls.Config) (net.Conn, error) {
			<-leave
			return nil, errors.New("too late")
		}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		conn, err := Dialer(opt)(ctx, mute.Addr().String())
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
		require.ErrorContains(t, err, mute.Addr().String(), name)
		require.Nil(t, conn, name)
	}
}

func TestADialFunctionThatMakesNothingIsAnError(t *testing.T) {
	t.Parallel()
	for _, opt := range []lib.ClientOption{
		{DialFn: func(string, *net.Dialer, *tls.Config) (c net.Conn, err error) { return c, err }},
		{DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (c net.Conn, err error) { return c, err }},
	} {
		_, err := Dialer(opt)(t.Context(), "127.0.0.1:1")
		require.ErrorIs(t, err, errNoConn)
	}
	refused := errors.New("no credentials")
	server := redistest.Shared(t)
	_, err := Dialer(lib.ClientOption{AuthCredentialsFn: func(lib.AuthCredentialsContext) (c lib.AuthCredentials, err error) {
		return c, refused
	}})(t.Context(), server.Addr())
	require.ErrorIs(t, err, refused)
}
