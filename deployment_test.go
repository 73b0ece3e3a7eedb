package redlatch_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// requireShared checks that two clients wake each other, with plain and fair locks.
func requireShared(t *testing.T, one, other *redlatch.Client) {
	t.Helper()
	for _, newLock := range []func(*redlatch.Client, string) *rlock.Lock{rlock.New, rfairlock.New} {
		name := redistest.Key(t)
		hold, err := newLock(one, name).Lock(t.Context())
		require.NoError(t, err)
		came := make(chan error, 1)
		go func() {
			came <- newLock(other, name).Do(t.Context(), func(context.Context) error { return nil })
		}()
		_, err = newLock(other, name).TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.NoError(t, hold.Unlock())
		require.NoError(t, <-came)
	}
}

func TestClusterClients(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	address := "redis-cluster://127.0.0.1:1," + c.Addrs()[1] // there is no server at the first address
	requireShared(t, dialled(t, address), dialled(t, address))
	requirePublishedAsTheAddressSays(t, c)
	requireNamesAndNews(t, c)
	requireDialFunctionIsUsed(t, c)
}

func requirePublishedAsTheAddressSays(t *testing.T, c *redistest.Cluster) {
	t.Helper()
	for option, command := range map[string]string{
		"": "spublish", "?sharded_pubsub=auto": "spublish", "?sharded_pubsub=on": "spublish", "?sharded_pubsub=off": "publish",
	} {
		requirePublishes(t, c, dialled(t, "redis-cluster://"+c.Addrs()[0]+"/0"+option), command)
	}
}

// requirePublishes checks that an unlock of the client sends the command.
func requirePublishes(t *testing.T, c *redistest.Cluster, client *redlatch.Client, command string) {
	t.Helper()
	lock := rlock.New(client, redistest.Key(t))
	owner := c.Owner(t, lock.Name())
	before := owner.CommandStats(t)[command]
	require.NoError(t, lock.Do(t.Context(), func(context.Context) error { return nil }))
	require.Equal(t, before+1, owner.CommandStats(t)[command], command)
}

// requireNamesAndNews checks that connections have names and that reconnects are reported.
func requireNamesAndNews(t *testing.T, c *redistest.Cluster) {
	t.Helper()
	var reconnects atomic.Int64
	observer := redlatch.Observer{Reconnected: func(e redlatch.Reconnected) {
		if e.Connection == "commands" {
			reconnects.Add(1)
		}
	}}
	client := dialled(t, "redis-cluster://"+c.Addrs()[2], redlatch.WithClientName("billing"), redlatch.WithObserver(observer))
	lock := rlock.New(client, redistest.Key(t))
	_, err := lock.IsLocked(t.Context())
	require.NoError(t, err)
	owner := c.Owner(t, lock.Name())
	require.True(t, named(t, owner, "billing"))
	owner.KillClients(t, "normal")
	require.Eventually(t, func() bool {
		_, err := lock.IsLocked(t.Context())
		return err == nil && reconnects.Load() > 0
	}, 20*time.Second, 5*time.Millisecond)
}

func TestOpenClusterWithUserAndTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	srv, addr := tlsServer(t, a, nil, "--cluster-enabled", "yes", "--tls-cluster", "yes", "--cluster-announce-ip", "127.0.0.1",
		"--cluster-port", strconv.Itoa(redistest.UnusedPort(t)), // another server may use the default, 10000 above its port
		"--user", "app", "on", ">s3cr+t", "~*", "&*", "+@all")
	srv.Do(t, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	require.Eventually(t, func() bool {
		info, isText := srv.Do(t, "CLUSTER", "INFO").([]byte)
		return isText && strings.Contains(string(info), "cluster_state:ok")
	}, 20*time.Second, 10*time.Millisecond)
	trust := redlatch.WithTLSConfig(a.trusting())
	client := dialled(t, "rediss-cluster://app:s3cr+t@"+addr, trust)
	require.NoError(t, rlock.New(client, redistest.Key(t)).Do(t.Context(), func(context.Context) error { return nil }))
	list, isText := srv.Do(t, "CLIENT", "LIST").([]byte)
	require.True(t, isText)
	require.Contains(t, string(list), "user=app ")
	_, err := redlatch.Open(t.Context(), "rediss-cluster://app:wrong@"+addr, trust)
	require.ErrorIs(t, err, redlatch.ErrNotSent)
	require.ErrorContains(t, err, "WRONGPASS")
	require.NotContains(t, err.Error(), "wrong@")
	_, err = redlatch.Open(t.Context(), "rediss-cluster://app:s3cr+t@"+addr)
	require.ErrorContains(t, err, "certificate")
}

// startSentinel starts a master with a password and a Sentinel. It returns the master and the Sentinel's address.
func startSentinel(t *testing.T) (master *redistest.Server, address string) {
	t.Helper()
	master = redistest.Start(t, redistest.WithPassword("s3cr+t"))
	sentinel := redistest.StartSentinel(t, master.Addr())
	sentinel.Do(t, "SENTINEL", "SET", redistest.MasterName, "auth-pass", "s3cr+t")
	return master, sentinel.Addr()
}

func TestOpenSentinel(t *testing.T) {
	t.Parallel()
	master, sentinel := startSentinel(t)
	one := "redis-sentinel://:s3cr+t@" + sentinel + "/" + redistest.MasterName
	requireShared(t, dialled(t, one), dialled(t, one))
	requireLocksIn(t, master, dialled(t, one+"/3"), 3)
	_, err := redlatch.Open(t.Context(), "redis-sentinel://:s3cr+t@"+sentinel+"/other")
	require.ErrorIs(t, err, redlatch.ErrNotSent)
	require.ErrorContains(t, err, "connect to redis-sentinel://"+sentinel+"/other: ")
	require.ErrorContains(t, err, "No such master with that name")
	require.NotContains(t, err.Error(), "s3cr")
}

// The tests of internal/failover cover this without Sentinels.
func TestFailoverWhileSentinelIsDown(t *testing.T) {
	t.Parallel()
	testlevel.All(t, "Sentinels that fail over")
	set := redistest.StartSentinels(t, 2*time.Second, redistest.WithPassword("s3cr+t"))
	client := dialled(t, "redis-sentinel://:s3cr+t@"+set.Addrs()[0]+"/"+redistest.MasterName, redlatch.WithWatchdogTimeout(30*time.Second))
	former, lock := set.Master(t), rlock.New(client, redistest.Key(t))
	hold, err := lock.Lock(t.Context())
	require.NoError(t, err)
	wait := set.WatchSwitch(t)
	set.Sentinels()[0].Kill()
	former.Kill()
	wait()
	now := set.AwaitMaster(t, former)
	require.Eventually(t, func() bool {
		_, err := lock.IsLocked(t.Context())
		return err == nil && now.Clients(t) > 0
	}, 20*time.Second, 20*time.Millisecond, "it queries the discovered Sentinels")
	_ = hold.Unlock() // the lock may be lost in the failover
	require.NoError(t, lock.Do(t.Context(), func(context.Context) error { return nil }))
}

func TestOpenSentinelWithTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	_, master := tlsServer(t, a, nil)
	speak, sentinel := speakingTLS(t, a, nil)
	redistest.StartSentinel(t, master, speak, redistest.WithArgs("--tls-replication", "yes"))
	place := "-sentinel://" + sentinel + "/" + redistest.MasterName
	trust := redlatch.WithTLSConfig(a.trusting())
	requireShared(t, dialled(t, "rediss"+place, trust), dialled(t, "rediss"+place, trust))
	_, err := redlatch.Open(t.Context(), "rediss"+place)
	require.ErrorIs(t, err, redlatch.ErrNotSent)
	require.ErrorContains(t, err, "certificate")
	_, err = redlatch.Open(t.Context(), "redis"+place)
	require.ErrorIs(t, err, redlatch.ErrNotSent, "plain text to a TLS port")
}

func TestDeploymentErrorHidesPassword(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for address, want := range map[string]string{
		"redis-cluster://:hunter2@127.0.0.1:1,127.0.0.1:2":                                "connection refused",
		"redis-cluster://:hunter2@127.0.0.1:1?sharded_pubsub=on":                          "connection refused",
		"redis-cluster://" + srv.Addr() + "/":                                             "cluster support disabled",
		"redis-sentinel://127.0.0.1:1/m?sentinel_password=hunter2":                        "connection refused",
		"redis-sentinel://" + srv.Addr() + "/m":                                           "unknown command",
		"redis-sentinel://" + srv.Addr() + "/m?sentinel_user=u&sentinel_password=hunter2": "WRONGPASS",
	} {
		_, err := redlatch.Open(t.Context(), address)
		require.ErrorIs(t, err, redlatch.ErrNotSent, address)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "redlatch: connect to redis")
		require.NotContains(t, err.Error(), "hunter2")
	}
	_, err := redlatch.Open(t.Context(), "redis-cluster://:"+"hunter2@"+srv.Addr())
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
}

// dialerOf returns a dial function such as a caller might pass.
func dialerOf(password string) func(ctx context.Context, addr string) (redis.Conn, error) {
	return func(ctx context.Context, addr string) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", addr, redis.DialPassword(password), redis.DialWriteTimeout(3*time.Second))
	}
}

// requireDialFunctionIsUsed checks NewCluster.
func requireDialFunctionIsUsed(t *testing.T, c *redistest.Cluster) {
	t.Helper()
	seeds := []string{"127.0.0.1:1", c.Addrs()[1]} // there is no server at the first address
	made := func(opts ...redlatch.Option) *redlatch.Client {
		client, err := redlatch.NewCluster(t.Context(), seeds, dialerOf(""), opts...)
		require.NoError(t, err)
		closedWith(t, client)
		return client
	}
	requireShared(t, made(), dialled(t, "redis-cluster://"+c.Addrs()[2]))
	for mode, command := range map[transport.Sharding]string{transport.ShardingAuto: "spublish", transport.ShardingOff: "publish"} {
		requirePublishes(t, c, made(redlatch.WithShardedPubSub(mode)), command)
	}
	// The address takes precedence over the option.
	for option, command := range map[string]string{"": "publish", "?sharded_pubsub=auto": "spublish"} {
		client := dialled(t, "redis-cluster://"+c.Addrs()[0]+option, redlatch.WithShardedPubSub(transport.ShardingOff))
		requirePublishes(t, c, client, command)
	}
}

func TestNewSentinelUsesDialFunction(t *testing.T) {
	t.Parallel()
	master, sentinel := startSentinel(t)
	client := newFollower(t, master, sentinel)
	requireShared(t, client, dialled(t, "redis-sentinel://:s3cr+t@"+sentinel+"/"+redistest.MasterName))
	require.True(t, named(t, master, "follower"))
}

// newFollower returns a client named follower.
func newFollower(t *testing.T, master *redistest.Server, sentinel string) *redlatch.Client {
	t.Helper()
	ask := redlatch.AskSentinels(redistest.MasterName, []string{sentinel}, dialerOf(""))
	addr, err := ask(t.Context())
	require.NoError(t, err)
	require.Equal(t, master.Addr(), addr)
	client, err := redlatch.NewSentinel(ask, dialerOf("s3cr+t"), redlatch.WithClientName("follower"))
	require.NoError(t, err)
	closedWith(t, client)
	return client
}

// The tests of internal/failover cover this without Sentinels.
func TestNewSentinelMovesConnections(t *testing.T) {
	t.Parallel()
	testlevel.All(t, "Sentinels that fail over")
	set := redistest.StartSentinels(t, 2*time.Second, redistest.WithPassword("s3cr+t"))
	former := set.Master(t)
	client := newFollower(t, former, set.Addrs()[0])
	requireShared(t, client, dialled(t, "redis-sentinel://:s3cr+t@"+set.Addrs()[1]+"/"+redistest.MasterName))
	require.True(t, named(t, former, "follower"))
	former.Do(t, "ACL", "SETUSER", "default", "-client|kill") // the Sentinels also kill connections
	set.Failover(t)
	require.Eventually(t, func() bool { return !named(t, former, "follower") }, time.Minute, 20*time.Millisecond)
	now := set.AwaitMaster(t, former)
	require.NoError(t, rlock.New(client, redistest.Key(t)).Do(t.Context(), func(context.Context) error { return nil }))
	require.True(t, named(t, now, "follower"))
}

// The rights for Sentinels come from docs/topologies.md.
func TestSentinelRightsDoNotAllowForgedMessages(t *testing.T) {
	t.Parallel()
	const hello = "__sentinel__:hello"
	srv := redistest.Start(t)
	if strings.HasPrefix(srv.Version(), "6.") {
		t.Skip("the server has no ACL selectors")
	}
	page, err := os.ReadFile("docs/topologies.md")
	require.NoError(t, err)
	rights := regexp.MustCompile("`([^`]*&" + hello + "[^`]*)`").FindSubmatch(page)
	require.NotNil(t, rights)
	address := srv.GiveRights(t, []string{"Plain locks", "Uncertain calls"}, string(rights[1]))
	user, err := redis.DialURL(address)
	require.NoError(t, err)
	defer func() { _ = user.Close() }()
	_, err = user.Do("PUBLISH", hello, "forged")
	require.ErrorContains(t, err, "NOPERM")
	srv.Do(t, "ACL", "LOG", "RESET")

	client, err := redlatch.NewSentinel(
		func(context.Context) (string, error) { return srv.Addr(), nil },
		func(ctx context.Context, _ string) (redis.Conn, error) { return redis.DialURLContext(ctx, address) })
	require.NoError(t, err)
	closedWith(t, client)
	name := "app:" + redistest.Key(t)
	hold, err := rlock.New(dialled(t, srv.URL()), name).Lock(t.Context())
	require.NoError(t, err)
	came := make(chan error, 1)
	go func() { came <- rlock.New(client, name).Do(t.Context(), func(context.Context) error { return nil }) }()
	subscribed := func() bool { return len(srv.Channels(t)) == 2 }
	require.Eventually(t, subscribed, soon, time.Millisecond)
	srv.KillClients(t, "pubsub")
	require.Eventually(t, subscribed, soon, time.Millisecond, "it subscribes again")
	require.NoError(t, hold.Unlock())
	require.NoError(t, <-came)
	require.Equal(t, "[]", fmt.Sprintf("%s", srv.Do(t, "ACL", "LOG")))
}

// named reports whether a client with that name is connected to a server.
func named(t *testing.T, srv *redistest.Server, name string) bool {
	t.Helper()
	list, isText := srv.Do(t, "CLIENT", "LIST").([]byte)
	require.True(t, isText)
	return strings.Contains(string(list), "name="+name+" ")
}
