package compat

import (
	"fmt"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	fenced         bool
}

// testCrashes ends processes of both languages at the moments that matter.
func (c *compat) testCrashes(t *testing.T) { c.crashes(t, false) }

// crashes has them share a plain lock, or one with tokens.
func (c *compat) crashes(t *testing.T, withTokens bool) {
	t.Helper()
	gopher := begin(func(t *testing.T, url, name string) member { t.Helper(); return startGo(t, url, name) })
	java, row := peer.Command{}, ""
	if withTokens {
		row = "with tokens: "
		gopher = func(t *testing.T, url, name string) member {
			t.Helper()
			return startGo(t, url, name, memberFenced+"=yes")
		}
		java = fenced(java)
	}
	for _, side := range []struct {
		dies           string
		victim, living begin
	}{
		{"Java halts", c.startJava(nil, java), gopher},
		{"a Go process is killed", gopher, c.startJava(c.peer, java)},
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
			t.Run(row+side.dies+" "+moment.when, func(t *testing.T) {
				c.ownLine(t)
				t.Parallel()
				k := crash{observe(t), side.victim, side.living, redistest.Key(t), withTokens}
				moment.test(k, t)
				if withTokens {
					last, err := redis.Int64(k.server.Do(t, "GET", codec.TokenKey(k.name)), nil)
					require.NoError(t, err)
					require.Equal(t, moment.grants, last, "one token for each grant")
				}
			})
		}
	}
}

// holder holds the lock in this process, with a lease so long that no waiter gets the lock
// by its end.
func (k crash) holder(t *testing.T) *rlock.Hold {
	t.Helper()
	long := rlock.WithLease(10 * time.Minute)
	if k.fenced {
		hold, err := rfencedlock.New(open(t, k.server), k.name).Lock(t.Context(), long)
		require.NoError(t, err)
		return hold.Hold
	}
	hold, err := rlock.New(open(t, k.server), k.name).Lock(t.Context(), long)
	require.NoError(t, err)
	return hold
}

// park makes processes wait for the lock, which is held, until they sleep.
func (k crash) park(t *testing.T, all ...member) {
	t.Helper()
	k.about(t, k.name)
	for _, m := range all {
		m.lock(t)
		k.parked(t, k.name)
	}
}

func (k crash) whileItHolds(t *testing.T) {
	t.Helper()
	victim := k.victim(t, k.server.URL(), k.name)
	living := k.living(t, k.server.URL(), k.name)
	victim.lock(t)
	victim.locked(t, atMost)
	k.park(t, living)
	victim.kill(t)
	died := time.Now()
	require.Less(t, living.locked(t, atMost).Sub(died), withinLease)
	living.unlock(t)
	requireClean(t, k.server, k.name)
}

func (k crash) whileItWaits(t *testing.T) {
	t.Helper()
	hold := k.holder(t)
	victim := k.victim(t, k.server.URL(), k.name)
	living := k.living(t, k.server.URL(), k.name)
	k.park(t, victim, living)
	victim.kill(t)
	awaitListeners(t, k.server, k.name, 1)
	require.NoError(t, hold.Unlock())
	living.locked(t, wakeBound)
	living.unlock(t)
	requireClean(t, k.server, k.name)
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
	message := proxy.HoldMatching(redistest.ToClient, wakeUp(k.name))
	require.NoError(t, hold.Unlock())
	awaitHeld(t, message)
	victim.kill(t)
	living.locked(t, wakeBound)
	living.unlock(t)
	requireClean(t, k.server, k.name)
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
	message := others.HoldMatching(redistest.ToClient, wakeUp(k.name))
	require.NoError(t, hold.Unlock())
	awaitHeld(t, attempt)
	awaitHeld(t, message)
	victim.kill(t)
	requireHeld(t, k.server, k.name, 0)
	attempt.Release()
	requireHeld(t, k.server, k.name, 1)
	acquired := time.Now()
	message.Release()
	took := living.locked(t, atMost).Sub(acquired)
	require.Greater(t, took, watchdogMS*time.Millisecond/2, "the dead one's lease is respected")
	require.Less(t, took, withinLease)
	living.unlock(t)
	requireClean(t, k.server, k.name)
}

// wakeUp is how the message about a release begins on the wire.
func wakeUp(name string) string {
	channel := codec.LockChannel(name)
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
