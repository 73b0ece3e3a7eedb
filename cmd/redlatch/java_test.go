package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// javaRelease is the Redisson release for these tests.
const javaRelease = "4.3.1"

// javaReleases returns the releases with which evict is tested.
func javaReleases() []string {
	if text := os.Getenv("REDLATCH_COMPAT_VERSIONS"); text != "" {
		return strings.Fields(text)
	}
	return []string{"3.17.7", "3.52.0", javaRelease}
}

func startJava(t *testing.T, release string) *peer.Peer {
	t.Helper()
	return peer.Start(t, peer.Find(t, filepath.Join("..", ".."), release, "NOT TRIED ON LOCKS OF REDISSON"))
}

type javaClient struct {
	peer *peer.Peer
	name string
	id   string
}

func newJavaClient(t *testing.T, p *peer.Peer, s redistest.Target, settings peer.Command) *javaClient {
	t.Helper()
	j := &javaClient{peer: p, name: redistest.Key(t)}
	var hello struct{ ID string }
	require.NoError(t, j.do(t, peer.Command{"op": "client", "addresses": []string{s.URL()}}.With(settings)).Into(&hello))
	j.id = hello.ID
	t.Cleanup(func() { _, _ = j.begin(peer.Command{"op": "shutdown"}).Wait(2 * program.Soon) })
	return j
}

func (j *javaClient) begin(c peer.Command) *peer.Call {
	return j.peer.Go(peer.Command{"client": j.name, "thread": "main"}.With(c))
}

func (j *javaClient) do(t *testing.T, c peer.Command) peer.Reply {
	t.Helper()
	reply, err := j.begin(c).Wait(2 * program.Soon)
	require.NoError(t, err, "command %v; complaints: %s", c, j.peer.Stderr())
	return reply
}

// lock acquires a lock with a lease, or a renewed one if lease is 0.
func (j *javaClient) lock(t *testing.T, kind, name string, lease time.Duration) {
	t.Helper()
	c := peer.Command{"op": "lock", "kind": kind, "name": name}
	if lease > 0 {
		c["lease"] = lease.Milliseconds()
	}
	j.do(t, c)
}

// wait makes another thread wait for a lock.
func (j *javaClient) wait(kind, name string) *peer.Call {
	return j.begin(peer.Command{"op": "lock", "kind": kind, "name": name, "thread": "waits for " + name, "lease": time.Hour.Milliseconds()})
}

func (j *javaClient) unlock(t *testing.T, kind, name string) {
	t.Helper()
	j.do(t, peer.Command{"op": "unlock", "kind": kind, "name": name})
}

// fixture is a server with a Redlatch client and a Redisson client.
type fixture struct {
	server *redistest.Server
	client *redlatch.Client
	java   *javaClient
}

func newFixture(t *testing.T, p *peer.Peer) *fixture {
	t.Helper()
	s := redistest.Start(t)
	client := program.Open(t, s, redlatch.WithDeadWaiterGrace(time.Hour))
	return &fixture{s, client, newJavaClient(t, p, s, nil)}
}

// awaitQueue waits until n waiters are queued and subscribed, and returns the last one.
func (f *fixture) awaitQueue(t *testing.T, name string, n int) (last string) {
	t.Helper()
	require.Eventually(t, func() bool {
		queue := program.QueueOf(t, f.server, name)
		if len(queue) != n {
			return false
		}
		last = queue[n-1]
		return slices.Contains(f.server.Channels(t), protocol.OwnerChannel(name, last))
	}, 2*program.Soon, program.PollEvery)
	return last
}

// All cases share one Java process, except those in which the process dies.
func TestCommandsWithRedisson(t *testing.T) {
	testlevel.All(t, "a Java machine")
	t.Parallel()
	p := startJava(t, javaRelease)
	for what, scene := range map[string]func(*fixture, *testing.T){
		"show": (*fixture).testShow, "guess": (*fixture).testGuess, "watch": (*fixture).testWatch, "unlock": (*fixture).testUnlock,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			scene(newFixture(t, p), t)
		})
	}
	for _, release := range javaReleases() {
		t.Run("evict, Redisson "+release, func(t *testing.T) {
			t.Parallel()
			living := p
			if release != javaRelease {
				living = startJava(t, release)
			}
			newFixture(t, living).testEvict(t, release)
		})
	}
}

// testShow shows Redisson's locks, with waiters, in each command that reads.
func (f *fixture) testShow(t *testing.T) {
	t.Helper()
	f.java.lock(t, "plain", "nightly-report", time.Hour)
	f.java.lock(t, "fair", "billing-run", time.Hour)
	f.java.lock(t, "read", "books", time.Hour)
	f.java.wait("plain", "nightly-report")
	f.java.wait("fair", "billing-run")
	waiter := f.awaitQueue(t, "billing-run", 1)
	program.AwaitSubscribers(t, f.server, codec.LockChannel("nightly-report"), 1)

	out := program.OK(t, f.server.URL(), "list")
	who := " +Redisson " + f.java.id[28:] + `:\d+ +1 +\S+`
	for _, row := range []string{`billing-run +fair` + who + ` +1`, `books +r/w` + who + ` +-`, `nightly-report +plain` + who + ` +-`, `3 locks`} {
		require.Regexp(t, `(?m)^`+row+`$`, out)
	}
	out = program.OK(t, f.server.URL(), "status", "billing-run")
	require.Regexp(t, `\n  owner  `+f.java.id+`:\d+   count 1\n         Redisson\n`, out)
	require.Regexp(t, `\n      1  `+waiter+`   deadline in \S+\n         subscribed yes, Redisson\n`, out)
	require.Regexp(t, `Redisson, reads, \S+ left\n`, program.OK(t, f.server.URL(), "status", "books"))
	program.Fails(t, f.server.URL(), 124, `lock "nightly-report" is held by `+f.java.id+":", "run", "--try", "nightly-report", "--", "true")

	url, figures := program.Start(t, f.server.URL(), "exporter", "--listen", "127.0.0.1:0", "--every", "1s").Line(), ""
	require.Eventually(t, func() bool {
		page, err := http.Get(url) //nolint:noctx // a test server
		require.NoError(t, err)
		text, err := io.ReadAll(page.Body)
		require.NoError(t, err)
		require.NoError(t, page.Body.Close())
		figures = string(text)
		return strings.Contains(figures, "\nredlatch_exporter_looks_total{outcome=\"ok\"} 2\n")
	}, 2*program.Soon, 20*program.PollEvery)
	for _, line := range []string{
		`locks_held{group="all",kind="plain"} 1`, `locks_held{group="all",kind="fair"} 1`, `locks_held{group="all",kind="readwrite"} 1`,
		`queue_length{group="all"} 1`, `waiters_dead{group="all"} 0`, `waiting_connections{group="all"} 1`,
	} {
		require.Contains(t, figures, "\nredlatch_server_"+line+"\n")
	}
}

// testGuess finds the client of a lock that Redisson renews.
func (f *fixture) testGuess(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		f.java.lock(t, "plain", "job", 0)
		return strings.Contains(program.OK(t, f.server.URL(), "status", "job"), "\n  guess  probably a connection of 127.0.0.1, if the holder is alive: its ")
	}, 2*program.Soon, program.PollEvery)
}

// testWatch passes a plain and a fair lock between Redisson owners.
func (f *fixture) testWatch(t *testing.T) {
	t.Helper()
	f.java.lock(t, "plain", "job", time.Hour)
	f.java.lock(t, "fair", "fair-job", time.Hour)
	p := program.Start(t, f.server.URL(), "watch", "--json", "*job")
	program.Events(p, "held")
	program.Events(p, "held")
	f.java.unlock(t, "plain", "job")
	e := program.Events(p, "released")[0]
	require.Equal(t, "job", e["name"])
	require.Equal(t, "redisson", e["client"])
	require.InDelta(t, 1, e["messages"], 0)

	next := f.java.wait("fair", "fair-job")
	require.Equal(t, f.awaitQueue(t, "fair-job", 1), program.Events(p, "queued")[0]["owner"])
	f.java.unlock(t, "fair", "fair-job")
	woken := program.Events(p, "woken")
	_, err := next.Wait(program.Soon)
	require.NoError(t, err)
	owners, err := redis.Strings(f.server.Do(t, "HKEYS", "fair-job"), nil)
	require.NoError(t, err)
	require.Equal(t, owners[0], woken[len(woken)-1]["owner"])
	require.Contains(t, program.AwaitPassed(p), owners[0])
}

// testUnlock checks that unlock leaves the locks of a live Java process alone and releases the
// locks of a dead one.
func (f *fixture) testUnlock(t *testing.T) {
	t.Helper()
	p := startJava(t, javaRelease)
	doomed := newJavaClient(t, p, f.server, peer.Command{"watchdog": (12 * time.Second).Milliseconds()})
	doomed.lock(t, "plain", "renewed", 0)
	got := program.Finish(t, f.server.URL(), "unlock", "--force", "renewed")
	require.Equal(t, 2, got.Code)
	require.Contains(t, got.Stderr, "its holder is alive, its lease was renewed just now")

	doomed.lock(t, "plain", "orders", time.Hour)
	doomed.lock(t, "read", "ledger", time.Hour)
	owner := func(name string) string {
		keys, err := redis.Strings(f.server.Do(t, "HKEYS", name), nil)
		require.NoError(t, err)
		return keys[slices.IndexFunc(keys, func(key string) bool { return strings.HasPrefix(key, doomed.id) })]
	}
	p.Halt()
	took := program.OK(t, f.server.URL(), "unlock", "--force", "--for", "10ms", "--dead", owner("orders"), "orders")
	require.Contains(t, took, `lock "orders" was released for its holder`)
	f.java.lock(t, "plain", "orders", time.Hour)

	// The live readers keep the lock, and then a writer gets it.
	f.java.lock(t, "read", "ledger", 0)
	ours, err := rreadwritelock.New(f.client, "ledger").Read().Lock(t.Context())
	require.NoError(t, err)
	writer := f.java.wait("write", "ledger")
	program.AwaitSubscribers(t, f.server, protocol.ReadWriteChannel("ledger"), 1)
	took = program.OK(t, f.server.URL(), "unlock", "--force", "--for", "10ms", "--dead", owner("ledger"), "ledger")
	require.Contains(t, took, "was released for 1 of its 3 holders\n")
	require.EqualValues(t, 3, f.server.Do(t, "HLEN", "ledger"), "the mode and two readers")
	require.NoError(t, ours.Unlock())
	f.java.unlock(t, "read", "ledger")
	_, err = writer.Wait(program.Soon)
	require.NoError(t, err)
}

// testEvict kills a Java process whose threads are first in two queues. status must report them,
// and evict must wake the next owner, because the deadlines are minutes away.
func (f *fixture) testEvict(t *testing.T, release string) {
	t.Helper()
	p := startJava(t, release)
	doomed := newJavaClient(t, p, f.server, nil)
	dead, frees := map[string]string{}, map[string]func() error{}
	for _, name := range []string{"next-ours", "next-java"} {
		hold, err := rfairlock.New(f.client, name).Lock(t.Context(), rlock.WithLease(time.Hour))
		require.NoError(t, err)
		doomed.wait("fair", name)
		dead[name], frees[name] = f.awaitQueue(t, name, 1), hold.Unlock
	}
	java, ours := f.java.wait("fair", "next-java"), make(chan error, 1)
	go func() {
		_, err := rfairlock.New(f.client, "next-ours").Lock(t.Context(), rlock.WithLease(time.Hour))
		ours <- err
	}()
	p.Halt()
	for name, owner := range dead {
		next := f.awaitQueue(t, name, 2)
		program.AwaitSubscribers(t, f.server, protocol.OwnerChannel(name, owner), 0)
		out := program.OK(t, f.server.URL(), "status", name)
		require.Contains(t, out, "      1  "+owner)
		require.Contains(t, out, "\n         subscribed no, Redisson\n")
		require.NoError(t, frees[name]())
		require.Contains(t, program.Words(program.OK(t, f.server.URL(), "status", name)),
			"note the first in the queue, "+owner+" (Redisson), has had no subscriber for ")
		out = program.OK(t, f.server.URL(), "evict", name, owner)
		require.Contains(t, out, "  next   "+next+"\n")
		require.Contains(t, program.Words(out), "subscribed yes, notified: the lock is free")
	}
	_, err := java.Wait(program.Soon)
	require.NoError(t, err)
	require.NoError(t, <-ours)
}
