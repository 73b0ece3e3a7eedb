package compat

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// withinLease is the time limit for acquiring a lock whose holder has died, which does not send a message.
const withinLease = watchdogMS*time.Millisecond + wakeBound

// fairVictimWait is the wait of a Java victim. The victim keeps its place for this time after the holder's lease.
const fairVictimWait = 6 * time.Second

type crash struct {
	observed
	victim, living begin
	kind           crashKind
	name           string
}

type crashKind struct {
	victim, living string
	channel        func(name string) string
	// parks is the time that a waiter needs after its last attempt until a message can wake it.
	parks   time.Duration
	moments []string
}

const (
	holds, waits, before, after = "while it holds", "while it waits", "just before its wake-up", "just after its wake-up"
	releasing, first, informed  = "as it releases", "as the first in the queue", "while the queue's wake-up is in flight"
)

var moments = map[string]struct {
	test   func(crash, *testing.T)
	grants int64
}{
	holds: {crash.whileItHolds, 2}, waits: {crash.whileItWaits, 2}, before: {crash.beforeItsWakeUp, 2},
	after: {crash.afterItsWakeUp, 3}, releasing: {crash.asItReleases, 3},
	first: {crash.asTheFirst, 2}, informed: {crash.whileInformed, 2},
}

var crashKinds = []crashKind{
	{"plain", "plain", codec.LockChannel, 0, []string{holds, waits, before, after}},
	{"fenced", "fenced", codec.LockChannel, 0, []string{holds, waits, before, after}},
	{"fair", "fair", codec.LockChannel, 0, []string{holds, first, informed}},
	{"write", "write", protocol.ReadWriteChannel, 2 * rwParks, []string{holds, waits, before, after}},
	{"read", "write", protocol.ReadWriteChannel, 2 * rwParks, []string{holds, after}},
	{"write", "read", protocol.ReadWriteChannel, 2 * rwParks, []string{holds, after}},
	{withIDs, withIDs, protocol.SemaphoreChannel, settle, []string{holds, waits, before, after, releasing}},
	{counting, counting, protocol.SemaphoreChannel, settle, []string{waits, before, releasing}},
}

func (c *compat) testCrashes(t *testing.T) {
	for _, kind := range crashKinds {
		if kind.victim == "fenced" && !c.release.HasFenced() {
			continue
		}
		for _, when := range kind.moments {
			var victimWaits peer.Command
			switch {
			case when == first, when == informed: // old releases also send the wait time
				victimWaits = peer.Command{"op": "tryLock", "wait": fairVictimWait.Milliseconds(), "lease": 60000}
			case kind.victim == withIDs && when != holds && when != after:
				victimWaits = peer.Command{"lease": 600000}
			}
			row := fmt.Sprintf("%s, then %s: ", kind.victim, kind.living)
			t.Run(row+"Java halts "+when, func(t *testing.T) {
				c.crash(t, kind, when, c.javaKind(nil, kind.victim, victimWaits), goKind(kind.living))
			})
			t.Run(row+"a Go process is killed "+when, func(t *testing.T) {
				if kind.victim == "fair" && when == holds && !c.release.TellsQueuedLeft() {
					t.Skipf("Redisson %s, as all before 3.32.0, may sleep without an end behind a holder that died", c.release)
				}
				c.crash(t, kind, when, goKind(kind.victim), c.javaKind(c.peer, kind.living, nil))
			})
		}
	}
}

func (c *compat) crash(t *testing.T, kind crashKind, when string, victim, living begin) {
	t.Helper()
	c.beside(t)
	k := crash{observe(t), victim, living, kind, redistest.Key(t)}
	if k.isPool() {
		k.server.Do(t, "SET", k.name, 1)
	}
	moments[when].test(k, t)
	k.requireClean(t)
	if kind.victim == "fenced" {
		last := must(redis.Int64(k.server.Do(t, "GET", protocol.TokenKey(k.name)), nil))(t)
		require.Equal(t, moments[when].grants, last, "one token for each grant")
	}
}

func (k crash) isPool() bool { return k.kind.victim == withIDs || k.kind.victim == counting }

// holder renews a fair lock, so that the waiters' deadlines stay near.
func (k crash) holder(t *testing.T) (release func()) {
	t.Helper()
	lease, client := 10*time.Minute, open(t, k.server)
	if k.kind.victim == "fair" {
		lease, client = 0, open(t, k.server, watchdog)
	}
	kind := k.kind.victim
	if kind == "read" {
		kind = "write"
	}
	end := must(take(t.Context(), client, kind, k.name, lease))(t)
	return func() { t.Helper(); require.NoError(t, end()) }
}

func (k crash) requireClean(t *testing.T) {
	t.Helper()
	switch {
	case k.isPool():
		k.requireHeld(t, false)
		require.Zero(t, k.server.Do(t, "EXISTS", protocol.PermitsKey(k.name)))
		awaitListenersOn(t, k.server, k.kind.channel(k.name), 0)
	case k.kind.victim == "fair":
		requireNoQueue(t, k.server, k.name)
	default:
		requireCleanOn(t, k.server, k.name, k.kind.channel(k.name))
	}
}

func (k crash) requireHeld(t *testing.T, want bool) {
	t.Helper()
	require.EventuallyWithT(t, func(ct *assert.CollectT) {
		if k.isPool() {
			free, err := redis.Int(k.server.Do(t, "GET", k.name), nil)
			require.NoError(ct, err)
			require.Equal(ct, want, free == 0)
			return
		}
		exists, err := redis.Bool(k.server.Do(t, "EXISTS", k.name), nil)
		require.NoError(ct, err)
		require.Equal(ct, want, exists)
	}, atMost, time.Millisecond)
}

func (k crash) left(t *testing.T) time.Duration {
	t.Helper()
	if k.kind.victim != withIDs {
		left := must(redis.Int64(k.server.Do(t, "PTTL", k.name), nil))(t)
		return time.Duration(left) * time.Millisecond
	}
	permits := must(redis.Strings(k.server.Do(t, "ZRANGE", protocol.PermitsKey(k.name), 0, -1, "WITHSCORES"), nil))(t)
	require.Len(t, permits, 2)
	end := must(strconv.ParseFloat(permits[1], 64))(t)
	return time.Until(time.UnixMilli(int64(end)))
}

func (k crash) park(t *testing.T, all ...member) {
	t.Helper()
	k.about(t, k.name)
	for i, m := range all {
		m.lock(t)
		if k.kind.victim == "fair" {
			awaitQueued(t, k.server, k.name, i+1)
			continue
		}
		k.parked(t, k.name)
	}
	time.Sleep(k.kind.parks)
}

const leaseSlack = 100 * time.Millisecond

func (k crash) whileItHolds(t *testing.T) {
	t.Helper()
	victim, living := k.victim(t, k.server.URL(), k.name), k.living(t, k.server.URL(), k.name)
	victim.lock(t)
	victim.locked(t, atMost)
	k.park(t, living)
	victim.kill(t)
	died := time.Now()
	left := k.left(t)
	require.Positive(t, left, "it has died with a lease")
	took := living.locked(t, atMost).Sub(died)
	require.Greater(t, took, left-leaseSlack, "the dead one's lease is respected")
	require.Less(t, took, withinLease)
	unlock(t, living)
}

func (k crash) whileItWaits(t *testing.T) {
	t.Helper()
	release := k.holder(t)
	victim, living := k.victim(t, k.server.URL(), k.name), k.living(t, k.server.URL(), k.name)
	k.park(t, victim, living)
	victim.kill(t)
	awaitListenersOn(t, k.server, k.kind.channel(k.name), 1)
	release()
	living.locked(t, wakeBound)
	unlock(t, living)
}

// beforeItsWakeUp kills the victim while the message is in flight. Every waiting process receives it, so the survivor
// acquires the lock immediately.
func (k crash) beforeItsWakeUp(t *testing.T) {
	t.Helper()
	proxy := redistest.NewProxy(t, k.server.Addr())
	release := k.holder(t)
	victim, living := k.victim(t, proxy.URL(), k.name), k.living(t, k.server.URL(), k.name)
	k.park(t, victim, living)
	message := proxy.HoldMatching(redistest.ToClient, wakeUp(k.kind.channel(k.name)))
	release()
	awaitHeld(t, message)
	victim.kill(t)
	living.locked(t, wakeBound)
	unlock(t, living)
}

// afterItsWakeUp kills the victim after its attempt, so a dead process holds the lock until its lease expires.
func (k crash) afterItsWakeUp(t *testing.T) {
	t.Helper()
	victims, others := redistest.NewProxy(t, k.server.Addr()), redistest.NewProxy(t, k.server.Addr())
	victims.KeepHalfDead(true)
	release := k.holder(t)
	victim, living := k.victim(t, victims.URL(), k.name), k.living(t, others.URL(), k.name)
	k.park(t, victim, living)
	attempt := victims.HoldMatching(redistest.ToServer, k.name)
	message := others.HoldMatching(redistest.ToClient, wakeUp(k.kind.channel(k.name)))
	release()
	awaitHeld(t, attempt)
	awaitHeld(t, message)
	victim.kill(t)
	k.requireHeld(t, false)
	acquired := time.Now()
	attempt.Release()
	k.requireHeld(t, true)
	message.Release()
	took := living.locked(t, atMost).Sub(acquired)
	require.Greater(t, took, watchdogMS*time.Millisecond/2, "the dead one's lease is respected")
	require.Less(t, took, withinLease)
	unlock(t, living)
}

// asItReleases kills the victim after the server has run its release and before it receives the reply. The permit is
// returned exactly once.
func (k crash) asItReleases(t *testing.T) {
	t.Helper()
	victims := redistest.NewProxy(t, k.server.Addr())
	victim, living := k.victim(t, victims.URL(), k.name), k.living(t, k.server.URL(), k.name)
	victim.lock(t)
	victim.locked(t, atMost)
	unlock(t, victim)
	victim.lock(t)
	victim.locked(t, atMost)
	k.park(t, living)
	victims.Blackhole(redistest.ToClient)
	victim.release(t)
	living.locked(t, wakeBound)
	victim.kill(t)
	k.requireHeld(t, true)
	unlock(t, living)
}

// asTheFirst kills the first waiter. The next one acquires the lock at the deadline of the dead waiter.
func (k crash) asTheFirst(t *testing.T) {
	t.Helper()
	release := k.holder(t)
	victim, living := k.victim(t, k.server.URL(), k.name), k.living(t, k.server.URL(), k.name)
	k.park(t, victim, living)
	deadline := deadlineOf(t, k.server, k.name, queueOf(t, k.server, k.name)[0])
	victim.kill(t)
	release()
	requireAfter(t, deadline, living.locked(t, atMost))
	unlock(t, living)
}

func (k crash) whileInformed(t *testing.T) {
	t.Helper()
	proxy := redistest.NewProxy(t, k.server.Addr())
	release := k.holder(t)
	victim, living := k.victim(t, proxy.URL(), k.name), k.living(t, k.server.URL(), k.name)
	k.about(t, k.name)
	victim.lock(t)
	k.attempted(t, k.name, 2)
	owner := awaitQueued(t, k.server, k.name, 1)
	living.lock(t)
	awaitQueued(t, k.server, k.name, 2)
	deadline := deadlineOf(t, k.server, k.name, owner)
	proxy.HoldMatching(redistest.ToServer, k.name)
	message := proxy.HoldMatching(redistest.ToClient, wakeUp(protocol.OwnerChannel(k.name, owner)))
	release()
	awaitHeld(t, message)
	victim.kill(t)
	requireAfter(t, deadline, living.locked(t, atMost))
	unlock(t, living)
}

func requireAfter(t *testing.T, deadline, taken time.Time) {
	t.Helper()
	require.Greater(t, taken.Sub(deadline), -time.Second, "the dead one's place is respected")
	require.Less(t, taken.Sub(deadline), wakeBound)
}

func wakeUp(channel string) string {
	return fmt.Sprintf("message\r\n$%d\r\n%s", len(channel), channel)
}

func awaitHeld(t *testing.T, h *redistest.Held) {
	t.Helper()
	select {
	case <-h.Seen():
	case <-time.After(atMost):
		require.FailNow(t, "no packet to hold back")
	}
}

func (o observed) attempted(t *testing.T, name string, times int) {
	t.Helper()
	for times > 0 {
		call := must(o.watch.Until(name))(t)
		if slices.Contains(call.Keys, codec.QueueKey(name)) {
			times--
		}
	}
}
