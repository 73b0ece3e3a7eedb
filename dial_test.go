package redlatch_test

import (
	"context"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// requireLocksIn checks which database stores the client's locks.
func requireLocksIn(t *testing.T, srv *redistest.Server, c *redlatch.Client, db int) {
	t.Helper()
	hold, err := rlock.New(c, redistest.Key(t)).Lock(t.Context())
	require.NoError(t, err)
	conn := srv.Dial(t)
	_, err = conn.Do("SELECT", db)
	require.NoError(t, err)
	n, err := redis.Int(conn.Do("EXISTS", hold.Name()))
	require.NoError(t, err)
	require.Equal(t, 1, n, "in database %d", db)
	require.NoError(t, hold.Unlock())
	requireWorks(t, srv, c)
}

func TestOpenUsesDatabaseFromURL(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.WithUnixSocket())
	socket := "unix://" + srv.Socket()
	for address, db := range map[string]int{
		srv.URL():        0,
		srv.URL() + "/":  0,
		srv.URL() + "/0": 0,
		srv.URL() + "/7": 7,
		socket:           0,
		socket + "?db=9": 9,
	} {
		requireLocksIn(t, srv, dialled(t, address), db)
	}
}

func TestOpenUsesCredentialsFromURL(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.WithUnixSocket(), redistest.WithPassword("p@ss:w/rd%"))
	srv.Do(t, "ACL", "SETUSER", "app", "on", ">s3cret", "~*", "&*", "+@all")
	address := func(scheme, host, path string, user *url.Userinfo) string {
		return (&url.URL{Scheme: scheme, Host: host, Path: path, User: user}).String()
	}
	for _, user := range []*url.Userinfo{url.UserPassword("", "p@ss:w/rd%"), url.UserPassword("app", "s3cret")} {
		requireLocksIn(t, srv, dialled(t, address("redis", srv.Addr(), "/3", user)), 3)
		requireLocksIn(t, srv, dialled(t, address("unix", "", srv.Socket(), user)+"?db=3"), 3)
	}
	for _, user := range []*url.Userinfo{nil, url.UserPassword("", "wrong"), url.UserPassword("app", "wrong")} {
		_, err := redlatch.Open(t.Context(), address("redis", srv.Addr(), "", user))
		require.Error(t, err)
		require.NotContains(t, err.Error(), "wrong:")
		_, err = redlatch.Open(t.Context(), address("unix", "", srv.Socket(), user))
		require.Error(t, err)
	}
}

// The parser's tests cover all kinds of invalid addresses.
func TestOpenRejectsInvalidAddressWithoutDialing(t *testing.T) {
	t.Parallel()
	trusting := redlatch.WithTLSConfig(newAuthority(t).trusting())
	for address, c := range map[string]struct {
		want string
		opts []redlatch.Option
	}{
		"":                                       {want: "it is empty"},
		"localhost:6379":                         {want: "the scheme is missing"},
		"redis://user:1/pw@host":                 {want: "write / as %2F"},
		"redis-cluster://u:12/pw@a,b":            {want: "write / as %2F"},
		"redis-cluster://a?sharded_pubsub=maybe": {want: "must be auto, on or off"},
		"redis-sentinel://localhost":             {want: "missing master name"},
		"redis-sentinel://app@a/m":               {want: "its user needs a password"},
		"redis-cluster://app@a":                  {want: "its user needs a password"},
		"redis-cluster://app:@a":                 {want: "its user needs a password"},
		"unix://app@/nowhere":                    {want: "its user needs a password"},
		"redis://app:@a":                         {want: "its user needs a password"},
		"redis://127.0.0.1:1":                    {want: "WithTLSConfig needs an address with the scheme rediss", opts: []redlatch.Option{trusting}},
		"unix:///nowhere":                        {want: "WithTLSConfig needs an address with the scheme rediss", opts: []redlatch.Option{trusting}},
		"redis-cluster://127.0.0.1:1":            {want: "the scheme rediss, rediss-cluster or rediss-sentinel", opts: []redlatch.Option{trusting}},
		"redis-sentinel://127.0.0.1:1/m":         {want: "the scheme rediss, rediss-cluster or rediss-sentinel", opts: []redlatch.Option{trusting}},
	} {
		for _, opts := range [][]redlatch.Option{c.opts, append(c.opts, redlatch.WithLazyConnect())} {
			_, err := redlatch.Open(t.Context(), address, opts...)
			require.ErrorContains(t, err, c.want, "%q", address)
			require.ErrorIs(t, err, redlatch.ErrInvalid, "%q", address)
			require.NotErrorIs(t, err, redlatch.ErrNotSent, "%q", address)
			require.NotContains(t, err.Error(), "pw")
		}
	}
	// The publish command cannot be guessed.
	_, err := redlatch.Open(t.Context(), "redis-cluster://user:secret@127.0.0.1:1", redlatch.WithLazyConnect())
	require.ErrorContains(t, err, "?sharded_pubsub=on")
	require.NotContains(t, err.Error(), "secret")
	require.NotErrorIs(t, err, redlatch.ErrNotSent)
}

// tokens returns the password that is currently valid.
type tokens struct {
	current atomic.Pointer[string]
	calls   atomic.Int64
}

func (k *tokens) set(password string) { k.current.Store(&password) }

func (k *tokens) get(context.Context) (user, password string, err error) {
	k.calls.Add(1)
	return "app", *k.current.Load(), nil
}
