package compat

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rsemaphore"
)

// crashPermits is how many permits the semaphore of a permitCrash has.
const crashPermits = 2

// permitCrash is a process that dies as it waits for a permit or gives one back, and one of
// either language that waits for one and lives.
type permitCrash struct {
	observed
	victim, ours, theirs beginPermit
	kind, name           string
}

// testPermitWaiterCrashes ends processes of both languages that wait for a permit, or give one
// back, at the moments that matter: those that live come in.
func (c *compat) testPermitWaiterCrashes(t *testing.T) {
	t.Helper()
	moments := []permitMoment{
		{"while it waits for a permit", withIDs, forLong, permitCrash.whileItWaits},
		{"just before a permit wakes it", withIDs, forLong, permitCrash.beforeItsWakeUp},
		{"just after a permit has woken it", withIDs, watchdogMS * time.Millisecond, permitCrash.afterItsWakeUp},
		{"as it gives a permit back", withIDs, forLong, permitCrash.asItReleases},
		{"while it waits for a counter", counting, 0, permitCrash.whileItWaits},
		{"just before a counter wakes it", counting, 0, permitCrash.beforeItsWakeUp},
		{"as it gives a counter's permit back", counting, 0, permitCrash.asItReleases},
	}
	for _, m := range moments {
		m.run(t, c, "Java halts", c.startJavaPermit(nil, m.kind, m.lease))
	}
	for _, m := range moments {
		m.run(t, c, "a Go process is killed", startGoPermit(m.kind))
	}
}

// permitMoment is when a process dies.
type permitMoment struct {
	when, kind string
	lease      time.Duration // of the permits of a Java process that dies
	test       func(permitCrash, *testing.T)
}

// forLong is a lease that no test sees the end of.
const forLong = 10 * time.Minute

// run has a victim die then.
func (m permitMoment) run(t *testing.T, c *compat, dies string, victim beginPermit) {
	t.Helper()
	t.Run(dies+" "+m.when, func(t *testing.T) {
		c.ownLine(t)
		t.Parallel()
		k := permitCrash{
			observed: observe(t), victim: victim, ours: startGoPermit(m.kind),
			theirs: c.startJavaPermit(c.peer, m.kind, forLong), kind: m.kind, name: redistest.Key(t),
		}
		k.server.Do(t, "SET", k.name, crashPermits)
		m.test(k, t)
		k.has(t, crashPermits, 0)
		require.Zero(t, k.server.Do(t, "EXISTS", codec.PermitsKey(k.name)))
	})
}

// has waits until so many permits are available and so many taken, where that is known.
func (k permitCrash) has(t *testing.T, available, taken int) {
	t.Helper()
	require.EventuallyWithT(t, func(ct *assert.CollectT) {
		free, err := redis.Int(k.server.Do(t, "GET", k.name), nil)
		require.NoError(ct, err)
		require.Equal(ct, available, free, "available")
		out, err := redis.Int(k.server.Do(t, "ZCARD", codec.PermitsKey(k.name)), nil)
		require.NoError(ct, err)
		require.True(ct, k.kind == counting || out == taken, "taken: %d", out)
	}, atMost, time.Millisecond)
}

// holds has this process take n permits, and returns how it gives them back.
func (k permitCrash) holds(t *testing.T, n int) (release func()) {
	t.Helper()
	back, err := permitsOf(open(t, k.server), k.kind, k.name)(t.Context(), n, rsemaphore.WithLease(forLong))
	require.NoError(t, err)
	return func() { require.NoError(t, back()) }
}

// park makes processes wait for a permit until they sleep.
func (k permitCrash) park(t *testing.T, all ...releaser) {
	t.Helper()
	k.about(t, k.name)
	for _, m := range all {
		m.lock(t)
		k.parked(t, k.name)
	}
	time.Sleep(settle)
}

// bothComeIn holds that both have a permit soon, and has them give it back.
func bothComeIn(t *testing.T, all ...releaser) {
	t.Helper()
	for _, m := range all {
		m.locked(t, wakeBound)
	}
	for _, m := range all {
		m.unlock(t)
	}
}

func (k permitCrash) channel() string { return codec.SemaphoreChannel(k.name) }

func (k permitCrash) whileItWaits(t *testing.T) {
	t.Helper()
	release, url := k.holds(t, crashPermits), k.server.URL()
	victim, ours, theirs := k.victim(t, url, k.name), k.ours(t, url, k.name), k.theirs(t, url, k.name)
	k.park(t, victim, ours, theirs)
	victim.kill(t)
	awaitListenersOn(t, k.server, k.channel(), 2)
	release()
	bothComeIn(t, ours, theirs)
}

// beforeItsWakeUp: the messages are on their way to the victim when that dies.
func (k permitCrash) beforeItsWakeUp(t *testing.T) {
	t.Helper()
	proxy := redistest.NewProxy(t, k.server.Addr())
	release, url := k.holds(t, crashPermits), k.server.URL()
	victim, ours, theirs := k.victim(t, proxy.URL(), k.name), k.ours(t, url, k.name), k.theirs(t, url, k.name)
	k.park(t, victim, ours, theirs)
	message := proxy.HoldMatching(redistest.ToClient, wakeUp(k.channel()))
	release()
	awaitHeld(t, message)
	victim.kill(t)
	bothComeIn(t, ours, theirs)
}

// afterItsWakeUp: the victim was woken and has sent its attempt when it dies. The attempt
// arrives, so that one permit belongs to a dead process. The other one is for whichever is woken
// next, and the last comes in when the dead one's lease is over.
func (k permitCrash) afterItsWakeUp(t *testing.T) {
	t.Helper()
	victims, firsts, lasts := redistest.NewProxy(t, k.server.Addr()), redistest.NewProxy(t, k.server.Addr()), redistest.NewProxy(t, k.server.Addr())
	victims.KeepHalfDead(true)
	release := k.holds(t, crashPermits)
	victim, first, last := k.victim(t, victims.URL(), k.name), k.theirs(t, firsts.URL(), k.name), k.ours(t, lasts.URL(), k.name)
	k.park(t, victim, first, last)
	attempt := victims.HoldMatching(redistest.ToServer, k.name)
	toFirst := firsts.HoldMatching(redistest.ToClient, wakeUp(k.channel()))
	toLast := lasts.HoldMatching(redistest.ToClient, wakeUp(k.channel()))
	release()
	for _, held := range []*redistest.Held{attempt, toFirst, toLast} {
		awaitHeld(t, held)
	}
	victim.kill(t)
	k.has(t, crashPermits, 0)
	acquired := time.Now()
	attempt.Release()
	k.has(t, crashPermits-1, 1)
	toFirst.Release()
	first.locked(t, wakeBound)
	k.has(t, 0, crashPermits)
	toLast.Release()
	took := last.locked(t, atMost).Sub(acquired)
	require.Greater(t, took, watchdogMS*time.Millisecond/2, "the dead one's lease is respected")
	require.Less(t, took, withinLease)
	first.unlock(t)
	last.unlock(t)
}

// asItReleases: the victim's release has run, and its reply is on its way, when it dies. The
// permit is back, once, and one that waits has it.
func (k permitCrash) asItReleases(t *testing.T) {
	t.Helper()
	victims, lasts := redistest.NewProxy(t, k.server.Addr()), redistest.NewProxy(t, k.server.Addr())
	victim := k.victim(t, victims.URL(), k.name)
	victim.lock(t)
	victim.locked(t, atMost)
	victim.unlock(t) // the server knows the script from now on
	victim.lock(t)
	victim.locked(t, atMost)
	release := k.holds(t, crashPermits-1)
	first, last := k.ours(t, k.server.URL(), k.name), k.theirs(t, lasts.URL(), k.name)
	k.park(t, first, last)
	victims.Blackhole(redistest.ToClient)
	toLast := lasts.HoldMatching(redistest.ToClient, wakeUp(k.channel()))
	victim.releases(t)
	first.locked(t, wakeBound)
	awaitHeld(t, toLast)
	victim.kill(t)
	k.has(t, 0, crashPermits)
	release()
	k.has(t, 1, crashPermits-1)
	toLast.Release()
	bothComeIn(t, last)
	first.unlock(t)
}
