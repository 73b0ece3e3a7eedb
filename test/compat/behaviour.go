package compat

import (
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// twoLeases is a time in which a lock that is not renewed is lost for certain.
const twoLeases = 2*watchdogMS*time.Millisecond + time.Second

// pair is a client of each language on one server.
type pair struct {
	*compat
	server *redistest.Server
	java   *java
	client *redlatch.Client
	name   string
	lock   *rlock.Lock
}

func (c *compat) pair(t *testing.T) *pair {
	t.Helper()
	return c.pairWith(t, c.peer, redistest.Shared(t))
}

func (c *compat) pairWith(t *testing.T, p *peer.Peer, s *redistest.Server) *pair {
	t.Helper()
	client := open(t, s, redlatch.WithWatchdogTimeout(watchdogMS*time.Millisecond))
	name := redistest.Key(t)
	return &pair{c, s, connect(t, p, s, peer.Command{"watchdog": watchdogMS}), client, name, rlock.New(client, name)}
}

// does runs a Java operation on the pair's lock.
func (p *pair) does(t *testing.T, op string, fields peer.Command) peer.Reply {
	t.Helper()
	return p.java.do(t, peer.Command{"op": op, "name": p.name}.With(fields))
}

func (p *pair) truth(t *testing.T, op string, fields peer.Command) bool {
	t.Helper()
	return p.java.boolean(t, peer.Command{"op": op, "name": p.name}.With(fields))
}

func (p *pair) begin(op string, fields peer.Command) *peer.Call {
	return p.java.begin(peer.Command{"op": op, "name": p.name}.With(fields))
}

// testBehaviour runs what takes time side by side.
func (c *compat) testBehaviour(t *testing.T) {
	t.Run("Java asks about our lock", c.testJavaAsks)
	t.Run("we ask about Java's lock", c.testWeAsk)
	t.Run("Java forces our lock", c.testJavaForces)
	t.Run("we force Java's lock", c.testWeForce)
	t.Run("our watchdog keeps Java out", c.testOurWatchdog)
	t.Run("Java's watchdog keeps us out", c.testJavaWatchdog)
	t.Run("an expired lease frees both ways", c.testExpiry)
	t.Run("Java counts our re-entries", c.testJavaCounts)
	t.Run("we count Java's re-entries", c.testWeCount)
	t.Run("Java unlocks what we acquired", c.testJavaUnlocksOurs)
	t.Run("we unlock what Java acquired", c.testWeUnlockJavas)
	t.Run("Java takes our lock over", c.testJavaTakesOver)
	t.Run("we take Java's lock over", c.testWeTakeOver)
	t.Run("names are mapped alike", c.testNameMapper)
	t.Run("an interrupted Java waiter is gone", c.testInterruptedWaiter)
	t.Run("a wait that is over leaves no trace", c.testWaitOver)
	c.testMulti(t)
	c.testPlainKin(t)
}

func (c *compat) testJavaAsks(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.pair(t)
	require.False(t, p.truth(t, "isLocked", nil))
	hold, err := p.lock.Lock(t.Context(), rlock.WithLease(time.Minute))
	require.NoError(t, err)
	require.True(t, p.truth(t, "isLocked", nil))
	require.False(t, p.truth(t, "isHeldByCurrentThread", nil))
	require.False(t, p.truth(t, "isHeldByThread", peer.Command{"threadId": hold.Owner().N()}))
	require.Zero(t, p.java.number(t, peer.Command{"op": "getHoldCount", "name": p.name}))
	ttl := p.java.number(t, peer.Command{"op": "remainTimeToLive", "name": p.name})
	require.Positive(t, ttl)
	require.LessOrEqual(t, ttl, time.Minute.Milliseconds())
	require.False(t, p.truth(t, "tryLock", nil))
	p.java.throws(t, "IllegalMonitorStateException", peer.Command{"op": "unlock", "name": p.name})
	require.NoError(t, hold.Unlock())
	require.False(t, p.truth(t, "isLocked", nil))
	require.Equal(t, int64(-2), p.java.number(t, peer.Command{"op": "remainTimeToLive", "name": p.name}))
}

func (c *compat) testWeAsk(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.pair(t)
	owner, err := codec.ParseOwner(p.java.owner(t, "t1"))
	require.NoError(t, err)
	t1 := peer.Command{"thread": "t1", "lease": 60000}
	for want := int64(1); want <= 2; want++ {
		p.does(t, "lock", t1)
		count, err := p.lock.HoldCount(t.Context(), owner)
		require.NoError(t, err)
		require.Equal(t, want, count)
	}
	locked, err := p.lock.IsLocked(t.Context())
	require.NoError(t, err)
	require.True(t, locked)
	held, err := p.lock.IsHeldBy(t.Context(), owner)
	require.NoError(t, err)
	require.True(t, held)
	ttl, err := p.lock.TTL(t.Context())
	require.NoError(t, err)
	require.Positive(t, ttl)
	require.LessOrEqual(t, ttl, time.Minute)

	p.does(t, "unlock", t1)
	_, err = p.lock.TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	p.does(t, "unlock", t1)
	hold, err := p.lock.TryLock(t.Context())
	require.NoError(t, err)
	require.NoError(t, hold.Unlock())
}

func (c *compat) testJavaForces(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.pair(t)
	hold, err := p.lock.Lock(t.Context(), rlock.WithLease(time.Minute))
	require.NoError(t, err)
	waiter := p.begin("lock", peer.Command{"thread": "t1"})
	awaitListeners(t, p.server, p.name, 1)
	require.True(t, p.truth(t, "forceUnlock", peer.Command{"thread": "t2"}))
	_, err = waiter.Wait(wakeBound)
	require.NoError(t, err)
	require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	require.True(t, p.truth(t, "isHeldByCurrentThread", peer.Command{"thread": "t1"}))
	p.does(t, "unlock", peer.Command{"thread": "t1"})
	require.False(t, p.truth(t, "forceUnlock", nil))
}

func (c *compat) testWeForce(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.pair(t)
	t1 := peer.Command{"thread": "t1", "op": "unlock", "name": p.name}
	p.does(t, "lock", peer.Command{"thread": "t1", "lease": 60000})
	waiter := lockLater(t, p.lock)
	awaitListeners(t, p.server, p.name, 1)
	forced, err := p.lock.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, forced)
	got := waiter.await(t, wakeBound)
	p.java.throws(t, "IllegalMonitorStateException", t1)
	require.NoError(t, got.hold.Unlock())
	forced, err = p.lock.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.False(t, forced)
}

func (c *compat) testOurWatchdog(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.pair(t)
	hold, err := p.lock.Lock(t.Context())
	require.NoError(t, err)
	require.False(t, p.truth(t, "tryLock", peer.Command{"wait": twoLeases.Milliseconds()}))
	require.NoError(t, hold.Err())
	require.NoError(t, hold.Unlock())
	require.True(t, p.truth(t, "tryLock", nil))
	p.does(t, "unlock", nil)
}

func (c *compat) testJavaWatchdog(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.pair(t)
	p.does(t, "lock", nil)
	_, err := p.lock.Lock(t.Context(), rlock.WithWait(twoLeases))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	p.does(t, "unlock", nil)
	hold, err := p.lock.TryLock(t.Context())
	require.NoError(t, err)
	require.NoError(t, hold.Unlock())
}

// testExpiry: no message is sent when a lease runs out, so each side must have slept no
// longer than the lease in its refusal.
func (c *compat) testExpiry(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.pair(t)
	const lease = 3 * time.Second
	p.does(t, "lock", peer.Command{"thread": "t1", "lease": lease.Milliseconds()})
	began := time.Now()
	hold, err := p.lock.Lock(t.Context(), rlock.WithLease(lease))
	require.NoError(t, err)
	require.Less(t, time.Since(began), lease+wakeBound)
	require.NoError(t, hold.LetExpire())

	began = time.Now()
	p.does(t, "lock", peer.Command{"thread": "t2"})
	require.Less(t, time.Since(began), lease+wakeBound)
	p.java.throws(t, "IllegalMonitorStateException", peer.Command{"op": "unlock", "name": p.name, "thread": "t1"})
	p.does(t, "unlock", peer.Command{"thread": "t2"})
}

func (c *compat) testNameMapper(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	s := redistest.Start(t)
	const prefix, name = "app:", "orders"
	j := connect(t, c.peer, s, peer.Command{"prefix": prefix})
	lock := rlock.New(open(t, s, redlatch.WithNameMapper(redlatch.PrefixMapper(prefix))), name)

	hold, err := lock.Lock(t.Context())
	require.NoError(t, err)
	require.Equal(t, []byte(prefix+name), s.Do(t, "RANDOMKEY"))
	require.True(t, j.boolean(t, peer.Command{"op": "isLocked", "name": name}))
	waiter := j.begin(peer.Command{"op": "lock", "name": name})
	awaitListeners(t, s, prefix+name, 1)
	require.NoError(t, hold.Unlock())
	_, err = waiter.Wait(wakeBound)
	require.NoError(t, err)

	awaitListeners(t, s, prefix+name, 0)
	ours := lockLater(t, lock)
	awaitListeners(t, s, prefix+name, 1)
	j.do(t, peer.Command{"op": "unlock", "name": name})
	require.NoError(t, ours.await(t, wakeBound).hold.Unlock())
	requireClean(t, s, prefix+name)

	j.do(t, peer.Command{"op": "lock", "name": name})
	forced, err := lock.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, forced)
	// What is left are latches of Redisson's, if anything.
	keys, err := redis.Strings(s.Do(t, "KEYS", "*"), nil)
	require.NoError(t, err)
	for _, key := range keys {
		require.True(t, strings.HasPrefix(key, "redisson_unlock_latch:{"+prefix+name+"}:"), key)
	}
}

// testInterruptedWaiter interrupts a waiter that has subscribed and tried again.
// (Interrupted earlier, Redisson 3.17.7 stays subscribed for good.)
func (c *compat) testInterruptedWaiter(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	o := observe(t)
	p := c.pairWith(t, c.peer, o.server)
	hold, err := p.lock.Lock(t.Context(), rlock.WithLease(time.Minute))
	require.NoError(t, err)
	o.about(t, p.name)
	waiter := p.begin("lockInterruptibly", peer.Command{"thread": p.name})
	o.parked(t, p.name)
	require.True(t, p.truth(t, "interrupt", peer.Command{"thread": p.name}))
	_, err = waiter.Wait(atMost)
	var thrown *peer.Exception
	require.ErrorAs(t, err, &thrown)
	// The other is for a waiter that was still reading the second answer.
	require.Contains(t, []string{"InterruptedException", "RedisException"}, thrown.Class)
	require.NoError(t, hold.Unlock())
	requireClean(t, p.server, p.name)
}

func (c *compat) testWaitOver(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.pair(t)
	p.does(t, "lock", peer.Command{"thread": "t1"})
	_, err := p.lock.Lock(t.Context(), rlock.WithWait(time.Second))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	awaitListeners(t, p.server, p.name, 0)
	require.False(t, p.truth(t, "tryLock", peer.Command{"thread": "t2", "wait": 1000}))
	p.does(t, "unlock", peer.Command{"thread": "t1"})
	requireClean(t, p.server, p.name)
}
