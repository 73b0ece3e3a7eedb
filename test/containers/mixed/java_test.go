package mixed

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// javaParty is a Redisson client in cluster mode.
type javaParty struct {
	peer   *peer.Peer
	client string
	mode   string // its shardedSubscriptionMode; "" where the release has none

	says, listens string // the commands that it publishes with, and receives from; see place.find
}

// connect makes a client of the peer, which ends with the test.
func connect(t *testing.T, p *peer.Peer, c *redistest.Cluster, mode string, fields peer.Command) *javaParty {
	t.Helper()
	j := &javaParty{peer: p, client: redistest.Key(t), mode: mode}
	var addresses []string
	for _, addr := range c.Addrs() {
		addresses = append(addresses, "redis://"+addr)
	}
	settings := peer.Command{"op": "client", "mode": "cluster", "addresses": addresses, "sharded": mode}
	reply, err := j.begin(target{}, settings.With(fields)).Wait(atMost)
	require.NoError(t, err)
	var hello struct{ Unknown []string }
	require.NoError(t, reply.Into(&hello))
	if slices.Contains(hello.Unknown, "sharded") {
		j.mode = ""
	}
	t.Cleanup(func() {
		_, _ = j.begin(target{}, peer.Command{"op": "shutdown"}).Wait(atMost) // a peer that is gone has no clients
	})
	return j
}

func (j *javaParty) title() string {
	if j.mode == "" {
		return "Redisson " + j.peer.Version
	}
	return "Redisson " + j.mode
}

func (*javaParty) library() string             { return "Redisson" }
func (j *javaParty) publishes() string         { return j.says }
func (j *javaParty) hears(command string) bool { return command == j.listens }

// begin begins a command on the thread for a lock, or on the client's own.
func (j *javaParty) begin(l target, c peer.Command) *peer.Call {
	own := peer.Command{"client": j.client, "thread": j.client + l.thread, "name": l.name, "kind": l.kind.Name}
	return j.peer.Go(own.With(c))
}

// do runs a command and demands that nothing is thrown.
func (j *javaParty) do(t *testing.T, l target, c peer.Command) peer.Reply {
	t.Helper()
	reply, err := j.begin(l, c).Wait(atMost)
	require.NoError(t, err, "%s: %v; complaints: %s", j.title(), c, j.peer.Stderr())
	return reply
}

func (j *javaParty) take(t *testing.T, l target, lease time.Duration) held {
	t.Helper()
	if l.isPermit() {
		return j.takePermit(t, l, lease)
	}
	command := peer.Command{"op": "lock"}
	if lease > 0 {
		command["lease"] = lease.Milliseconds()
	}
	j.do(t, l, command)
	return j.freeing(l)
}

func (j *javaParty) freeing(l target) held {
	return func(t *testing.T) time.Time {
		t.Helper()
		return j.do(t, l, peer.Command{"op": "unlock"}).Began()
	}
}

func (j *javaParty) wait(t *testing.T, l target) <-chan taken {
	t.Helper()
	if l.isPermit() {
		return j.waitForPermit(l)
	}
	call := j.begin(l, peer.Command{"op": "lock"})
	came := make(chan taken, 1)
	go func() {
		reply, err := call.Wait(atMost)
		came <- taken{at: reply.Ended(), free: j.freeing(l), err: err}
	}()
	return came
}
