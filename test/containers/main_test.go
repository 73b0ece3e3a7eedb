// Package containers runs the suites that hold for every server, on real ones of several
// kinds: what both kinds of locks do (internal/test/locksuite), and what a transport does
// (transport/transporttest). They run over the built-in transport and over both
// adapters, on single servers and, over the adapters, on clusters.
//
//	TestMain: servers.Choose ─▶ "itest: …", the line that says on what
//	each kind of server ─▶ start one ─▶ each client ─▶ locks, conformance ─▶ end it
//
// It has tests only. All suites of a server or cluster share it, side by side, and break
// nothing but the network, which each has to itself.
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

// plan is what the tests run on, or why there is nothing.
var plan struct {
	servers.Plan
	err error
}

func TestMain(m *testing.M) {
	flag.Parse()
	redis.SetLogger(quiet{log.New(io.Discard, "", 0)}) // it tells of every connection that a test breaks
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

// run runs the tests, and holds that no goroutine is left. With containers that is not
// held: what starts them keeps connections to the engine.
func run(m *testing.M) int {
	code := m.Run()
	if code != 0 || plan.Containers {
		return code
	}
	err := goleak.Find(
		// What rueidis closes in its own time, five seconds after.
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

// each runs body as a subtest for each kind.
func each(t *testing.T, kinds []servers.Kind, body func(t *testing.T, kind servers.Kind)) {
	t.Helper()
	switch {
	case testing.Short():
		t.Skip("-short: it needs a real server")
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

// patience is for machines that many suites, and containers, keep busy.
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

// onServer is the network between a case and the server, and a user of its own: what a
// case forbids concerns it alone.
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

// inCluster is the cluster as clients of the user's own find it: one address, and from
// there wherever the nodes send them.
func inCluster(t *testing.T, over library, c *servers.Cluster) locksuite.Deployment {
	t.Helper()
	publish := []string{"PUBLISH"}
	if c.Sharded {
		publish = []string{"SPUBLISH", "PUBLISH"}
	}
	open := over.onCluster(t, cluster{addrs: c.Addrs()[:1], sharding: transport.ShardingAuto})
	tr := open(t)
	require.Equal(t, publish[0], tr.PublishCommand(), "as Redisson decides")
	require.NoError(t, tr.Close())
	return locksuite.Deployment{New: open, Do: c.Do, Publish: publish}
}

// harness is the cluster behind a network that is the case's own. All share the rights to
// commands, so nothing can be forbidden.
func harness(t *testing.T, over library, c *servers.Cluster) transporttest.Harness {
	t.Helper()
	fence := redistest.NewProxies(t, c.Addrs()...)
	// The mode is given, so that it need not be detected.
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

// again runs this program on a machine that has no server.
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
		t.Skip("-short: it starts programs")
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
		t.Skip("-short: it starts programs")
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
