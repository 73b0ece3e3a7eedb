package rueidis

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	lib "github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

func TestConnectionUsesOptions(t *testing.T) {
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

func TestPasswordWithoutUser(t *testing.T) {
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

func TestRejectedLoginHidesPassword(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithArgs("--rename-command", "AUTH", ""))
	_, err := Dialer(lib.ClientOption{Username: "u", Password: "sesame"})(t.Context(), server.Addr())
	require.ErrorContains(t, err, "ERR unknown command")
	require.NotContains(t, err.Error(), "sesame")
}

func TestSentinelConnectionsUseSentinelOptions(t *testing.T) {
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

func TestSilentServerTimesOut(t *testing.T) {
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

func TestDialFunctionReturningNilFails(t *testing.T) {
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

// knowing is a client that learns of a node when a reply redirects to it.
type knowing struct {
	lib.Client
	nodes map[string]lib.Client
	asked []string
}

func (k *knowing) Nodes() map[string]lib.Client { return k.nodes }

// B returns a builder that accepts only slot 0, the slot of the key 06S.
func (k *knowing) B() (b lib.Builder) { return b }

func (k *knowing) Do(_ context.Context, cmd lib.Completed) (r lib.RedisResult) {
	k.asked = append(k.asked, cmd.Commands()...)
	if cmd.Commands()[0] == "EVALSHA" {
		k.nodes["new:1"] = k
	}
	return r
}

// keyed is a client whose node serves a known key.
func keyed(key string) func(context.Context, lib.Client, string) string {
	return func(context.Context, lib.Client, string) string { return key }
}

func TestKeyFoundForAnySlots(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]int64{{0, 0}, {16383, 16383}, {5461, 10922}, {0, 16383}} {
		slot := int64(transport.HashSlot(keyIn(c[0], c[1])))
		assert.GreaterOrEqual(t, slot, c[0])
		assert.LessOrEqual(t, slot, c[1])
	}
	assert.Empty(t, keyIn(5, 4))
	assert.Empty(t, keyIn(-3, -1))
}

func TestUnknownNodeIsAddedToClient(t *testing.T) {
	t.Parallel()
	client := &knowing{}
	client.nodes = map[string]lib.Client{"old:1": client}
	node, err := nodeOf(t.Context(), client, "old:1", keyed("key"))
	require.NoError(t, err)
	assert.NotNil(t, node)
	assert.Empty(t, client.asked)
	_, err = nodeOf(t.Context(), client, "new:1", keyed(""))
	require.ErrorIs(t, err, errUnknownNode)
	require.ErrorContains(t, err, "new:1")
	assert.Equal(t, []string{"EVAL", tryAgain, "1", anyKey}, client.asked, "it must refresh")
	client.asked = nil
	node, err = nodeOf(t.Context(), client, "new:1", keyed("06S"))
	require.NoError(t, err)
	assert.NotNil(t, node)
	assert.Equal(t, []string{"EVALSHA", noScript, "1", "06S"}, client.asked, "a missing script")
	_, err = nodeOf(t.Context(), client, "other:1", keyed("06S"))
	require.ErrorIs(t, err, errUnknownNode)
}

func TestRefusalsKeepErrorCode(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"WRONGTYPE Operation":       "WRONGTYPE Operation",
		"unknown command 'X'":       "ERR unknown command 'X'",
		"MOVED 1 a:1":               "MOVED 1 a:1",
		"Error running script: OOM": "ERR Error running script: OOM",
		"":                          "ERR ",
	} {
		assert.Equal(t, want, refusal(said1(said)).Error())
	}
}

type said1 string

func (s said1) Error() string { return string(s) }

// standing is a client for a frozen node.
type standing struct{ knowing }

func (*standing) Do(ctx context.Context, _ lib.Completed) (r lib.RedisResult) {
	<-ctx.Done()
	return r
}

func TestFrozenNodeDelaysSearchByTwoHints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := nodeOf(t.Context(), &standing{}, "new:1", keyed("06S"))
		require.ErrorIs(t, err, errUnknownNode)
		require.Equal(t, 2*hinted, time.Since(began))
	})
}
