package redlatchui_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/redlatchui"
	"github.com/redlatch/redlatch/transport"
)

// pagesOf returns the pages of a deployment as served by redlatch ui and by a program.
func pagesOf(t *testing.T, address string) map[string]*redlatchui.Page {
	t.Helper()
	options := redlatchui.Options{Every: 100 * time.Millisecond}
	client, err := redlatch.Open(t.Context(), address)
	require.NoError(t, err)
	own, err := redlatchui.New(client, options)
	require.NoError(t, err)
	srv, err := connect.New(connect.Settings{Address: address})
	require.NoError(t, err)
	opened, err := srv.Open(t.Context(), redlatch.WithServerTime())
	require.NoError(t, err)
	command, err := redlatchui.New(opened, options)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, own.Close())
		require.NoError(t, command.Close())
		require.NoError(t, opened.Close())
		require.NoError(t, client.Close())
	})
	return map[string]*redlatchui.Page{"New": own, "redlatch ui": command}
}

type deployment interface {
	Do(tb testing.TB, cmd string, args ...any) any
}

func scene(t *testing.T, s deployment) {
	t.Helper()
	for i := range 20 { // on all masters
		s.Do(t, "HSET", fmt.Sprintf("orders:%d", i), javaA+fmt.Sprintf(":%d", i), 1)
		s.Do(t, "PEXPIRE", fmt.Sprintf("orders:%d", i), 600_000)
	}
	s.Do(t, "HSET", "billing", program.SomeOwner, 1)
	s.Do(t, "PEXPIRE", "billing", 600_000)
	s.Do(t, "SET", "redlatch:label:"+program.SomeOwner[:36], "billing@host-3")
	s.Do(t, "RPUSH", codec.QueueKey("billing"), javaB+":4")
	s.Do(t, "ZADD", codec.TimeoutKey("billing"), time.Now().Add(time.Minute).UnixMilli(), javaB+":4")
	s.Do(t, "SET", "visits", 41)
}

func showScene(t *testing.T, page *redlatchui.Page) {
	t.Helper()
	text := says(t, page, "/?sort=name", "21 locks")
	require.Contains(t, text, "billing fair Dead waiter in front billing@host-3")
	for i := range 20 {
		require.Contains(t, text, fmt.Sprintf("orders:%d plain", i))
	}
	says(t, page, "/?only=numbers", "visits counter number 41")
	says(t, page, "/lock?name=billing", "1 dead "+javaB+":4 Redisson")
	says(t, page, "/lock?name=visits", "It is the number 41")
	says(t, page, "/who?client="+javaA, "Holds (20)")
	text = says(t, page, "/who?client="+javaB, "Waits for (1)")
	require.Contains(t, text, "billing fair 1 of 1, dead billing@host-3")
}

func TestClusterLocksShownAfterFailover(t *testing.T) {
	testlevel.All(t, "a cluster that loses a master")
	t.Parallel()
	redistest.EachCluster(t, func(t *testing.T, c *redistest.Cluster) {
		t.Helper()
		scene(t, c)
		pages := pagesOf(t, "redis-cluster://"+strings.Join(c.Addrs(), ","))
		for _, page := range pages {
			showScene(t, page)
			require.Contains(t, says(t, page, "/server", "examined at"), "one of 3 masters of a cluster")
		}
		owner := c.Owner(t, "billing")
		owner.Kill()
		c.AwaitOwner(t, "billing", owner)
		c.Do(t, "HSET", "{billing}:new", javaB+":1", 1)
		for _, page := range pages {
			require.Contains(t, says(t, page, "/?sort=name", "22 locks"), "billing@host-3 Redlatch 00000001:7")
		}
	})
}

func TestSentinelMasterLocksAreShown(t *testing.T) {
	testlevel.All(t, "Sentinels")
	t.Parallel()
	set := redistest.StartSentinels(t, 2*time.Second)
	scene(t, set)
	address := "redis-sentinel://" + strings.Join(set.Addrs(), ",") + "/" + redistest.MasterName
	pages := pagesOf(t, address)
	for _, page := range pages {
		showScene(t, page)
		require.Contains(t, says(t, page, "/server", "examined at"), "a standalone master")
	}
	former := set.Master(t)
	set.Failover(t)
	set.AwaitMaster(t, former)
	for what, page := range pages {
		set.Do(t, "HSET", what, javaB+":1", 1)
		says(t, page, "/?sort=name&q="+strings.ReplaceAll(what, " ", "+"), "1 of 22 locks")
		set.Do(t, "DEL", what)
	}
}

// slotted is a transport to a cluster that cannot reach every master, such as an adapter.
type slotted struct{ transport.Transport }

func (slotted) Slot(string) int        { return 0 }
func (slotted) PublishCommand() string { return "PUBLISH" }
func (slotted) Close() error           { return nil }

func TestAdapterClusterIsRejected(t *testing.T) {
	t.Parallel()
	client, err := redlatch.NewWithTransport(slotted{})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	_, err = redlatchui.New(client, redlatchui.Options{})
	require.ErrorIs(t, err, redlatch.ErrInvalid)
	require.ErrorContains(t, err, "use a client from redlatch.Open")
}

// The keys of some names are on two nodes, so locks with these names do not work in a cluster.
func TestInvalidClusterNameKeepsOtherDeadWaiters(t *testing.T) {
	testlevel.All(t, "a cluster")
	t.Parallel()
	c := redistest.StartCluster(t, 1, 0) // both keys are found there
	for _, name := range []string{"a}b", "good"} {
		c.DoAt(t, codec.QueueKey(name), "RPUSH", codec.QueueKey(name), javaB+":4")
	}
	for kind, page := range pagesOf(t, "redis-cluster://"+c.Addrs()[0]) {
		text := says(t, page, "/?sort=name", "good fair Dead waiter in front")
		require.NotContains(t, text, "cannot be counted", kind)
	}
}

func TestMain(m *testing.M) { redistest.Main(m) }
