package compat

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
)

// withinLease bounds the wait for a lock whose holder died: no message is sent then, so a
// waiter must have slept no longer than the lease in its refusal.
const withinLease = watchdogMS*time.Millisecond + wakeBound

// crash is a process of one language that dies, and one of the other that lives.
type crash struct {
	observed
	victim, living begin
	name           string
	channel        string
	parks          time.Duration
	hold           func(t *testing.T, client *redlatch.Client, name string) *rlock.Hold
}

// crashKind is a kind of lock that processes take which crash.
type crashKind struct {
	row     string // begins the lines of the table
	channel func(name string) string
	// victim and living are how either takes the lock: the environment of a Go process, and
	// the fields of a Java command.
	victim, living taking
	// hold takes the lock in this process, with a lease so long that no waiter gets the lock by
	// its end.
	hold func(t *testing.T, client *redlatch.Client, name string) *rlock.Hold
	// parks is what a waiter needs from its last attempt until a message wakes it; 0: nothing.
	parks time.Duration
	// moments are when the victim dies; nil for all.
	moments []string
	// after, where set, looks at what is left, after so many grants.
	after func(t *testing.T, s *redistest.Server, name string, grants int64)
}

type taking struct {
	env  []string
	java peer.Command
}

// held has the hold that came of a call.
func held(t *testing.T) func(hold *rlock.Hold, err error) *rlock.Hold {
	t.Helper()
	return func(hold *rlock.Hold, err error) *rlock.Hold {
		require.NoError(t, err)
		return hold
	}
}

// veryLong is a lease by whose end no waiter gets the lock.
var veryLong = rlock.WithLease(10 * time.Minute)

// testCrashes ends processes of both languages at the moments that matter.
func (c *compat) testCrashes(t *testing.T) {
	c.crashes(t, crashKind{channel: codec.LockChannel, hold: func(t *testing.T, client *redlatch.Client, name string) *rlock.Hold {
		t.Helper()
		return held(t)(rlock.New(client, name).Lock(t.Context(), veryLong))
	}})
}

// testFencedCrashes has them share a lock with tokens.
func (c *compat) testFencedCrashes(t *testing.T) {
	withTokens := taking{[]string{memberFenced + "=yes"}, fenced(nil)}
	c.crashes(t, crashKind{
		row: "with tokens: ", channel: codec.LockChannel, victim: withTokens, living: withTokens,
		hold: func(t *testing.T, client *redlatch.Client, name string) *rlock.Hold {
			t.Helper()
			hold, err := rfencedlock.New(client, name).Lock(t.Context(), veryLong)
			require.NoError(t, err)
			return hold.Hold
		},
		after: func(t *testing.T, s *redistest.Server, name string, grants int64) {
			t.Helper()
			last, err := redis.Int64(s.Do(t, "GET", codec.TokenKey(name)), nil)
			require.NoError(t, err)
			require.Equal(t, grants, last, "one token for each grant")
		},
	})
}

func (c *compat) crashes(t *testing.T, kind crashKind) {
	t.Helper()
	gopher := func(how taking) begin {
		return func(t *testing.T, url, name string) member { t.Helper(); return startGo(t, url, name, how.env...) }
	}
	for _, side := range []struct {
		dies           string
		victim, living begin
	}{
		{"Java halts", c.startJava(nil, kind.victim.java), gopher(kind.living)},
		{"a Go process is killed", gopher(kind.victim), c.startJava(c.peer, kind.living.java)},
	} {
		for _, moment := range []struct {
			when   string
			grants int64
			test   func(crash, *testing.T)
		}{
			{"while it holds", 2, crash.whileItHolds},
			{"while it waits", 2, crash.whileItWaits},
			{"just before its wake-up", 2, crash.beforeItsWakeUp},
			{"just after its wake-up", 3, crash.afterItsWakeUp},
		} {
			if kind.moments != nil && !slices.Contains(kind.moments, moment.when) {
				continue
			}
			t.Run(kind.row+side.dies+" "+moment.when, func(t *testing.T) {
				c.ownLine(t)
				t.Parallel()
				name := redistest.Key(t)
				k := crash{observe(t), side.victim, side.living, name, kind.channel(name), kind.parks, kind.hold}
				moment.test(k, t)
				if kind.after != nil {
					kind.after(t, k.server, name, moment.grants)
				}
			})
		}
	}
}

// holder holds the lock in this process.
func (k crash) holder(t *testing.T) *rlock.Hold {
	t.Helper()
	return k.hold(t, open(t, k.server), k.name)
}

func (k crash) requireClean(t *testing.T) {
	t.Helper()
	requireCleanOn(t, k.server, k.name, k.channel)
}

// park makes processes wait for the lock, which is held, until they sleep.
func (k crash) park(t *testing.T, all ...member) {
	t.Helper()
	k.about(t, k.name)
	for _, m := range all {
		m.lock(t)
		k.parked(t, k.name)
	}
	time.Sleep(k.parks)
}

// leaseSlack is for the clocks of two languages.
const leaseSlack = 100 * time.Millisecond

func (k crash) whileItHolds(t *testing.T) {
	t.Helper()
	victim := k.victim(t, k.server.URL(), k.name)
	living := k.living(t, k.server.URL(), k.name)
	victim.lock(t)
	victim.locked(t, atMost)
	k.park(t, living)
	victim.kill(t)
	died := time.Now()
	left, err := redis.Int64(k.server.Do(t, "PTTL", k.name), nil)
	require.NoError(t, err)
	require.Positive(t, left, "it has died with a lease")
	took := living.locked(t, atMost).Sub(died)
	require.Greater(t, took, time.Duration(left)*time.Millisecond-leaseSlack, "the dead one's lease is respected")
	require.Less(t, took, withinLease)
	living.unlock(t)
	k.requireClean(t)
}

func (k crash) whileItWaits(t *testing.T) {
	t.Helper()
	hold := k.holder(t)
	victim := k.victim(t, k.server.URL(), k.name)
	living := k.living(t, k.server.URL(), k.name)
	k.park(t, victim, living)
	victim.kill(t)
	awaitListenersOn(t, k.server, k.channel, 1)
	require.NoError(t, hold.Unlock())
	living.locked(t, wakeBound)
	living.unlock(t)
	k.requireClean(t)
}

// beforeItsWakeUp: the message is on its way to the victim when that dies. It went
// to every process that waits, so the other one gets the lock at once.
func (k crash) beforeItsWakeUp(t *testing.T) {
	t.Helper()
	proxy := redistest.NewProxy(t, k.server.Addr())
	hold := k.holder(t)
	victim := k.victim(t, proxy.URL(), k.name)
	living := k.living(t, k.server.URL(), k.name)
	k.park(t, victim, living)
	message := proxy.HoldMatching(redistest.ToClient, wakeUp(k.channel))
	require.NoError(t, hold.Unlock())
	awaitHeld(t, message)
	victim.kill(t)
	living.locked(t, wakeBound)
	living.unlock(t)
	k.requireClean(t)
}

// afterItsWakeUp: the victim was woken and has sent its attempt when it dies. The attempt
// arrives, so the lock belongs to a dead process and is free when its lease is over. The
// other process, whose wake-up comes later still, learns the lease from its refusal.
func (k crash) afterItsWakeUp(t *testing.T) {
	t.Helper()
	victims, others := redistest.NewProxy(t, k.server.Addr()), redistest.NewProxy(t, k.server.Addr())
	victims.KeepHalfDead(true)
	hold := k.holder(t)
	victim, living := k.victim(t, victims.URL(), k.name), k.living(t, others.URL(), k.name)
	k.park(t, victim, living)
	attempt := victims.HoldMatching(redistest.ToServer, k.name)
	message := others.HoldMatching(redistest.ToClient, wakeUp(k.channel))
	require.NoError(t, hold.Unlock())
	awaitHeld(t, attempt)
	awaitHeld(t, message)
	victim.kill(t)
	requireHeld(t, k.server, k.name, 0)
	acquired := time.Now()
	attempt.Release()
	requireHeld(t, k.server, k.name, 1)
	message.Release()
	took := living.locked(t, atMost).Sub(acquired)
	require.Greater(t, took, watchdogMS*time.Millisecond/2, "the dead one's lease is respected")
	require.Less(t, took, withinLease)
	living.unlock(t)
	k.requireClean(t)
}

// wakeUp is how the message about a release begins on the wire.
func wakeUp(channel string) string {
	return fmt.Sprintf("message\r\n$%d\r\n%s", len(channel), channel)
}

func awaitHeld(t *testing.T, h *redistest.Held) {
	t.Helper()
	select {
	case <-h.Seen():
	case <-time.After(atMost):
		require.FailNow(t, "what was to be held back did not come")
	}
}

// requireHeld waits until a lock is there, or holds that it is not.
func requireHeld(t *testing.T, s *redistest.Server, name string, want int) {
	t.Helper()
	require.EventuallyWithT(t, func(ct *assert.CollectT) {
		exists, err := redis.Int(s.Do(t, "EXISTS", name), nil)
		require.NoError(ct, err)
		require.Equal(ct, want, exists)
	}, atMost, time.Millisecond)
}
