package redlatch_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// requireLocksIn checks in which database the client's locks are.
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

func TestOpenTakesDatabasesFromTheURL(t *testing.T) {
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

func TestOpenTakesPasswordsAndUsersFromTheURL(t *testing.T) {
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

func TestOpenWithoutAPortTakesRedissUsualOne(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := redlatch.Open(ctx, "redis://localhost")
	require.ErrorContains(t, err, "redlatch: connect to redis://localhost:6379: ")
}

func TestAddressesThatMakeNoSenseAreRefusedWithoutDialling(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"":                         "it is empty",
		"localhost:6379":           "the scheme is missing",
		"http://localhost":         "write redis://host:6379",
		"127.0.0.1:6379":           "the scheme is missing",
		"redis://host:port":        "the port must be a number",
		"redis://\x00":             "a control character",
		"redis://user:pw:host:1":   "several colons",
		"redis://user:1/pw@host":   "write / as %2F",
		"redis://":                 "the host is missing",
		"redis://:6379/1":          "the host is missing",
		"redis://localhost/one":    "the database must be a number",
		"redis://localhost/-1":     "the database must be a number",
		"rediss://localhost/1/2":   "the database must be a number",
		"unix://":                  "the path is missing",
		"unix://run/redis.sock":    "has three slashes",
		"unix:///tmp/redis?db=two": "the database must be a number",
		"unix:///tmp/redis?db=-2":  "the database must be a number",

		// Options that are not there, which other clients' addresses may have.
		"redis://localhost?foo=1":                 "has no options",
		"redis://localhost/0?dial_timeout=5s":     "has no options",
		"rediss://localhost?insecure_skip_verify": "has no options",
		"redis://localhost#1":                     "remove the # and the text after it",
		"unix:///tmp/redis?db=1&timeout=5s":       "has one option at most, db",
		"unix:///tmp/redis?db=1&db=2":             "has one option at most, db",
		"unix:///tmp/redis?%zz":                   "percent-encode special characters in the options",
	} {
		_, err := redlatch.Open(t.Context(), address)
		require.ErrorContains(t, err, want, "%q", address)
		require.NotErrorIs(t, err, redlatch.ErrNotSent, "nothing was tried")
	}
}

// Whatever goes wrong: an error ends up in logs, and a password must not.
func TestErrorsNeverHoldThePassword(t *testing.T) {
	t.Parallel()
	const password = "hunter2hunter2"
	srv := redistest.Start(t, redistest.WithPassword("another"))
	for _, address := range []string{
		"redis://:" + password + "@" + srv.Addr(),
		"redis://user:" + password + "@" + srv.Addr(),
		"redis://user:" + password + "@127.0.0.1:1",
		"rediss://user:" + password + "@" + srv.Addr(),
		"redis://user:" + password + "@host:port",
		"redis://user:" + password + "@127.0.0.1:1/db",
		"redis://user:" + password + "@:6379",
		"redis://user:" + password + "@[::1",
		"redis://user:" + password + "%zz@host",
		"http://user:" + password + "@host",
		"unix://user:" + password + "@",
		"unix://user:" + password + "@/nowhere?db=x",
		"unix://user:" + password + "@/nowhere",
	} {
		_, err := redlatch.Open(t.Context(), address, redlatch.WithDialTimeout(time.Second))
		require.Error(t, err)
		require.NotContains(t, err.Error(), password)
	}
}

// tokens hands out the password that is valid at the moment.
type tokens struct {
	current atomic.Pointer[string]
	calls   atomic.Int64
}

func (k *tokens) set(password string) { k.current.Store(&password) }

func (k *tokens) get(context.Context) (user, password string, err error) {
	k.calls.Add(1)
	return "app", *k.current.Load(), nil
}

func TestCredentialsAreAskedForEveryConnection(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	rotate := func(k *tokens, password string) {
		srv.Do(t, "ACL", "SETUSER", "app", "on", "resetpass", ">"+password, "~*", "&*", "+@all")
		k.set(password)
	}
	var k tokens
	rotate(&k, "first")
	// What the URL says is not used: it may be older.
	address := strings.Replace(srv.URL(), "redis://", "redis://nobody:stale@", 1)
	c := dialled(t, address, redlatch.WithCredentials(k.get))
	requireWorks(t, srv, c)
	require.EqualValues(t, 2, k.calls.Load())
	for _, password := range []string{"second", "third"} {
		rotate(&k, password)
		require.EqualValues(t, 2, srv.Do(t, "CLIENT", "KILL", "USER", "app")) // also one that is just unsubscribing
		require.Eventually(t, func() bool {
			_, err := rlock.New(c, "job").IsLocked(t.Context())
			return err == nil
		}, soon, 5*time.Millisecond)
		requireWorks(t, srv, c)
	}
	require.GreaterOrEqual(t, k.calls.Load(), int64(6))
}

func TestCredentialsThatFailAreTheReason(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	reason := errors.New("the vault is sealed")
	_, err := redlatch.Open(t.Context(), srv.URL(),
		redlatch.WithCredentials(func(context.Context) (string, string, error) { return "", "", reason }))
	require.ErrorIs(t, err, reason)
	require.ErrorIs(t, err, redlatch.ErrNotSent)
}
