package compat

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

func (c *compat) testReadWrite(t *testing.T) {
	t.Run("fleet", c.testReadWriteFleet)
	t.Run("behaviour", c.testReadWriteBehaviour)
}

func reading(fields peer.Command) peer.Command { return peer.Command{"kind": "read"}.With(fields) }
func writing(fields peer.Command) peer.Command { return peer.Command{"kind": "write"}.With(fields) }

type rwPair struct {
	*pair
	rw *rreadwritelock.Lock
}

func (c *compat) rwPair(t *testing.T) *rwPair {
	t.Helper()
	p := c.pair(t)
	return &rwPair{p, rreadwritelock.New(p.client, p.name)}
}

func (p *rwPair) another(t *testing.T, opts ...redlatch.Option) *rreadwritelock.Lock {
	t.Helper()
	opts = append([]redlatch.Option{watchdog}, opts...)
	return rreadwritelock.New(open(t, p.server, opts...), p.name)
}

func (p *rwPair) take(t *testing.T, role *rlock.Lock, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	return must(role.Lock(t.Context(), opts...))(t)
}

func (p *rwPair) inside(t *testing.T, outer *rlock.Hold, role *rlock.Lock, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	return must(role.Lock(outer.Context(t.Context()), opts...))(t)
}

func (p *rwPair) left(t *testing.T) time.Duration {
	t.Helper()
	ms, _ := p.server.Do(t, "PTTL", p.name).(int64)
	return time.Duration(ms) * time.Millisecond
}

func (p *rwPair) waiters(t *testing.T, n int) {
	t.Helper()
	awaitListenersOn(t, p.server, protocol.ReadWriteChannel(p.name), n)
}

func (c *compat) testReadWriteBehaviour(t *testing.T) {
	t.Run("readers of both libraries share and exclude writers", c.testReadersShare)
	t.Run("a Java downgrade admits new Go readers", c.testJavaDowngrades)
	t.Run("a Go downgrade wakes waiting readers of both libraries", c.testGoDowngrades)
	c.testReadWriteDefects(t)
}

func (c *compat) testReadersShare(t *testing.T) {
	c.beside(t)
	p := c.rwPair(t)
	p.does(t, "lock", reading(peer.Command{"thread": "t1", "lease": 60000}))
	first, second := p.take(t, p.rw.Read()), p.take(t, p.rw.Read())
	require.True(t, p.truth(t, "tryLock", reading(peer.Command{"thread": "t2"})), "shares with our two readers")
	require.True(t, p.truth(t, "isLocked", reading(nil)))
	require.False(t, p.truth(t, "isLocked", writing(nil)))
	require.EqualValues(t, 1, p.java.number(t, p.of("getHoldCount", reading(peer.Command{"thread": "t1"}))))
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
	requireCleanOn(t, p.server, p.name, protocol.ReadWriteChannel(p.name))
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

// testGoDowngrades checks that a downgrade sends a message to Java's readers.
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

func (c *compat) testReadWriteDefects(t *testing.T) {
	t.Helper()
	t.Run("D1 a nested read ends a writer's renewal", c.testNestedReadRenewal)
	t.Run("D2 a nested read cuts a writer's lease", c.testNestedReadLease)
	t.Run("D3 a renewed nested read cuts a writer's lease", c.testNestedReadWatchdog)
	t.Run("D4 a reader's renewal cuts the others' lease", c.testReadersCut)
	t.Run("D5 another reader's renewal keeps a dead reader", c.testDeadReader)
	t.Run("D6 readers are lost after a re-entry", c.testReadersForgotten)
	t.Run("D7 a reader's renewal fails", c.testReadRenewalFails)
	t.Run("D8 a downgrade wakes no reader", c.testSilentDowngrade)
}

// defect requires that the condition becomes true within two leases if the release has the defect. Otherwise, it must
// stay false.
func (p *rwPair) defect(t *testing.T, has bool, what string, condition func() bool) {
	t.Helper()
	seen := false
	for end := time.Now().Add(twoLeases); !seen && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		seen = condition()
	}
	require.Equal(t, has, seen, "Redisson %s: %s", p.release, what)
}

func (p *rwPair) exists(t *testing.T, key string) bool {
	t.Helper()
	n := must(redis.Int(p.server.Do(t, "EXISTS", key), nil))(t)
	return n == 1
}

func (p *rwPair) holdKey(t *testing.T, thread string) string {
	t.Helper()
	return protocol.HoldKey(p.name, p.java.owner(t, thread), 1)
}

func (c *compat) testNestedReadRenewal(t *testing.T) {
	c.beside(t)
	p := c.rwPair(t)
	p.does(t, "lock", writing(nil))
	p.does(t, "lock", reading(nil))
	p.does(t, "unlock", reading(nil))
	p.defect(t, c.release.LosesNestedWrites(), "the write lock is gone", func() bool { return !p.exists(t, p.name) })
	p.server.Do(t, "DEL", p.name)

	writer := p.take(t, p.rw.Write())
	require.NoError(t, p.inside(t, writer, p.rw.Read()).Unlock())
	require.False(t, p.truth(t, "tryLock", reading(peer.Command{"thread": "other", "wait": twoLeases.Milliseconds()})))
	require.NoError(t, writer.Unlock())
}

func (c *compat) testNestedReadLease(t *testing.T) {
	c.beside(t)
	const most = 15 * time.Second
	p := c.rwPair(t)
	p.does(t, "lock", writing(peer.Command{"lease": 300000}))
	for range 2 {
		p.does(t, "lock", reading(peer.Command{"lease": most.Milliseconds()}))
	}
	p.does(t, "unlock", reading(nil))
	require.LessOrEqual(t, p.left(t), most, "Redisson has cut its writer's lease")
	p.server.Do(t, "DEL", p.name)

	long, short := rlock.WithLease(5*time.Minute), rlock.WithLease(most)
	writer := p.take(t, p.rw.Write(), long)
	outer := p.inside(t, writer, p.rw.Read(), short)
	require.NoError(t, p.inside(t, outer, p.rw.Read(), short).Unlock())
	require.Greater(t, p.left(t), 10*most)
	require.NoError(t, outer.Unlock())
	require.Greater(t, p.left(t), 10*most)
	require.NoError(t, writer.Unlock())
}

func (c *compat) testNestedReadWatchdog(t *testing.T) {
	c.beside(t)
	p := c.rwPair(t)
	const most = watchdogMS * time.Millisecond
	p.does(t, "lock", writing(peer.Command{"lease": 60000}))
	p.does(t, "lock", reading(nil))
	p.defect(t, true, "the renewal has cut the writer's lease", func() bool { return p.left(t) <= most })
	p.does(t, "unlock", reading(nil))
	p.defect(t, true, "the write lock is gone", func() bool { return !p.exists(t, p.name) })

	writer := p.take(t, p.rw.Write(), rlock.WithLease(time.Minute))
	reader := p.inside(t, writer, p.rw.Read())
	time.Sleep(most)
	require.Greater(t, p.left(t), 5*most)
	require.NoError(t, reader.Unlock())
	require.Greater(t, p.left(t), 5*most)
	require.NoError(t, writer.Unlock())
}

// testReadersCut kills a Java reader while our reader has a long lease. Our reader must keep the lock, or its hold must
// end before a writer acquires the lock.
func (c *compat) testReadersCut(t *testing.T) {
	c.beside(t)
	s := redistest.Shared(t)
	for does, opts := range map[string][]rlock.Option{
		"with its own lease": {rlock.WithLease(time.Minute)},
		"renewed":            {rlock.WithWatchdog(time.Minute)},
	} {
		t.Run(does, func(t *testing.T) {
			t.Parallel()
			const most = watchdogMS * time.Millisecond
			dies := peer.Start(t, c.program)
			p := &rwPair{pair: c.pairWith(t, dies, s, lockKinds[2], watchdog)}
			p.rw = p.another(t)
			hold := p.take(t, p.rw.Read(), opts...)
			p.does(t, "lock", reading(nil))
			p.defect(t, true, "the renewal has cut our lease", func() bool { return p.left(t) <= most })
			dies.Halt()
			writer := lockLater(t, p.another(t).Write())
			require.Eventually(t, func() bool { return p.left(t) > 5*most }, most, time.Millisecond,
				"our next renewal did not repair it")
			time.Sleep(twoLeases)
			require.NoError(t, hold.Err())
			require.Empty(t, writer.outcome, "writer acquired despite our reader")
			require.NoError(t, hold.Unlock())
			require.NoError(t, writer.await(t, wakeBound).value.Unlock())
		})
	}
}

func (c *compat) testDeadReader(t *testing.T) {
	c.beside(t)
	p := c.rwPair(t)
	dead := reading(peer.Command{"thread": "dead", "lease": watchdogMS})
	p.does(t, "lock", dead)
	p.does(t, "lock", reading(peer.Command{"thread": "t1"}))
	p.defect(t, c.release.RenewsOwnReaders(), "the dead reader is gone",
		func() bool { return !p.exists(t, p.holdKey(t, "dead")) })
	p.server.Do(t, "DEL", p.name, p.holdKey(t, "dead"))
	p.server.Do(t, "DEL", p.name)

	p = c.rwPair(t)
	p.does(t, "lock", dead)
	hold := p.take(t, p.rw.Read())
	p.defect(t, true, "our renewal keeps no dead reader alive", func() bool { return !p.exists(t, p.holdKey(t, "dead")) })
	require.NoError(t, hold.Unlock())
	require.NoError(t, must(p.rw.Write().TryLock(t.Context()))(t).Unlock())
}

func (c *compat) testReadersForgotten(t *testing.T) {
	c.beside(t)
	p := c.rwPair(t)
	twice := reading(peer.Command{"thread": "t1"})
	p.does(t, "lock", twice)
	p.does(t, "lock", twice)
	p.does(t, "lock", reading(peer.Command{"thread": "t2"}))
	p.does(t, "unlock", twice)
	p.does(t, "unlock", twice)
	p.defect(t, c.release.LosesReaders(), "the other reader is gone",
		func() bool { return !p.exists(t, p.holdKey(t, "t2")) })
	p.server.Do(t, "DEL", p.name)

	p = c.rwPair(t)
	outer, other := p.take(t, p.rw.Read()), p.take(t, p.rw.Read())
	require.NoError(t, p.inside(t, outer, p.rw.Read()).Unlock())
	require.NoError(t, outer.Unlock())
	require.False(t, p.truth(t, "tryLock", writing(peer.Command{"wait": twoLeases.Milliseconds()})))
	require.NoError(t, other.Unlock())
}

func (c *compat) testReadRenewalFails(t *testing.T) {
	c.beside(t)
	p := c.rwPair(t)
	for range 2 {
		p.does(t, "lock", reading(peer.Command{"thread": "t1"}))
	}
	hold := p.take(t, p.rw.Read())
	outer := p.take(t, p.rw.Read())
	inner := p.inside(t, outer, p.rw.Read())
	p.defect(t, c.release.SpoilsReadRenewals(), "its reader is gone",
		func() bool { return !p.exists(t, p.holdKey(t, "t1")) })
	require.False(t, p.truth(t, "tryLock", writing(peer.Command{"thread": "t2"})))
	for _, h := range []*rlock.Hold{hold, outer, inner} {
		assert.NoError(t, h.Unlock())
	}
}

// testSilentDowngrade checks that Java's waiting readers sleep for the lease, and ours for no longer than the poll cap.
func (c *compat) testSilentDowngrade(t *testing.T) {
	c.beside(t)
	const lease, pollCap = 20 * time.Second, 4 * time.Second
	p := c.rwPair(t)
	at := peer.Command{"lease": lease.Milliseconds()}
	p.does(t, "lock", writing(at))
	p.does(t, "lock", reading(at))
	theirs := p.begin("lock", reading(peer.Command{"thread": "waits"}))
	ours := lockLater(t, p.another(t, redlatch.WithPollCap(pollCap)).Read())
	p.waiters(t, 2)
	time.Sleep(4 * rwParks)
	p.does(t, "unlock", writing(nil))
	began := time.Now()
	require.True(t, p.truth(t, "tryLock", reading(peer.Command{"thread": "new"})), "new reader must acquire immediately")
	got := ours.await(t, atMost)
	require.Less(t, got.at.Sub(began), pollCap+lease/4, "Go's waiting reader")
	_, err := theirs.Wait(pollCap / 4)
	require.ErrorIs(t, err, peer.ErrTimeout, "Java's waiting reader was woken")
	must(theirs.Wait(wakeBound + lease))(t)
	require.NoError(t, got.value.Unlock())
}
