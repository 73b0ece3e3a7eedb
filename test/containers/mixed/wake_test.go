package mixed

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/peertest"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// TestU15WaitersOfBothLanguagesAreWokenInACluster has every party free locks that every
// other waits for. A party that listens as the other publishes is woken, each time; one
// that does not sleeps until the lease that it knows of is over.
func TestU15WaitersOfBothLanguagesAreWokenInACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("needs servers and a Java machine")
	}
	t.Parallel()
	releases, n := programs(t), wakeUps(t)
	places := startPlaces(t)
	took := &figures{}
	for _, program := range releases {
		t.Run(program.Version, func(t *testing.T) {
			java := peertest.Start(t, program)
			for _, p := range places {
				t.Run(strings.ReplaceAll(p.title, "/", "-"), func(t *testing.T) { p.meetAll(t, java, n, took) })
			}
		})
	}
	t.Logf("none was lost:\n%s", took.markdown("how long after a lock was freed its waiter had it, ms"))
}

// meetAll has all parties of a place meet, so many times with each kind of lock.
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
	t.Logf("Redisson %s, %s: how long after a lock was freed its waiter had it, ms:\n%s", java.Version, p.title, table)
}

// eachPair calls f for each two parties, one of which is Redisson, and each kind of
// lock. Two of Redlatch meet in the adapters' own tests.
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

// targets are what two parties meet on: each kind of lock, and the roles of a read/write lock
// that wait for each other.
func targets() (all []target) {
	for _, kind := range locksuite.Kinds {
		all = append(all, target{kind: kind})
	}
	all = append(all, target{kind: permit})
	return append(all,
		target{kind: locksuite.Writer, waits: locksuite.Reader}, target{kind: locksuite.Reader, waits: locksuite.Writer})
}

// silence has a lock vanish without a word while Redlatch waits for it, and returns what
// holds that the waiter looked for itself when its poll cap was over.
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
		got := await(t, came, "the lock has vanished")
		got.free(t)
		assert.Less(t, got.at.Sub(gone), pollCap+atMost/10)
	}
}

// refused shows what becomes of ON where the servers do not know sharded pub/sub, with
// either library: the unlock returns an error, though the lock is free.
func (p *place) refused(t *testing.T, java *peer.Peer) {
	t.Helper()
	l := target{kind: locksuite.Kinds[0], name: redistest.Key(t)}
	ours := overGoRedis(t, p.cluster, transport.ShardingOn)
	hold, err := ours.lock(l).TryLock(t.Context())
	require.NoError(t, err)
	err = hold.Unlock()
	require.Error(t, err)
	t.Logf("Redlatch ON, Unlock: %v", err)
	assert.Equal(t, int64(0), p.cluster.Do(t, "EXISTS", l.name), "it is free")

	theirs := connect(t, java, p.cluster, "ON", nil)
	if theirs.mode == "" {
		return // there is no ON
	}
	theirs.do(t, l, peer.Command{"op": "lock"})
	_, err = theirs.begin(l, peer.Command{"op": "unlock"}).Wait(2 * atMost)
	var thrown *peer.Exception
	require.ErrorAs(t, err, &thrown)
	t.Logf("Redisson ON, unlock: %v", err)
	assert.Equal(t, int64(0), p.cluster.Do(t, "EXISTS", l.name), "it is free")
}
