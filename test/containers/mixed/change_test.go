package mixed

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/test/compat/oracle"
	"github.com/redlatch/redlatch/transport"
)

// TestMixedClientsShareLocksDuringClusterChanges moves slots while clients wait for locks in them. Then workers in both
// languages acquire locks in one slot while it is being moved and while its master is killed. While a slot is being
// moved, there must never be two holders. A failover may lose the latest writes, so mutual exclusion is not required.
// All workers must make progress each time.
func TestMixedClientsShareLocksDuringClusterChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("needs servers and Java")
	}
	t.Parallel()
	releases := programs(t)
	for _, program := range releases {
		t.Run(program.Version, func(t *testing.T) {
			c := redistest.StartCluster(t, 3, 1)
			p := watched(t, &place{title: "replicas", sharded: true, cluster: c})
			java := peer.Start(t, program)
			p.slotsMoveUnderWaiters(t, java)
			// With AUTO, Redisson cannot resubscribe after a slot with its channels has been moved, so
			// each move delays its waiters by at least their subscriptionTimeout.
			p.slotMovesUnderWorkers(t, java, transport.ShardingOff, 3)
			p.slotMovesUnderWorkers(t, java, transport.ShardingAuto, 1)
			p.masterIsKilled(t, java)
		})
	}
}

// slotMovesUnderWorkers moves the slot of the workers' locks n times.
func (p *place) slotMovesUnderWorkers(t *testing.T, java *peer.Peer, mode transport.Sharding, times int) {
	t.Helper()
	name := redistest.Key(t)
	all := start(t, p.workers(t, java, mode, name))
	all.progress()
	for range times {
		p.move(t, name, func() { <-time.After(50 * time.Millisecond) }) // both nodes serve the slot
		t.Logf("%v: slot moved: all workers acquired a lock within %v", mode, all.progress())
	}
	assert.Zero(t, all.stop(fmt.Sprintf("%v: moving slots", mode)), "two concurrent holders")
	// A new Redisson client subscribes on the slot's node.
	ours, theirs := overGoRedis(t, p.cluster, mode), connect(t, java, p.cluster, mode.String(), often)
	l := target{kind: locksuite.Kinds[0], name: "{" + name + "}afterwards"}
	if theirs.mode != "" {
		p.meet(t, ours, theirs, l, 0).woken(t)
	}
}

// masterIsKilled kills the master of the workers' locks.
func (p *place) masterIsKilled(t *testing.T, java *peer.Peer) {
	t.Helper()
	name := redistest.Key(t)
	all := start(t, p.workers(t, java, transport.ShardingAuto, name))
	all.progress()
	owner := p.cluster.Owner(t, name)
	owner.Kill()
	p.cluster.AwaitOwner(t, name, owner)
	t.Logf("master replaced: all workers acquired a lock within %v", all.progress())
	all.stop("killed master")
}

// often makes Redisson read the cluster's slots every second instead of every five seconds. Until then, its calls do
// not find a slot that was moved.
var often = peer.Command{"scan": 1000}

// slotsMoveUnderWaiters moves the slot of a lock while one library holds the lock and the other waits for it. Redlatch
// must be woken. For Redisson, the time is logged, and must not be longer than the lease.
func (p *place) slotsMoveUnderWaiters(t *testing.T, java *peer.Peer) {
	t.Helper()
	var met []sleeper
	for _, mode := range []transport.Sharding{transport.ShardingAuto, transport.ShardingOff} {
		ours, theirs := overGoRedis(t, p.cluster, mode), connect(t, java, p.cluster, mode.String(), often)
		l := target{kind: locksuite.Kinds[0], name: redistest.Key(t)}
		met = append(met, p.meet(t, theirs, ours, l, 0, func() { p.move(t, l.name, nil) }))
		l.name = redistest.Key(t)
		met = append(met, p.meet(t, ours, theirs, l, movedLease, func() { p.move(t, l.name, nil) }))
	}
	for _, s := range met {
		got := await(t, s.came, s.String())
		got.free(t)
		t.Logf("%s after a slot move: %v", s, got.at.Sub(s.freed).Round(time.Millisecond))
		if s.waits.library() == "Redlatch" {
			p.inTime(t, s.free, got.at.Sub(s.free), wakeBound, "not woken: "+s.String())
			continue
		}
		p.inTime(t, s.began, got.at.Sub(s.began), movedLease+wakeBound, "asleep after the lease: "+s.String())
	}
}

// movedLease is the lease of locks whose slots move while Redisson waits.
const movedLease = 5 * time.Second

// move moves a lock's slot to another node; see redistest.Cluster.MoveSlot.
func (p *place) move(t *testing.T, name string, between func()) {
	t.Helper()
	to := p.cluster.Nodes()[0]
	if p.cluster.Owner(t, name) == to {
		to = p.cluster.Nodes()[1]
	}
	p.cluster.MoveSlot(t, transport.HashSlot(name), to, between)
}

// workers returns workers of four clients, two of each library, for two locks of each kind in
// name's slot. Each worker of a read/write lock has one role.
func (p *place) workers(t *testing.T, java *peer.Peer, mode transport.Sharding, name string) (all []worker) {
	t.Helper()
	quick := often.With(peer.Command{"subscription": 2000}) // Redisson's default is 7.5 s
	ours := []*goParty{overGoRedis(t, p.cluster, mode), overRueidis(t, p.cluster, mode)}
	theirs := []*javaParty{connect(t, java, p.cluster, mode.String(), quick), connect(t, java, p.cluster, mode.String(), quick)}
	release, err := oracle.ParseRelease(java.Version)
	require.NoError(t, err)
	kinds := locksuite.Kinds
	if !release.TellsQueuedLeft() {
		kinds = kinds[:1] // fair waiters of Redisson may sleep forever when a holder dies
	}
	kinds = slices.Concat(kinds, []locksuite.Kind{locksuite.Writer, locksuite.Reader, permit})
	for _, kind := range kinds {
		for _, which := range []string{"-a", "-b"} {
			l := target{kind: kind, name: "{" + name + "}" + kind.Name + which}
			if kind.ReadWrite {
				l.name = "{" + name + "}read-write" + which
			}
			p.supply(t, l)
			for _, g := range ours {
				all = append(all, goWorker(g, l))
			}
			for _, j := range theirs {
				if l.isPermit() {
					all = append(all, permitWorker(j, l))
				} else {
					all = append(all, javaWorker(j, l))
				}
			}
		}
	}
	return all
}

func TestJudgeDetectsTwoHolders(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time {
		return time.UnixMilli(1_700_000_000_000).Add(time.Duration(ms) * time.Millisecond)
	}
	long, inside := turn{who: "long", from: at(0), to: at(9)}, turn{who: "inside", from: at(2), to: at(3)}
	next, after := turn{who: "next", from: at(8), to: at(12)}, turn{who: "after", from: at(12), to: at(20)}
	require.Empty(t, overlaps(nil))
	require.Empty(t, overlaps([]turn{after, long}))
	require.Empty(t, overlaps([]turn{after, next}), "adjacent turns do not overlap")
	require.Len(t, overlaps([]turn{inside, long}), 1)
	require.Len(t, overlaps([]turn{after, next, inside, long}), 2, "compare with the turn that ends last")
	long.reads, next.reads = true, true
	require.Empty(t, overlaps([]turn{after, next, long}), "both read")
	require.Len(t, overlaps([]turn{after, next, inside, long}), 1, "writer during a reader's turn")
	next.reads, inside.reads = false, true
	require.Len(t, overlaps([]turn{after, next, inside, long}), 1, "compare with the reader that ends last")
}

// TestU15ClusterWakesRedissonAndRedlatchWaiters makes each party release locks for which each other party is waiting. A
// waiter is woken if it has subscribed in the way in which the holder publishes. Otherwise, it sleeps until the lease
// expires.
func TestU15ClusterWakesRedissonAndRedlatchWaiters(t *testing.T) {
	if testing.Short() {
		t.Skip("needs servers and Java")
	}
	t.Parallel()
	releases, n := programs(t), wakeUps(t)
	places := startPlaces(t)
	took := &figures{}
	for _, program := range releases {
		t.Run(program.Version, func(t *testing.T) {
			java := peer.Start(t, program)
			for _, p := range places {
				t.Run(strings.ReplaceAll(p.title, "/", "-"), func(t *testing.T) { p.meetAll(t, java, n, took) })
			}
		})
	}
	t.Logf("no wake-up was lost; from release to the waiter's acquisition, ms:\n%s", took)
}

// meetAll makes all parties in a place meet n times on each kind of lock.
func (p *place) meetAll(t *testing.T, java *peer.Peer, n int, took *figures) {
	t.Helper()
	parties, table := p.parties(t, java), &figures{}
	vanished := p.silence(t)
	var sleepers []sleeper
	eachPair(parties, func(frees, waits party, l target) {
		if !waits.hears(frees.publishes()) {
			l.name, l.thread = redistest.Key(t), "-sleeper-"+strconv.Itoa(len(sleepers))
			sleepers = append(sleepers, p.meet(t, frees, waits, l, sleeperLease))
		}
	})
	eachPair(parties, func(frees, waits party, l target) {
		for range n {
			if !waits.hears(frees.publishes()) {
				return
			}
			l.name = redistest.Key(t)
			d := p.meet(t, frees, waits, l, 0).woken(t)
			table.add(frees.title()+" wakes "+waits.title(), d)
			took.add(frees.library()+" wakes "+waits.library(), d)
		}
	})
	for _, s := range sleepers {
		table.add(s.frees.title()+" does NOT wake "+s.waits.title(), s.slept(t))
	}
	vanished(t)
	if !p.sharded {
		p.refused(t, java)
	}
	t.Logf("Redisson %s, %s: from release to the waiter's acquisition, ms:\n%s", java.Version, p.title, table)
}

// eachPair calls f for each kind of lock and each pair of parties that includes Redisson. Pairs of Redlatch clients are
// covered by the adapters' tests.
func eachPair(parties []party, f func(frees, waits party, l target)) {
	for _, l := range targets() {
		for _, frees := range parties {
			for _, waits := range parties {
				if frees == waits || frees.library() == "Redlatch" && waits.library() == "Redlatch" {
					continue
				}
				f(frees, waits, l)
			}
		}
	}
}

// targets returns each kind of lock and the roles of a read/write lock that wait for each other.
func targets() (all []target) {
	for _, kind := range locksuite.Kinds {
		all = append(all, target{kind: kind})
	}
	all = append(all, target{kind: permit})
	return append(all,
		target{kind: locksuite.Writer, waits: locksuite.Reader}, target{kind: locksuite.Reader, waits: locksuite.Writer})
}

// silence deletes a lock without sending a message while Redlatch waits for it. The function that it returns checks
// that the waiter polled after its poll cap.
func (p *place) silence(t *testing.T) func(t *testing.T) {
	t.Helper()
	const pollCap = 3 * time.Second
	waiter := overGoRedis(t, p.cluster, transport.ShardingAuto, redlatch.WithPollCap(pollCap))
	l := target{kind: locksuite.Kinds[0], name: redistest.Key(t)}
	p.cluster.Do(t, "HSET", l.name, "a peer:1", 1)
	p.cluster.Do(t, "PEXPIRE", l.name, 60000)
	p.since(t, l.name)
	came := waiter.wait(t, l)
	p.parked(t, l.name)
	p.cluster.Do(t, "DEL", l.name)
	gone := time.Now()
	return func(t *testing.T) {
		t.Helper()
		got := await(t, came, "lock deleted")
		got.free(t)
		p.inTime(t, gone, got.at.Sub(gone), pollCap+atMost/10, "asleep after the poll cap")
	}
}

// refused checks both libraries with ON on servers without sharded pub/sub: the unlock returns an
// error although the lock is free.
func (p *place) refused(t *testing.T, java *peer.Peer) {
	t.Helper()
	l := target{kind: locksuite.Kinds[0], name: redistest.Key(t)}
	ours := overGoRedis(t, p.cluster, transport.ShardingOn)
	hold, err := ours.lock(l).TryLock(t.Context())
	require.NoError(t, err)
	err = hold.Unlock()
	require.Error(t, err)
	t.Logf("Redlatch ON, Unlock: %v", err)
	assert.Equal(t, int64(0), p.cluster.Do(t, "EXISTS", l.name), "not released")

	theirs := connect(t, java, p.cluster, "ON", nil)
	if theirs.mode == "" {
		return // the release has no ON
	}
	theirs.do(t, l, peer.Command{"op": "lock"})
	_, err = theirs.begin(l, peer.Command{"op": "unlock"}).Wait(2 * atMost)
	var thrown *peer.Exception
	require.ErrorAs(t, err, &thrown)
	t.Logf("Redisson ON, unlock: %v", err)
	assert.Equal(t, int64(0), p.cluster.Do(t, "EXISTS", l.name), "not released")
}
