package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/peertest"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// javaRelease is the Redisson release of the locks in these tests.
const javaRelease = "4.3.1"

// javaReleases are the releases whose dead waiters are evicted: by default those of the
// comparison with Redisson.
func javaReleases() []string {
	if text := os.Getenv("REDLATCH_COMPAT_VERSIONS"); text != "" {
		return strings.Fields(text)
	}
	return []string{"3.17.7", "3.52.0", javaRelease}
}

// startJava starts a Java process with a Redisson, which ends with the test.
func startJava(t *testing.T, release string) *peer.Peer {
	t.Helper()
	program := peertest.Find(t, filepath.Join("..", ".."), release, "NOT TRIED ON LOCKS OF REDISSON")
	return peertest.Start(t, program)
}

// javaClient is a Redisson client.
type javaClient struct {
	peer *peer.Peer
	name string
	id   string // its UUID
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

// begin begins an operation. Its thread is called main unless the command says else.
func (j *javaClient) begin(c peer.Command) *peer.Call {
	return j.peer.Go(peer.Command{"client": j.name, "thread": "main"}.With(c))
}

// do runs an operation, which must not throw.
func (j *javaClient) do(t *testing.T, c peer.Command) peer.Reply {
	t.Helper()
	reply, err := j.begin(c).Wait(2 * program.Soon)
	require.NoError(t, err, "command %v; complaints: %s", c, j.peer.Stderr())
	return reply
}

// lock takes a lock of a kind, with a lease unless that is 0.
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
