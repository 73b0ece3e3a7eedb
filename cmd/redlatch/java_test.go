package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/peertest"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// javaRelease is the Redisson release for these tests.
const javaRelease = "4.3.1"

// javaReleases are the releases for the test of evict.
func javaReleases() []string {
	if text := os.Getenv("REDLATCH_COMPAT_VERSIONS"); text != "" {
		return strings.Fields(text)
	}
	return []string{"3.17.7", "3.52.0", javaRelease}
}

func startJava(t *testing.T, release string) *peer.Peer {
	t.Helper()
	program := peertest.Find(t, filepath.Join("..", ".."), release, "NOT TRIED ON LOCKS OF REDISSON")
	return peertest.Start(t, program)
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

func (j *javaClient) lock(t *testing.T, kind, name string, lease time.Duration) {
	t.Helper()
	c := peer.Command{"op": "lock", "kind": kind, "name": name}
	if lease > 0 {
		c["lease"] = lease.Milliseconds()
	}
	j.do(t, c)
}

func (j *javaClient) unlock(t *testing.T, kind, name string) {
	t.Helper()
	j.do(t, peer.Command{"op": "unlock", "kind": kind, "name": name})
}

// goID is the ID of Redlatch's client.
var goID = uuid.MustParse("0193e6c0-6f00-7000-8000-0000000000aa")

// fixture is a server with a client of Redlatch and one of Redisson.
type fixture struct {
	server  *redistest.Server
	client  *redlatch.Client
	evicted atomic.Int64 // by the client itself
	java    *javaClient
	ids     []string
}

func newFixture(t *testing.T, p *peer.Peer) *fixture {
	t.Helper()
	f := &fixture{server: redistest.Start(t)}
	var err error
	f.client, err = redlatch.Open(t.Context(), f.server.URL(), redlatch.WithClientID(goID),
		redlatch.WithLabel(program.LabelText), redlatch.WithDeadWaiterGrace(time.Minute), redlatch.WithObserver(redlatch.Observer{Evicted: func(redlatch.Evicted) { f.evicted.Add(1) }}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.client.Close()) })
	f.java = f.newJava(t, p, nil)
	return f
}

func (f *fixture) newJava(t *testing.T, p *peer.Peer, settings peer.Command) *javaClient {
	t.Helper()
	j := newJavaClient(t, p, f.server, settings)
	f.ids = append(f.ids, j.id)
	return j
}

// addLocks makes keys that are not locks, and locks:
//
//	orders:42       plain, Redlatch's, entered twice, renewed
//	nightly-report  plain, Java's, for an hour
//	billing-run     fair, Java's, for an hour; Redlatch is queued
//	stuck           fair, free; a dead thread of Java is queued
//	a-name-…        plain, of another owner, without a lease
//	books           a read lock with two readers
func (f *fixture) addLocks(t *testing.T) {
	t.Helper()
	hold, err := rlock.New(f.client, "orders:42").Lock(t.Context())
	require.NoError(t, err)
	_, err = rlock.New(f.client, "orders:42").Lock(hold.Context(t.Context()))
	require.NoError(t, err)
	f.java.lock(t, "plain", "nightly-report", time.Hour)
	f.java.lock(t, "fair", "billing-run", time.Hour)
	f.queue(t, "billing-run")
	program.Enqueue(t, f.server, "stuck", f.java.id+":57", time.Hour)
	f.server.Do(t, "HSET", "a-name-that-is-longer-than-its-column:2026-11", "unheard-of:1", 1)
	f.server.Do(t, "DEL", "a-name-that-is-longer-than-its-column:2026-11")
	f.server.Do(t, "HSET", "a-name-that-is-longer-than-its-column:2026-11", f.java.id+":58", 1)
	f.server.Do(t, "HSET", "books", "mode", "read", f.java.id+":57", 1, f.java.id+":58", 2)
	f.server.Do(t, "HSET", "user:1", "name", "Ada")
	f.server.Do(t, "SET", "counter", 1)
	require.Eventually(t, func() bool {
		return f.server.Do(t, "EXISTS", engine.LabelKey(goID)) == int64(1)
	}, program.Soon, 10*time.Millisecond)
}

func (f *fixture) queue(t *testing.T, name string) {
	t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		// It ends with the test, or acquires the lock.
		_, _ = rfairlock.New(f.client, name).Lock(t.Context())
	}()
	t.Cleanup(func() { <-over })
	require.Eventually(t, func() bool {
		return f.server.Do(t, "LLEN", codec.QueueKey(name)) == int64(1)
	}, program.Soon, 10*time.Millisecond)
}

// checkOutput compares output with a golden file, in which the IDs of Java's clients are constant.
func (f *fixture) checkOutput(t *testing.T, file, text string) {
	t.Helper()
	if !strings.HasSuffix(file, ".json") {
		program.Fits(t, text)
	}
	program.Golden(t, file, text, f.ids...)
}

// One Java process serves all commands, except for locks of dead processes.
func TestLocksOfRedissonAndOfRedlatchAreShown(t *testing.T) {
	testlevel.All(t, "a Java machine")
	t.Parallel()
	p := startJava(t, javaRelease)
	for _, part := range []struct {
		what string
		test func(*fixture, *testing.T)
	}{
		{"unlock", (*fixture).testUnlock}, // the longest first
		{"renewals", (*fixture).testRenewals},
		{"list and status", (*fixture).testListAndStatus},
		{"run", (*fixture).testRun},
		{"exporter", (*fixture).testExporter},
		{"watch", (*fixture).testWatch},
		{"watch a fair lock", (*fixture).testWatchFair},
	} {
		t.Run(part.what, func(t *testing.T) {
			t.Parallel()
			part.test(newFixture(t, p), t)
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
