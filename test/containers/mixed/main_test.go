// Package mixed tests Redlatch together with a live Redisson where Redis is a cluster. What
// the two do on one server the tests of the root module compare; here is what a cluster
// adds: two ways to publish, slots that move, and nodes that die.
//
// # Which client wakes which
//
// Parties are clients of either language, each with its mode of sharded pub/sub. Any two
// meet on every kind of lock and on each kind of server:
//
//	one takes the lock ─▶ the other waits ─▶ it is seen to sleep (MONITOR) ─▶ the one
//	frees the lock ──received──▶ the other has it: counted, and how long it took
//	                └─not received─▶ the other sleeps until the lease is over: so it must be
//
// Which of the two it is follows from how the one publishes and how the other listens, both
// of which are looked at and not assumed.
//
// # What goes on
//
// Workers of both languages take locks in turns while a slot moves and a master dies. Each
// records when it had the lock, by the machine's clock, and the test compares:
//
//	work ─▶ the cluster changes ─▶ every worker has had its turns again ─▶ stop ─▶ compare
//
// The Java peer is the one of internal/test/peer/java, which scripts/compat.sh builds. A
// machine without it skips the tests, unless CI=true or REDLATCH_COMPAT=1 requires it.
// REDLATCH_COMPAT_VERSIONS names Redisson's releases, REDLATCH_WAKEUPS how often any two
// meet: see docs/testing.md.
package mixed

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredislib "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
)

const (
	// defaultReleases is the newest supported release of Redisson: the others take longer.
	defaultReleases = "4.3.1"
	// defaultWakeUps is how often two parties meet, with each kind of lock.
	defaultWakeUps = 4
	// atMost bounds what is waited for. It is no claim about speed.
	atMost = 30 * time.Second
)

// TestMain keeps go-redis from telling of each connection that a test breaks, and lets
// rueidis be late with what it closes in its own time, five seconds after.
func TestMain(m *testing.M) {
	goredislib.SetLogger(quiet{})
	redistest.Main(m,
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
	)
}

// quiet logs nothing.
type quiet struct{}

// Printf is part of go-redis's logger.
func (quiet) Printf(context.Context, string, ...any) {}

// programs finds the peers of the releases to try. A machine without them skips the test,
// unless they are required.
func programs(t *testing.T) []peer.Program {
	t.Helper()
	releases := os.Getenv("REDLATCH_COMPAT_VERSIONS")
	if releases == "" {
		releases = defaultReleases
	}
	var all []peer.Program
	for _, release := range strings.Fields(releases) {
		loss := "NOT TRIED BESIDE REDISSON " + release + " IN A CLUSTER"
		all = append(all, peer.Find(t, filepath.Join("..", "..", ".."), release, loss))
	}
	require.NotEmpty(t, all, "REDLATCH_COMPAT_VERSIONS names no release")
	return all
}

// wakeUps returns how often two parties are to meet.
func wakeUps(t *testing.T) int {
	t.Helper()
	text := os.Getenv("REDLATCH_WAKEUPS")
	if text == "" {
		return defaultWakeUps
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "REDLATCH_WAKEUPS")
	require.Positive(t, n, "REDLATCH_WAKEUPS")
	return n
}

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

// permit is the only permit of a semaphore, as a lock.
var permit = locksuite.Kind{Name: "permits", New: func(c *redlatch.Client, name string) *rlock.Lock {
	l := &rlock.Lock{}
	*hold.Of(l) = *hold.Of(rsemaphore.NewExpirable(c, name))
	return l
}}

// permitLease is that of Redisson's permits that are held until they are given back: it renews none.
const permitLease = 10 * time.Minute

// isPermit reports whether parties meet on a permit.
func (l target) isPermit() bool { return l.kind.Name == permit.Name }

// supply makes the semaphore where a target is a permit.
func (p *place) supply(t *testing.T, l target) {
	t.Helper()
	if l.isPermit() {
		p.cluster.Do(t, "SET", l.name, 1)
	}
}

// acquires is Redisson's call that takes a permit.
func acquires(method string, args ...any) peer.Command {
	return peer.Command{"op": "call", "method": method, "args": append(args, "ms")}
}

// gives is how a Redisson client gives a permit back.
func (j *javaParty) gives(l target, id string) held {
	return func(t *testing.T) time.Time {
		t.Helper()
		return j.do(t, l, peer.Command{"op": "call", "method": "release", "args": []any{id}}).Began()
	}
}

// takePermit takes a permit that is available.
func (j *javaParty) takePermit(t *testing.T, l target, lease time.Duration) held {
	t.Helper()
	if lease == 0 {
		lease = permitLease
	}
	var id string
	require.NoError(t, j.do(t, l, acquires("acquire", lease.Milliseconds())).Into(&id))
	return j.gives(l, id)
}

// waitForPermit begins to wait for a permit.
func (j *javaParty) waitForPermit(l target) <-chan taken {
	call := j.begin(l, acquires("acquire", permitLease.Milliseconds()))
	came := make(chan taken, 1)
	go func() {
		reply, err := call.Wait(atMost)
		var id string
		if err == nil {
			err = reply.Into(&id)
		}
		came <- taken{at: reply.Ended(), free: j.gives(l, id), err: err}
	}()
	return came
}

// permitWorker is javaWorker for a permit.
func permitWorker(j *javaParty, l target) worker {
	l.thread = "-" + l.kind.Name + l.name
	w := worker{who: j.title() + ", " + j.client + ", " + l.kind.Name + " " + l.name, library: j.library(), lock: l.name, theirs: true}
	w.once = func(context.Context) (turn, error) {
		got, err := j.begin(l, acquires("tryAcquire", turnLease.Milliseconds(), turnLease.Milliseconds())).Wait(2 * atMost)
		var id string
		if err == nil {
			err = got.Into(&id)
		}
		if err == nil && id == "" {
			err = redlatch.ErrNotAcquired
		}
		if err != nil {
			return turn{}, err
		}
		<-time.After(turnTime)
		back, err := j.begin(l, peer.Command{"op": "call", "method": "release", "args": []any{id}}).Wait(2 * atMost)
		// Its lease began before it was told so.
		had := turn{who: w.who, from: got.Ended(), to: got.Began().Add(turnLease)}
		if began := back.Began(); !began.After(had.to) {
			had.to = began
		}
		return had, err
	}
	return w
}
