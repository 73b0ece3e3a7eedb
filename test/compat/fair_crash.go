package compat

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

const (
	// fairVictimWait is for how long a Java waiter waits that is to die or to be
	// interrupted first, and how long its place is kept after that of the holder.
	fairVictimWait = 6 * time.Second
	// fairGraceMS is how long the place of a Go process is kept.
	fairGraceMS = 2500
)

// fairCrash is a process of one language that dies, and one of the other that lives.
type fairCrash struct {
	observed
	victim, living beginFair
	name           string
}

// beginFair begins a process for a fair lock: one that is to hold it, or to wait and
// not to come.
type beginFair func(t *testing.T, url, name string, holds bool) member

// testFairCrashes ends processes of both languages at the moments that matter. The waiters
// behind get the lock when the dead owner's lease is over, or its deadline. That is waited
// for last, for all at once.
func (c *compat) testFairCrashes(t *testing.T) {
	t.Parallel()
	type ending struct {
		line string
		ends func(*testing.T)
	}
	var all []ending
	for _, side := range []struct {
		dies           string
		victim, living beginFair
		javaWaits      bool
	}{
		{"Java halts", c.startFairJava(nil), startFairGo, false},
		{"a Go process is killed", startFairGo, c.startFairJava(c.peer), true},
	} {
		for _, moment := range []struct {
			when   string
			crash  func(fairCrash, *testing.T) func(*testing.T)
			ofHeld bool
		}{
			{"while it holds a fair lock", fairCrash.whileItHolds, true},
			{"as the first in the queue", fairCrash.asTheFirst, false},
			{"while the queue's wake-up is on its way to it", fairCrash.beforeItsWakeUp, false},
		} {
			line := side.dies + " " + moment.when
			t.Log(line)
			if side.javaWaits && moment.ofHeld && !c.release.TellsQueuedLeft() {
				all = append(all, ending{line, c.mayNotBear})
				continue
			}
			k := fairCrash{observe(t), side.victim, side.living, redistest.Key(t)}
			all = append(all, ending{line, moment.crash(k, t)})
		}
	}
	for _, e := range all {
		t.Run(e.line, func(t *testing.T) {
			c.ownLine(t)
			e.ends(t)
		})
	}
}

// mayNotBear skips the death of a holder before a Java waiter that knows no more than its
// own deadline: whether that waiter then sleeps for ever is a matter of chance.
func (c *compat) mayNotBear(t *testing.T) {
	t.Helper()
	t.Skipf("Redisson %s, as all before 3.32.0, may sleep without an end behind a holder that died", c.release)
}

// holder holds the lock in this process, renewed every two seconds: what is queued then
// has a deadline that the test can await.
func (k fairCrash) holder(t *testing.T) *rlock.Hold {
	t.Helper()
	client := open(t, k.server, redlatch.WithWatchdogTimeout(watchdogMS*time.Millisecond))
	hold, err := rfairlock.New(client, k.name).Lock(t.Context())
	require.NoError(t, err)
	return hold
}

func (k fairCrash) whileItHolds(t *testing.T) func(*testing.T) {
	t.Helper()
	victim := k.victim(t, k.server.URL(), k.name, true)
	living := k.living(t, k.server.URL(), k.name, true)
	victim.lock(t)
	victim.locked(t, atMost)
	living.lock(t)
	awaitQueued(t, k.server, k.name, 1)
	victim.kill(t)
	died := time.Now()
	return func(t *testing.T) {
		t.Helper()
		require.Less(t, living.locked(t, atMost).Sub(died), withinLease)
		living.unlock(t)
		requireNoQueue(t, k.server, k.name)
	}
}

func (k fairCrash) asTheFirst(t *testing.T) func(*testing.T) {
	t.Helper()
	hold := k.holder(t)
	victim := k.victim(t, k.server.URL(), k.name, false)
	living := k.living(t, k.server.URL(), k.name, true)
	victim.lock(t)
	owner := awaitQueued(t, k.server, k.name, 1)
	living.lock(t)
	awaitQueued(t, k.server, k.name, 2)
	deadline := deadlineOf(t, k.server, k.name, owner)
	victim.kill(t)
	require.NoError(t, hold.Unlock())
	return k.isPassed(deadline, living)
}

// beforeItsWakeUp: only the victim gets the message that the lock is free. The other does
// not find out by itself either.
func (k fairCrash) beforeItsWakeUp(t *testing.T) func(*testing.T) {
	t.Helper()
	proxy := redistest.NewProxy(t, k.server.Addr())
	hold := k.holder(t)
	victim := k.victim(t, proxy.URL(), k.name, false)
	living := k.living(t, k.server.URL(), k.name, true)
	k.about(t, k.name)
	victim.lock(t)
	k.attempted(t, k.name, 2)
	owner := awaitQueued(t, k.server, k.name, 1)
	living.lock(t)
	awaitQueued(t, k.server, k.name, 2)
	deadline := deadlineOf(t, k.server, k.name, owner)
	proxy.HoldMatching(redistest.ToServer, k.name)
	channel := codec.OwnerChannel(k.name, owner)
	message := proxy.HoldMatching(redistest.ToClient, fmt.Sprintf("message\r\n$%d\r\n%s", len(channel), channel))
	require.NoError(t, hold.Unlock())
	awaitHeld(t, message)
	victim.kill(t)
	return k.isPassed(deadline, living)
}

// isPassed checks that the other has the lock when the dead owner's deadline has come.
func (k fairCrash) isPassed(deadline time.Time, living member) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		requireAfter(t, deadline, living.locked(t, atMost))
		living.unlock(t)
		requireNoQueue(t, k.server, k.name)
	}
}

// requireAfter holds that the lock was taken when the deadline of a dead first one
// had come, and soon after that.
func requireAfter(t *testing.T, deadline, taken time.Time) {
	t.Helper()
	require.Greater(t, taken.Sub(deadline), -time.Second, "the dead one's place is respected")
	require.Less(t, taken.Sub(deadline), wakeBound)
}

func startFairGo(t *testing.T, url, name string, _ bool) member {
	t.Helper()
	return startGo(t, url, name, memberFair+"=yes")
}

// newMemberLock returns how a Go process takes its lock.
func newMemberLock(client *redlatch.Client) func(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error) {
	name := os.Getenv(memberLock)
	switch {
	case os.Getenv(memberFair) != "":
		return rfairlock.New(client, name).Lock
	case os.Getenv(memberFenced) != "":
		return func(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error) {
			hold, err := rfencedlock.New(client, name).Lock(ctx, opts...)
			if err != nil {
				return nil, err
			}
			return hold.Hold, nil
		}
	case os.Getenv(memberRole) == "read":
		return rreadwritelock.New(client, name).Read().Lock
	case os.Getenv(memberRole) == "write":
		return rreadwritelock.New(client, name).Write().Lock
	}
	return rlock.New(client, name).Lock
}

// fairJavaMember takes a fair lock for as long as it lives, or waits for it in a way in
// which old releases, too, send the server how long.
type fairJavaMember struct {
	javaMember
	holds bool
}

func (c *compat) startFairJava(shared *peer.Peer) beginFair {
	start := c.startJava(shared, nil)
	return func(t *testing.T, url, name string, holds bool) member {
		t.Helper()
		m, _ := start(t, url, name).(*javaMember) // it is one
		return &fairJavaMember{*m, holds}
	}
}

func (m *fairJavaMember) lock(t *testing.T) {
	t.Helper()
	command := fair(peer.Command{"op": "lock", "name": m.name})
	if !m.holds {
		command = command.With(peer.Command{"op": "tryLock", "wait": fairVictimWait.Milliseconds(), "lease": 60000})
	}
	m.call = m.java.begin(command)
}

func (m *fairJavaMember) unlock(t *testing.T) {
	t.Helper()
	m.java.do(t, fair(peer.Command{"op": "unlock", "name": m.name}))
}
