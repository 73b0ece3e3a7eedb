package compat

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// reading and writing are the fields of a Java command about either side of a read/write lock.
func reading(fields peer.Command) peer.Command { return peer.Command{"kind": "read"}.With(fields) }
func writing(fields peer.Command) peer.Command { return peer.Command{"kind": "write"}.With(fields) }

// rwPair is a client of each language at one read/write lock.
type rwPair struct {
	*pair
	rw *rreadwritelock.Lock
}

func (c *compat) rwPair(t *testing.T) *rwPair {
	t.Helper()
	p := c.pair(t)
	return &rwPair{p, rreadwritelock.New(p.client, p.name)}
}

// another is the lock on a client of ours of its own.
func (p *rwPair) another(t *testing.T, opts ...redlatch.Option) *rreadwritelock.Lock {
	t.Helper()
	opts = append([]redlatch.Option{redlatch.WithWatchdogTimeout(watchdogMS * time.Millisecond)}, opts...)
	return rreadwritelock.New(open(t, p.server, opts...), p.name)
}

// take takes the lock in a role of ours.
func (p *rwPair) take(t *testing.T, role *rlock.Lock, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	return held(t)(role.Lock(t.Context(), opts...))
}

// inside takes the lock in a role with the proof of a hold.
func (p *rwPair) inside(t *testing.T, outer *rlock.Hold, role *rlock.Lock, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	return held(t)(role.Lock(outer.Context(t.Context()), opts...))
}

func (p *rwPair) refused(t *testing.T, role *rlock.Lock) {
	t.Helper()
	_, err := role.TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
}

// left is what the lock has left.
func (p *rwPair) left(t *testing.T) time.Duration {
	t.Helper()
	ms, _ := p.server.Do(t, "PTTL", p.name).(int64)
	return time.Duration(ms) * time.Millisecond
}

func (p *rwPair) waiters(t *testing.T, n int) {
	t.Helper()
	awaitListenersOn(t, p.server, codec.ReadWriteChannel(p.name), n)
}

func (c *compat) testReadWriteBehaviour(t *testing.T) {
	t.Run("readers of both languages share and keep writers out", c.testReadersShare)
	t.Run("a Java downgrade lets Go's new readers in", c.testJavaDowngrades)
	t.Run("a Go downgrade wakes waiting readers of both languages", c.testGoDowngrades)
	t.Run("Java forces our roles and we force Java's", c.testRolesForced)
	t.Run("Java unlocks the roles that we acquired, and we Java's", c.testRolesUnlocked)
	t.Run("our watchdog keeps a reader, and Java's a writer", c.testRoleWatchdogs)
	c.testReadWriteDefects(t)
}

func (c *compat) testReadersShare(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.rwPair(t)
	p.does(t, "lock", reading(peer.Command{"thread": "t1", "lease": 60000}))
	first, second := p.take(t, p.rw.Read()), p.take(t, p.rw.Read())
	require.True(t, p.truth(t, "tryLock", reading(peer.Command{"thread": "t2"})), "beside two of ours")
	require.True(t, p.truth(t, "isLocked", reading(nil)))
	require.False(t, p.truth(t, "isLocked", writing(nil)))
	require.EqualValues(t, 1, p.java.number(t, reading(peer.Command{"op": "getHoldCount", "thread": "t1", "name": p.name})))
	for range 4 {
		require.False(t, p.truth(t, "tryLock", writing(peer.Command{"thread": "t3"})))
		p.refused(t, p.rw.Write())
		switch {
		case first != nil:
			require.NoError(t, first.Unlock())
			first = nil
		case second != nil:
			require.NoError(t, second.Unlock())
			second = nil
		case p.truth(t, "isHeldByCurrentThread", reading(peer.Command{"thread": "t1"})):
			p.does(t, "unlock", reading(peer.Command{"thread": "t1"}))
		}
	}
	p.does(t, "unlock", reading(peer.Command{"thread": "t2"}))
	hold := p.take(t, p.rw.Write())
	require.False(t, p.truth(t, "tryLock", reading(nil)))
	require.NoError(t, hold.Unlock())
	p.does(t, "lock", writing(peer.Command{"lease": 60000}))
	p.refused(t, p.rw.Read())
	p.does(t, "unlock", writing(nil))
	requireCleanOn(t, p.server, p.name, codec.ReadWriteChannel(p.name))
}

func (c *compat) testJavaDowngrades(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.rwPair(t)
	t1 := peer.Command{"thread": "t1", "lease": 60000}
	p.does(t, "lock", writing(t1))
	p.does(t, "lock", reading(t1))
	p.refused(t, p.rw.Read())
	p.does(t, "unlock", writing(t1))
	hold := held(t)(p.rw.Read().TryLock(t.Context()))
	p.refused(t, p.rw.Write())
	p.does(t, "unlock", reading(t1))
	p.refused(t, p.rw.Write())
	require.NoError(t, hold.Unlock())
}

// testGoDowngrades: Java's waiting readers would sleep for the minute that the writer's lease
// has left.
func (c *compat) testGoDowngrades(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.rwPair(t)
	writer := p.take(t, p.rw.Write(), rlock.WithLease(time.Minute))
	reader := p.inside(t, writer, p.rw.Read(), rlock.WithLease(time.Minute))
	var theirs []*peer.Call
	for _, thread := range []string{"t1", "t2", "t3"} {
		theirs = append(theirs, p.begin("lock", reading(peer.Command{"thread": thread})))
	}
	ours := lockLater(t, p.another(t).Read())
	p.waiters(t, 2)
	time.Sleep(4 * rwParks)
	require.NoError(t, writer.Unlock())
	for _, call := range theirs {
		_, err := call.Wait(wakeBound)
		require.NoError(t, err, "it was not woken")
	}
	other := ours.await(t, wakeBound).hold
	p.refused(t, p.rw.Write())
	require.NoError(t, other.Unlock())
	require.NoError(t, reader.Unlock())
}

func (c *compat) testRolesForced(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.rwPair(t)
	for role, ours := range map[string]*rlock.Lock{"read": p.rw.Read(), "write": p.rw.Write()} {
		at := peer.Command{"kind": role, "thread": "t1"}
		hold := p.take(t, ours, rlock.WithLease(time.Minute))
		waiter := p.begin("lock", writing(peer.Command{"thread": "waits"}))
		p.waiters(t, 1)
		time.Sleep(4 * rwParks)
		require.True(t, p.truth(t, "forceUnlock", at))
		_, err := waiter.Wait(wakeBound)
		require.NoError(t, err)
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
		p.does(t, "unlock", writing(peer.Command{"thread": "waits"}))
		p.waiters(t, 0)

		p.does(t, "lock", at.With(peer.Command{"lease": 60000}))
		ourWaiter := lockLater(t, p.rw.Write())
		p.waiters(t, 1)
		forced, err := ours.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, forced)
		require.NoError(t, ourWaiter.await(t, wakeBound).hold.Unlock())
		forced, err = ours.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.False(t, forced)
		require.False(t, p.truth(t, "forceUnlock", at))
		p.waiters(t, 0)
	}
}

func (c *compat) testRolesUnlocked(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.rwPair(t)
	owner, err := codec.ParseOwner(p.java.owner(t, "t1"))
	require.NoError(t, err)
	for role, ours := range map[string]*rlock.Lock{"read": p.rw.Read(), "write": p.rw.Write()} {
		at := peer.Command{"kind": role, "thread": "t1", "lease": 60000}
		hold := p.take(t, ours, rlock.WithOwner(owner), rlock.WithLease(time.Minute))
		require.True(t, p.truth(t, "isHeldByCurrentThread", at))
		_, err = hold.HandOver()
		require.NoError(t, err)
		p.does(t, "unlock", at)
		require.Zero(t, p.server.Do(t, "EXISTS", p.name))

		p.does(t, "lock", at)
		p.does(t, "lock", at)
		require.NoError(t, ours.UnlockAs(t.Context(), owner))
		require.NoError(t, ours.UnlockAs(t.Context(), owner))
		require.Zero(t, p.server.Do(t, "EXISTS", p.name))
	}
}

func (c *compat) testRoleWatchdogs(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	ours, theirs := c.rwPair(t), c.rwPair(t) // at once: each takes two leases
	hold := ours.take(t, ours.rw.Read())
	theirs.does(t, "lock", writing(nil))
	writer := ours.begin("tryLock", writing(peer.Command{"wait": twoLeases.Milliseconds()}))
	_, err := theirs.rw.Read().Lock(t.Context(), rlock.WithWait(twoLeases))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	reply, err := writer.Wait(atMost)
	require.NoError(t, err)
	require.JSONEq(t, "false", string(reply.Value), "Java writes beside a reader that is renewed")
	require.NoError(t, hold.Unlock())
	theirs.does(t, "unlock", writing(nil))
	for _, p := range []*rwPair{ours, theirs} {
		requireCleanOn(t, p.server, p.name, codec.ReadWriteChannel(p.name))
	}
}
