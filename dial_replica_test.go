package redlatch_test

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// listenOn subscribes to a channel on a server until the test ends.
func listenOn(t *testing.T, s redistest.Target, channel string) {
	t.Helper()
	sub := redis.PubSubConn{Conn: s.Dial(t)}
	require.NoError(t, sub.Subscribe(channel))
	require.IsType(t, redis.Subscription{}, sub.ReceiveWithTimeout(soon))
}

// requireListeners checks the number of listeners that a client finds.
func requireListeners(t *testing.T, c *redlatch.Client, want int64) {
	t.Helper()
	counts, err := engine.EngineOf(c).Listeners(t.Context(), "somebody", "nobody")
	require.NoError(t, err)
	require.Equal(t, []int64{want, 0}, counts)
}

// requireUncounted checks that the count fails.
func requireUncounted(t *testing.T, c *redlatch.Client, because string) {
	t.Helper()
	_, err := engine.EngineOf(c).Listeners(t.Context(), "somebody")
	require.ErrorContains(t, err, because)
	require.NotContains(t, err.Error(), "s3cret")
}

func TestOpenDialsReplicasLikeMaster(t *testing.T) {
	t.Parallel()
	opts := []redistest.Option{redistest.WithPassword("p@ss:w/rd%")}
	master := redistest.Start(t, append(opts, redistest.WithUnixSocket())...)
	// The master's database number must not apply to replicas.
	replica := redistest.StartReplica(t, master, append(opts, redistest.WithArgs("--databases", "1"))...)
	for _, s := range []*redistest.Server{master, replica} {
		s.Do(t, "ACL", "SETUSER", "app", "on", ">s3cret", "~*", "&*", "+@all")
		listenOn(t, s, "somebody")
	}
	master.Do(t, "ACL", "SETUSER", "master", "on", ">s3cret", "~*", "&*", "+@all")
	address := func(scheme, host, path string, user *url.Userinfo) string {
		return (&url.URL{Scheme: scheme, Host: host, Path: path, User: user}).String()
	}
	for _, user := range []*url.Userinfo{url.UserPassword("", "p@ss:w/rd%"), url.UserPassword("app", "s3cret")} {
		requireListeners(t, dialled(t, address("redis", master.Addr(), "/3", user)), 2)
		requireListeners(t, dialled(t, address("unix", "", master.Socket(), user)+"?db=3"), 2)
	}
	requireUncounted(t, dialled(t, address("redis", master.Addr(), "", url.UserPassword("master", "s3cret"))), "WRONGPASS")
	vault := redlatch.WithCredentials(func(context.Context) (string, string, error) { return "app", "s3cret", nil })
	requireListeners(t, dialled(t, address("redis", master.Addr(), "", url.UserPassword("nobody", "stale")), vault), 2)
	requireListeners(t, dialled(t, "unix://"+master.Socket(), vault), 2)
}

func TestOpenUsesTLSForReplicas(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	cert, key := a.issue(t, nil)
	secure := func(port string) []string {
		return []string{
			"--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key,
			"--tls-ca-cert-file", a.file, "--tls-auth-clients", "no",
		}
	}
	ports := []string{strconv.Itoa(redistest.UnusedPort(t)), strconv.Itoa(redistest.UnusedPort(t))}
	master := redistest.Start(t, redistest.WithArgs(secure(ports[0])...))
	replica := redistest.StartReplica(t, master,
		redistest.WithArgs(append(secure(ports[1]), "--replica-announce-port", ports[1])...))
	listenOn(t, replica, "somebody")
	config := redlatch.WithTLSConfig(a.trusting())
	requireListeners(t, dialled(t, "rediss://"+net.JoinHostPort("127.0.0.1", ports[0]), config), 1)
	requireUncounted(t, dialled(t, master.URL()), "replica "+net.JoinHostPort("127.0.0.1", ports[1]))
}

func TestDialOptionRequiresReplicaDial(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	made := func(opts ...redlatch.Option) *redlatch.Client {
		c, err := redlatch.New(func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", master.Addr())
		}, opts...)
		require.NoError(t, err)
		closedWith(t, c)
		return c
	}
	listenOn(t, master, "somebody")
	requireListeners(t, made(), 1)
	replica := redistest.StartReplica(t, master, redistest.WithArgs("--replica-announce-ip", "replica.invalid"))
	listenOn(t, replica, "somebody")
	requireUncounted(t, made(), "WithReplicaDialer")
	requireUncounted(t, made(redlatch.WithReplicaDialer(nil)), "WithReplicaDialer")
	requireUncounted(t, dialled(t, master.URL()), "replica replica.invalid:")

	_, port, err := net.SplitHostPort(replica.Addr())
	require.NoError(t, err)
	elsewhere := redlatch.WithReplicaDialer(func(ctx context.Context, addr string) (redis.Conn, error) {
		if addr != net.JoinHostPort("replica.invalid", port) {
			return nil, net.UnknownNetworkError(addr)
		}
		return redis.DialContext(ctx, "tcp", replica.Addr())
	})
	requireListeners(t, made(elsewhere), 2)
	requireListeners(t, dialled(t, master.URL(), elsewhere), 2)
}

func TestSubscribersCountedOnEmbeddedServer(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]embedded.Option{nil, {embedded.WithInProcess()}} {
		srv := redistest.Mini(t, opts...)
		listenOn(t, srv, "somebody")
		c, err := redlatch.New(srv.Server.Dial)
		require.NoError(t, err)
		closedWith(t, c)
		requireListeners(t, c, 1)
	}
}
