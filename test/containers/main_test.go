// Package containers runs two suites on real servers of several kinds: internal/test/locksuite, which tests locks, and
// transport/transporttest, which tests transports. On single servers, the suites use the built-in transport and both
// adapters. On clusters, they use the adapters.
//
//	TestMain: servers.Choose ─▶ "itest: …", the servers in use
//	each kind of server ─▶ start one ─▶ each client ─▶ locks, conformance ─▶ stop it
//
// All suites run concurrently on a server or cluster, and break only their own network.
package containers

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/redistest/breakable"
	"github.com/redlatch/redlatch/test/containers/servers"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// plan contains the servers. If there are none, err is the reason.
var plan struct {
	servers.Plan
	err error
}

func TestMain(m *testing.M) {
	flag.Parse()
	redis.SetLogger(quiet{log.New(io.Discard, "", 0)}) // it logs every connection that a test breaks
	if !testing.Short() {
		plan.Plan, plan.err = servers.Choose()
		if plan.err != nil {
			fmt.Println("itest: NOT RUN:", plan.err)
			if servers.Demanded() {
				os.Exit(1)
			}
		} else {
			fmt.Println("itest:", plan.Line)
		}
	}
	os.Exit(run(m))
}

// run runs the tests. It then checks that they did not leak goroutines, unless containers were used, because
// testcontainers keeps connections to the Docker engine.
func run(m *testing.M) int {
	code := m.Run()
	if code != 0 || plan.Containers {
		return code
	}
	err := goleak.Find(
		// rueidis closes these five seconds later.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
	)
	if err != nil {
		fmt.Fprintf(os.Stderr, "itest: goroutines left behind:\n%v\n", err)
		return 1
	}
	return 0
}

type quiet struct{ *log.Logger }

func (q quiet) Printf(_ context.Context, format string, v ...any) { q.Logger.Printf(format, v...) }

func each(t *testing.T, kinds []servers.Kind, body func(t *testing.T, kind servers.Kind)) {
	t.Helper()
	switch {
	case testing.Short():
		t.Skip("-short: needs a real server")
	case plan.err != nil:
		t.Skipf("NOT RUN: %v", plan.err)
	case len(kinds) == 0:
		t.Skipf("NOT RUN: %s", plan.Line)
	}
	for _, kind := range kinds {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			body(t, kind)
		})
	}
}

// patience is long enough for a machine that is busy with suites and containers.
const patience = 2 * time.Minute

func TestOnOneServer(t *testing.T) {
	t.Parallel()
	each(t, plan.Servers, func(t *testing.T, kind servers.Kind) {
		t.Helper()
		server := kind.Start(t)
		t.Logf("on %s", server.Version)
		for _, over := range libraries {
			t.Run("locks over "+over.name, func(t *testing.T) {
				t.Parallel()
				locksuite.Run(t, locksuite.OnServer(server, over.onServer(t, server.Addr, "")))
			})
			t.Run("conformance over "+over.name, func(t *testing.T) {
				t.Parallel()
				transporttest.Run(t, func(t *testing.T) transporttest.Harness {
					t.Helper()
					t.Parallel()
					return onServer(t, over, server)
				})
			})
		}
	})
}

// onServer returns the harness for one test case. The case has its own proxy, and its own user, so that other cases may
// still use the commands that it forbids.
func onServer(t *testing.T, over library, server *servers.Server) transporttest.Harness {
	t.Helper()
	seen := server.As(t, redistest.Key(t))
	proxy := redistest.NewProxy(t, server.Addr)
	h := breakable.Harness(proxy)
	h.New = over.onServer(t, proxy.Addr(), seen.User)
	h.Do, h.Forbid, h.Patience = seen.Do, seen.Forbid, patience
	h.Stop, h.Start = breakable.Outage(proxy, server.Do, "SCRIPT", "FLUSH")
	return h
}

func TestInACluster(t *testing.T) {
	t.Parallel()
	each(t, plan.Clusters, func(t *testing.T, kind servers.Kind) {
		t.Helper()
		c := kind.StartCluster(t)
		t.Logf("on %s", c)
		for _, over := range libraries {
			if over.onCluster == nil {
				continue
			}
			t.Run("locks over "+over.name, func(t *testing.T) {
				t.Parallel()
				locksuite.Run(t, inCluster(t, over, c))
			})
			t.Run("conformance over "+over.name, func(t *testing.T) {
				t.Parallel()
				transporttest.Run(t, func(t *testing.T) transporttest.Harness {
					t.Helper()
					t.Parallel()
					return harness(t, over, c)
				})
			})
		}
	})
}

// inCluster returns a deployment whose clients get one address and find the other nodes through redirects, as those of
// users do.
func inCluster(t *testing.T, over library, c *servers.Cluster) locksuite.Deployment {
	t.Helper()
	publish := []string{"PUBLISH"}
	if c.Sharded {
		publish = []string{"SPUBLISH", "PUBLISH"}
	}
	open := over.onCluster(t, cluster{addrs: c.Addrs()[:1], sharding: transport.ShardingAuto})
	tr := open(t)
	require.Equal(t, publish[0], tr.PublishCommand(), "differs from Redisson's choice")
	require.NoError(t, tr.Close())
	return locksuite.Deployment{New: open, Do: c.Do, Publish: publish}
}

// harness returns the harness for one test case, which has its own proxies in front of the cluster. It does not forbid
// commands, because all cases share the default user.
func harness(t *testing.T, over library, c *servers.Cluster) transporttest.Harness {
	t.Helper()
	fence := redistest.NewProxies(t, c.Addrs()...)
	// The mode is set so that it does not have to be detected.
	sharding := transport.ShardingOff
	if c.Sharded {
		sharding = transport.ShardingOn
	}
	nodes := breakable.Nodes{Do: c.Do, Sharded: c.Sharded}
	for _, master := range c.Masters {
		nodes.OnMaster = append(nodes.OnMaster, master.Do)
	}
	h := nodes.Harness(fence, over.onCluster(t, cluster{addrs: c.Addrs(), dial: fence.Dial, sharding: sharding}))
	h.Patience = patience
	return h
}

// again runs this program in an environment in which it does not find any servers.
func again(t *testing.T, env ...string) (output string, passed bool) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "-test.v", "-test.run", "^(TestOnOneServer|TestInACluster)$")
	cmd.Env = append([]string{"PATH=/nowhere", "REDLATCH_VALKEY=/nowhere/valkey-server"}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func TestWithoutServerFailsIfRequired(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: starts programs")
	}
	for _, env := range []string{"CI=true", "REDLATCH_ITEST=local", "REDLATCH_ITEST=moon"} {
		out, passed := again(t, env)
		assert.False(t, passed, env)
		assert.Contains(t, out, "itest: NOT RUN: ", env)
	}
}

func TestWithoutServerSkipsWithReason(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: starts programs")
	}
	out, passed := again(t)
	assert.True(t, passed, out)
	for _, says := range []string{
		"itest: NOT RUN: no server to test on: no server",
		"--- SKIP: TestOnOneServer", "--- SKIP: TestInACluster",
	} {
		assert.Contains(t, out, says)
	}
}
