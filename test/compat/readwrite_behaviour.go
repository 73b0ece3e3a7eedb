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

// testReadWrite runs what both languages do with one read/write lock, side by side.
func (c *compat) testReadWrite(t *testing.T) {
	t.Run("fleet", c.testReadWriteFleet)
	t.Run("behaviour", c.testReadWriteBehaviour)
}

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
	opts = append([]redlatch.Option{watchdog}, opts...)
	return rreadwritelock.New(open(t, p.server, opts...), p.name)
}

// take takes the lock in a role of ours.
func (p *rwPair) take(t *testing.T, role *rlock.Lock, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	return must(role.Lock(t.Context(), opts...))(t)
}

// inside takes the lock in a role with the proof of a hold.
func (p *rwPair) inside(t *testing.T, outer *rlock.Hold, role *rlock.Lock, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	return must(role.Lock(outer.Context(t.Context()), opts...))(t)
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
	c.testReadWriteDefects(t)
}

func (c *compat) testReadersShare(t *testing.T) {
	c.beside(t)
	p := c.rwPair(t)
	p.does(t, "lock", reading(peer.Command{"thread": "t1", "lease": 60000}))
	first, second := p.take(t, p.rw.Read()), p.take(t, p.rw.Read())
	require.True(t, p.truth(t, "tryLock", reading(peer.Command{"thread": "t2"})), "beside two of ours")
	require.True(t, p.truth(t, "isLocked", reading(nil)))
	require.False(t, p.truth(t, "isLocked", writing(nil)))
	require.EqualValues(t, 1, p.java.number(t, reading(peer.Command{"op": "getHoldCount", "thread": "t1", "name": p.name})))
	for range 4 {
		require.False(t, p.truth(t, "tryLock", writing(peer.Command{"thread": "t3"})))
		refused(t, p.rw.Write())
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
	refused(t, p.rw.Read())
	p.does(t, "unlock", writing(nil))
	requireCleanOn(t, p.server, p.name, codec.ReadWriteChannel(p.name))
}

func (c *compat) testJavaDowngrades(t *testing.T) {
	c.beside(t)
	p := c.rwPair(t)
	t1 := peer.Command{"thread": "t1", "lease": 60000}
	p.does(t, "lock", writing(t1))
	p.does(t, "lock", reading(t1))
	refused(t, p.rw.Read())
	p.does(t, "unlock", writing(t1))
	hold := must(p.rw.Read().TryLock(t.Context()))(t)
	refused(t, p.rw.Write())
	p.does(t, "unlock", reading(t1))
	refused(t, p.rw.Write())
	require.NoError(t, hold.Unlock())
}

// testGoDowngrades: Java's waiting readers would sleep for the minute that the writer's lease
// has left.
func (c *compat) testGoDowngrades(t *testing.T) {
	c.beside(t)
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
		must(call.Wait(wakeBound))(t)
	}
	other := ours.await(t, wakeBound).value
	refused(t, p.rw.Write())
	require.NoError(t, other.Unlock())
	require.NoError(t, reader.Unlock())
}
