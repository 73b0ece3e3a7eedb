//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

const notAcquired = 124

// clusterLocks are locks with labelled holders on each master of a cluster.
type clusterLocks struct {
	c     *redistest.Cluster
	url   string
	names []string // one on each master
	id    string   // of the holding client
}

func newClusterLocks(t *testing.T) *clusterLocks {
	t.Helper()
	c := redistest.StartCluster(t, 3, 0)
	s := &clusterLocks{c: c, url: "redis-cluster://" + c.Addrs()[0] + "," + c.Addrs()[1]}
	client, err := redlatch.Open(t.Context(), s.url, redlatch.WithLabel("billing-7"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	s.id = client.ID().String()
	for at := map[*redistest.Server]bool{}; len(at) < 3; {
		name := redistest.Key(t)
		if at[c.Owner(t, name)] {
			continue
		}
		at[c.Owner(t, name)] = true
		_, err := rlock.New(client, name).Lock(t.Context())
		require.NoError(t, err)
		s.names = append(s.names, name)
	}
	return s
}

// This is a single test because it is expensive to start a cluster.
func TestCommandsOnACluster(t *testing.T) {
	testlevel.All(t, "a cluster")
	t.Parallel()
	s := newClusterLocks(t)
	text := s.ok(t, "list")
	require.Equal(t, 3, strings.Count(text, "billing-7"), "labels are on other nodes than locks: %s", text)
	require.Equal(t, 1, strings.Count(s.ok(t, "list", "--json", s.names[1]), "\n"))
	for _, name := range s.names {
		require.Contains(t, text, name)
		status := s.ok(t, "status", name)
		require.Contains(t, status, s.id)
		require.Contains(t, status, "billing-7")
	}
	for _, line := range []string{"status a}x{", "watch --for 1s a}x{", "unlock --force a}x{", "evict a}x{ a:1", "evict --all-dead a}x{"} {
		program.Fails(t, s.url, 2, `invalid argument: the lock's name "a}x{" does not work in a cluster`, strings.Fields(line)...)
	}
	other := redistest.Key(t)
	s.c.DoAt(t, other, "SET", other, "no lock")
	program.Fails(t, s.url, 1, "holds a string", "status", other)
	program.Fails(t, s.url, 2, "the demo needs a single server", "demo", "--redis", s.url)

	name, dead := s.names[2], s.id+":999"
	s.c.DoAt(t, name, "RPUSH", codec.QueueKey(name), dead)
	s.c.DoAt(t, name, "ZADD", codec.TimeoutKey(name), time.Now().Add(time.Minute).UnixMilli(), dead)
	require.Contains(t, s.ok(t, "status", name), dead)
	require.Contains(t, s.ok(t, "evict", name, dead), "a waiter was evicted from the queue")
	require.Equal(t, any(int64(0)), s.c.DoAt(t, name, "EXISTS", codec.QueueKey(name)))
	s.ok(t, "unlock", "--force", "--even-if-alive", "--yes", name)
	require.Equal(t, any(int64(0)), s.c.DoAt(t, name, "EXISTS", name))
	s.watch(t)
	s.doctor(t)
	s.run(t)
}

func (s *clusterLocks) ok(t *testing.T, args ...string) string {
	t.Helper()
	return program.OK(t, s.url, args...)
}

// watch subscribes to the lock's shard only.
func (s *clusterLocks) watch(t *testing.T) {
	t.Helper()
	name := redistest.Key(t)
	p := program.Start(t, s.url, "watch", "--json", name)
	program.Events(p, "free")
	client, err := redlatch.Open(t.Context(), s.url)
	require.NoError(t, err)
	hold, err := rlock.New(client, name).Lock(t.Context())
	require.NoError(t, err)
	program.Events(p, "taken")
	require.NoError(t, hold.Unlock())
	require.NoError(t, client.Close())
	require.Equal(t, "released", program.Events(p, "released")[0]["event"], "a message said so")
	program.ToEvent(program.Start(t, s.url, "watch", s.names[0]+"*"), "held")
}

func (s *clusterLocks) doctor(t *testing.T) {
	t.Helper()
	odd := s.c.Nodes()[1]
	odd.Do(t, "CONFIG", "SET", "tcp-keepalive", 0)
	var d struct {
		Server   string
		Findings []struct{ Check, Level, Found string }
	}
	require.NoError(t, json.Unmarshal([]byte(s.ok(t, "doctor", "--json")), &d))
	require.Equal(t, s.url, d.Server)
	found := map[string]string{}
	for _, f := range d.Findings {
		require.NotEqual(t, "error", f.Level, "%+v", f)
		require.NotEqual(t, "unknown", f.Level, "%+v", f)
		found[f.Check] = f.Found
	}
	require.Contains(t, found["server"], "one of 3 masters of a cluster")
	require.Contains(t, found["sharded"], "SPUBLISH")
	require.Contains(t, found["keepalive"], odd.Addr()+": off")
	require.Contains(t, found["plain rights"], "user default has all rights for plain locks")
	require.NotContains(t, found["eviction"], "127.0.0.1", "it is the same everywhere")

	got := program.Finish(t, odd.URL(), "doctor")
	require.Equal(t, 2, got.Code)
	require.Contains(t, strings.Join(strings.Fields(got.Stdout), " "), "Use redis-cluster://")
}

// run must come last, because it kills a master.
func (s *clusterLocks) run(t *testing.T) {
	t.Helper()
	name := redistest.Key(t)
	p := program.Start(t, s.url, "run", "--watchdog", "10s", name, "--", "sh", "-c", program.IgnoresSIGTERM)
	require.Equal(t, "up", p.Line())
	got := program.Finish(t, s.url, "run", "--try", name, "--", "echo", "inside")
	require.Equal(t, notAcquired, got.Code)
	require.Empty(t, got.Stdout)
	s.c.Owner(t, name).Kill()
	require.Empty(t, p.Rest())
	require.Equal(t, 125, p.Code())
	require.Contains(t, p.Stderr.String(), "was lost")
}

// This is a single test because it is expensive to start Sentinels.
func TestCommandsOnAMasterOfSentinels(t *testing.T) {
	testlevel.All(t, "a master with Sentinels")
	t.Parallel()
	set := redistest.StartSentinels(t, 20*time.Second)
	url := "redis-sentinel://" + strings.Join(set.Addrs(), ",") + "/" + redistest.MasterName
	name := redistest.Key(t)
	p := program.Start(t, url, "run", "--at-least", "1ms", name, "--", "sh", "-c", program.EndsOnSIGTERM)
	require.Equal(t, "up", p.Line())
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"run", "--try", name, "--", "echo"}, notAcquired, "is held by "},
		{[]string{"status", name}, 0, name},
		{[]string{"list"}, 0, name},
		{[]string{"watch", "--for", "10s", name}, 0, "held"},
		{[]string{"watch", "--for", "10s", "*"}, 0, name},
		{[]string{"doctor"}, 0, "a standalone master"},
		{[]string{"unlock", "--force", "--even-if-alive", "--yes", name}, 0, name},
	} {
		got := program.Finish(t, url, c.args...)
		require.Equal(t, c.code, got.Code, "%v: %s", c.args, got.Stderr)
		require.Contains(t, got.Stdout+got.Stderr, c.says, c.args)
	}
	require.Equal(t, "term", p.Line(), "it has lost the lock")
	program.Fails(t, url+"s", 1, "No such master with that name. In the path of --redis or REDIS_URL, use the master", "status", name)
}

func TestPausedWritesAreNotReportedAsOutage(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	srv.Do(t, "CLIENT", "PAUSE", time.Hour.Milliseconds(), "WRITE")
	run := program.Start(t, srv.URL(), "run", "--wait", "1s", "job", "--", "true")
	status := program.Start(t, srv.URL(), "status", "job")
	for _, p := range []*program.Process{run, status} {
		got := p.Outcome(2 * program.Soon)
		require.NotZero(t, got.Code)
		require.NotContains(t, got.Stderr, "redlatch serve")
		require.NotContains(t, got.Stderr, "cannot reach")
	}
}

// This is a single test because it is expensive to start a cluster.
func TestClusterDiagnoses(t *testing.T) {
	testlevel.All(t, "a cluster")
	t.Parallel()
	s := newClusterLocks(t)
	name := s.names[0]
	from, to := s.c.Owner(t, name), s.c.Owner(t, s.names[1])
	s.c.MoveSlot(t, transport.HashSlot(name), to, func() {
		text := s.ok(t, "status", name)
		assert.Contains(t, text, s.id, "the holder is known")
		assert.Contains(t, text, "queue  not shown: TRYAGAIN")
		assert.Contains(t, text, "is moving")
		assert.NotContains(t, text, "may not")
		got := program.Finish(t, s.url, "run", "--fair", "--wait", "3s", name, "--", "true")
		assert.Equal(t, 125, got.Code)
		assert.Contains(t, got.Stderr, "rejected the request: TRYAGAIN")
		assert.Contains(t, got.Stderr, "is moving to another node")
		got = program.Finish(t, s.url, "unlock", "--force", "--even-if-alive", "--yes", name)
		assert.Equal(t, 1, got.Code)
		assert.Contains(t, got.Stdout+got.Stderr, "is moving to another node")
		assert.NotContains(t, got.Stdout, "may not")
	})
	s.c.AwaitOwner(t, name, from)

	down := s.c.Owner(t, s.names[2])
	s.c.Each(func(node *redistest.Server) { node.Do(t, "CONFIG", "SET", "cluster-require-full-coverage", "no") })
	down.Kill()
	for _, args := range [][]string{{"status", s.names[2]}, {"run", "--wait", "1s", s.names[2], "--", "true"}} {
		got := program.Finish(t, s.url, args...)
		require.NotZero(t, got.Code)
		require.Contains(t, got.Stderr, "cannot reach Redis at "+down.Addr()+", a master of redis-cluster://", args)
	}
	got := program.Finish(t, s.url, "list")
	require.Equal(t, 1, got.Code)
	require.Contains(t, got.Stdout, s.names[1])
	require.Contains(t, got.Stderr, "the list is incomplete: cannot reach Redis at "+down.Addr())
	got = program.Finish(t, s.url, "doctor")
	require.Equal(t, 2, got.Code)
	require.Contains(t, got.Stdout, "one of 3 masters")
	require.Contains(t, got.Stdout, down.Addr())
}
