// Package mixed tests Redlatch together with a live Redisson in a Redis Cluster. The tests of the
// root module cover single servers; this package covers the differences of a cluster: two ways to
// publish, moving slots, and dying nodes.
//
// # Which client wakes which
//
// Parties are clients of either library in one of the modes of sharded pub/sub. Each two of them meet on every kind of
// lock and every kind of server:
//
//	one locks ─▶ the other waits, and sleeps (MONITOR) ─▶ the one unlocks
//	    ──received──▶ the waiter acquires: counted, with the time it took
//	    └─not received─▶ the waiter must sleep until the lease expires
//
// The outcome depends on how the holder publishes and how the waiter subscribes. The test observes both instead of
// assuming them.
//
// # Cluster changes
//
// Workers of both libraries take turns with locks while a slot moves and a master dies. Each
// records when it held the lock, by the machine's clock, and the test compares the times:
//
//	work ─▶ the cluster changes ─▶ every worker has had more turns ─▶ stop ─▶ compare
//
// The Java peer is internal/test/peer/java, which is built by scripts/compat.sh. If it is missing, the tests are
// skipped unless CI=true or REDLATCH_COMPAT=1 requires it. REDLATCH_COMPAT_VERSIONS lists the Redisson releases, and
// REDLATCH_WAKEUPS is the number of times that each two parties meet. See docs/testing.md.
package mixed

import (
	"context"
	"errors"
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
	// defaultReleases is the newest supported release of Redisson; more releases take longer.
	defaultReleases = "4.3.1"
	// defaultWakeUps is how often two parties meet on each kind of lock.
	defaultWakeUps = 4
	// atMost limits waits. It does not test performance.
	atMost = 30 * time.Second
)

// TestMain silences go-redis, which logs each connection that a test breaks, and tolerates
// goroutines that rueidis ends after five seconds.
func TestMain(m *testing.M) {
	goredislib.SetLogger(quiet{})
	redistest.Main(m,
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
	)
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// programs returns the Java programs for the releases. If they are missing, the test is skipped unless they are
// required.
func programs(t *testing.T) []peer.Program {
	t.Helper()
	releases := os.Getenv("REDLATCH_COMPAT_VERSIONS")
	if releases == "" {
		releases = defaultReleases
	}
	var all []peer.Program
	for _, release := range strings.Fields(releases) {
		loss := "NOT TESTED WITH REDISSON " + release + " IN A CLUSTER"
		all = append(all, peer.Find(t, filepath.Join("..", "..", ".."), release, loss))
	}
	require.NotEmpty(t, all, "REDLATCH_COMPAT_VERSIONS names no release")
	return all
}

// wakeUps returns how often two parties meet.
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
	mode   string // its shardedSubscriptionMode, or "" if the release does not have this setting

	says, listens string // the commands it publishes and subscribes with; see place.find
}

// connect creates a client of the peer that is closed at the end of the test.
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
		_, _ = j.begin(target{}, peer.Command{"op": "shutdown"}).Wait(atMost) // a peer that has exited has no clients
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

// begin starts a command on the lock's thread or the client's own.
func (j *javaParty) begin(l target, c peer.Command) *peer.Call {
	own := peer.Command{"client": j.client, "thread": j.client + l.thread, "name": l.name, "kind": l.kind.Name}
	return j.peer.Go(own.With(c))
}

// do runs a command that must not throw.
func (j *javaParty) do(t *testing.T, l target, c peer.Command) peer.Reply {
	t.Helper()
	reply, err := j.begin(l, c).Wait(atMost)
	require.NoError(t, err, "%s: %v; stderr: %s", j.title(), c, j.peer.Stderr())
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

// freeing repeats an unlock if Redisson did not send it, because it may not know the node of a slot while it is reading
// the topology of the cluster again.
func (j *javaParty) freeing(l target) held {
	return func(t *testing.T) time.Time {
		t.Helper()
		var thrown *peer.Exception
		for end := time.Now().Add(atMost); ; {
			reply, err := j.begin(l, peer.Command{"op": "unlock"}).Wait(atMost)
			if errors.As(err, &thrown) && thrown.Class == "RedisNodeNotFoundException" && time.Now().Before(end) {
				continue
			}
			require.NoError(t, err, "%s: unlock; stderr: %s", j.title(), j.peer.Stderr())
			return reply.Began()
		}
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

// parked waits until a waiter is parked. A message to readers or to waiters for permits wakes those that are parked; a
// waiter that is about to park sleeps for the TTL that it has read.
func (j *javaParty) parked(t *testing.T, l target) {
	t.Helper()
	require.Eventually(t, func() bool {
		var parked bool
		require.NoError(t, j.do(t, l, peer.Command{"op": "parked"}).Into(&parked))
		return parked
	}, atMost, time.Millisecond)
}

// permit is the only permit of a semaphore, as a lock.
var permit = locksuite.Kind{Name: "permits", New: func(c *redlatch.Client, name string) *rlock.Lock {
	l := &rlock.Lock{}
	*hold.Of(l) = *hold.Of(rsemaphore.NewExpirable(c, name))
	return l
}}

// permitLease is the lease of Redisson's permits that are released explicitly. It is long because Redisson does not
// renew permits.
const permitLease = 10 * time.Minute

// isPermit reports whether the target is a permit.
func (l target) isPermit() bool { return l.kind.Name == permit.Name }

// supply creates the semaphore if the target is a permit.
func (p *place) supply(t *testing.T, l target) {
	t.Helper()
	if l.isPermit() {
		p.cluster.Do(t, "SET", l.name, 1)
	}
}

// acquires returns Redisson's call that acquires a permit.
func acquires(method string, args ...any) peer.Command {
	return peer.Command{"op": "call", "method": method, "args": append(args, "ms")}
}

// gives returns the function with which a Redisson client releases a permit.
func (j *javaParty) gives(l target, id string) held {
	return func(t *testing.T) time.Time {
		t.Helper()
		return j.do(t, l, peer.Command{"op": "call", "method": "release", "args": []any{id}}).Began()
	}
}

// takePermit acquires an available permit.
func (j *javaParty) takePermit(t *testing.T, l target, lease time.Duration) held {
	t.Helper()
	if lease == 0 {
		lease = permitLease
	}
	var id string
	require.NoError(t, j.do(t, l, acquires("acquire", lease.Milliseconds())).Into(&id))
	return j.gives(l, id)
}

// waitForPermit starts to wait for a permit.
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
		// The lease began before the reply arrived.
		had := turn{who: w.who, from: got.Ended(), to: got.Began().Add(turnLease)}
		if began := back.Began(); !began.After(had.to) {
			had.to = began
		}
		return had, err
	}
	return w
}
