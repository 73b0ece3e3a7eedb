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

func (c *compat) testBehaviour(t *testing.T) {
	for _, kind := range lockKinds {
		for _, test := range []struct {
			does string
			run  func(*testing.T, *pair)
		}{
			{"both inspect the other's lock", testAsks},
			{"either forces the other's lock", testForces},
			{"either watchdog keeps the other out", testWatchdogs},
			{"either counts the other's re-entries", testCounts},
			{"both unlock the other's hold", testUnlocks},
			{"a wait that is over leaves no trace", testWaitOver},
		} {
			t.Run(kind.java+": "+test.does, func(t *testing.T) {
				c.beside(t)
				test.run(t, c.pairOf(t, kind))
			})
		}
	}
	t.Run("an expired lease releases the lock", c.testExpiry)
	t.Run("Java takes over our hold", c.testJavaTakesOver)
	t.Run("we take over Java's hold", c.testWeTakeOver)
	t.Run("name mappers agree", c.testNameMapper)
	t.Run("an interrupted Java waiter leaves", c.testInterruptedWaiter)
	c.testMulti(t)
	t.Run("a Java spin lock releases without a message", c.testSpinFrees)
}

func testAsks(t *testing.T, p *pair) {
	t.Helper()
	ours, theirs := p.rivals(peer.Command{"thread": "rival"})
	require.False(t, p.truth(t, "isLocked", nil))
	hold := must(p.lock.Lock(t.Context(), rlock.WithLease(time.Minute)))(t)
	require.True(t, p.truth(t, "isLocked", nil))
	require.False(t, p.truth(t, "isHeldByCurrentThread", nil))
	require.False(t, p.truth(t, "isHeldByThread", peer.Command{"threadId": hold.Owner().N()}))
	require.Zero(t, p.java.number(t, p.of("getHoldCount", nil)))
	left := p.java.number(t, p.of("remainTimeToLive", nil))
	require.Positive(t, left)
	require.LessOrEqual(t, left, time.Minute.Milliseconds())
	require.False(t, p.truth(t, "tryLock", theirs))
	if p.kind.java != "read" { // early releases do not throw an exception for read locks
		p.java.throws(t, "IllegalMonitorStateException", p.of("unlock", nil))
	}
	require.NoError(t, hold.Unlock())
	require.False(t, p.truth(t, "isLocked", nil))
	require.Equal(t, int64(-2), p.java.number(t, p.of("remainTimeToLive", nil)))

	owner := must(codec.ParseOwner(p.java.owner(t, "t1")))(t)
	t1 := peer.Command{"thread": "t1", "lease": 60000}
	for want := int64(1); want <= 2; want++ {
		p.does(t, "lock", t1)
		p.requireCount(t, want, owner)
	}
	locked := must(p.lock.IsLocked(t.Context()))(t)
	require.True(t, locked)
	ttl := must(p.lock.TTL(t.Context()))(t)
	require.Positive(t, ttl)
	require.LessOrEqual(t, ttl, 2*time.Minute, "Redisson adds a writer's leases")
	p.does(t, "unlock", t1)
	refused(t, ours)
	p.does(t, "unlock", t1)
	require.NoError(t, must(ours.TryLock(t.Context()))(t).Unlock())
}

// testForces uses a long lease, so that only a message can wake the waiter in time.
func testForces(t *testing.T, p *pair) {
	t.Helper()
	ours, waits := p.rivals(peer.Command{"thread": "waits"})
	hold := must(p.lock.Lock(t.Context(), rlock.WithLease(time.Minute)))(t)
	waiter := p.begin("lock", waits)
	p.await(t, 1)
	require.True(t, p.truth(t, "forceUnlock", peer.Command{"thread": "t2"}))
	must(waiter.Wait(wakeBound))(t)
	require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	p.does(t, "unlock", waits)
	require.False(t, p.truth(t, "forceUnlock", nil))
	p.await(t, 0)

	p.does(t, "lock", peer.Command{"thread": "t1", "lease": 60000})
	ourWaiter := lockLater(t, ours)
	p.await(t, 1)
	for _, want := range []bool{true, false} {
		forced := must(p.lock.ForceUnlock(t.Context()))(t)
		require.Equal(t, want, forced)
		if want {
			require.NoError(t, ourWaiter.await(t, wakeBound).value.Unlock())
		}
	}
	p.await(t, 0)
}

// testWatchdogs tests both sides concurrently because each needs two leases.
func testWatchdogs(t *testing.T, p *pair) {
	t.Helper()
	theirs := p.pairOf(t, p.kind)
	hold := must(p.lock.Lock(t.Context()))(t)
	theirs.does(t, "lock", nil)
	_, rival := p.rivals(peer.Command{"thread": "rival", "wait": twoLeases.Milliseconds()})
	waiter := p.begin("tryLock", rival)
	ours, _ := theirs.rivals(nil)
	_, err := ours.Lock(t.Context(), rlock.WithWait(twoLeases))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	reply := must(waiter.Wait(atMost))(t)
	require.JSONEq(t, "false", string(reply.Value), "Java acquired a renewed lock")
	require.NoError(t, hold.Err())
	require.NoError(t, hold.Unlock())
	theirs.does(t, "unlock", nil)
	p.requireFree(t)
	theirs.requireFree(t)
}

func testCounts(t *testing.T, p *pair) {
	t.Helper()
	owner := must(codec.ParseOwner(p.java.owner(t, "t1")))(t)
	t1 := peer.Command{"thread": "t1"}
	requireBoth := func(want int64) {
		t.Helper()
		require.Equal(t, want, p.java.number(t, p.of("getHoldCount", t1)))
		require.Equal(t, want > 0, p.truth(t, "isHeldByCurrentThread", t1))
		require.Equal(t, want > 0, p.truth(t, "isHeldByThread", peer.Command{"threadId": owner.N()}))
		p.requireCount(t, want, owner)
	}
	ours, theirs := p.rivals(peer.Command{"thread": "rival"})
	p.does(t, "lock", t1)
	p.does(t, "lock", t1)
	requireBoth(2)
	hold := must(p.lock.Lock(t.Context(), rlock.WithOwner(owner)))(t)
	again := must(p.lock.TryLock(t.Context(), rlock.WithOwner(owner)))(t)
	requireBoth(4)
	require.False(t, p.truth(t, "tryLock", theirs))
	refused(t, ours)
	p.does(t, "unlock", t1)
	require.NoError(t, hold.Unlock())
	requireBoth(2)
	p.does(t, "unlock", t1)
	requireBoth(1) // Java considers the lock released, but it is still held on the server
	refused(t, ours)
	require.NoError(t, again.Unlock())
	requireBoth(0)
	p.requireFree(t)
}

func testUnlocks(t *testing.T, p *pair) {
	t.Helper()
	owner, job := p.job(t)
	ours, waits := p.rivals(peer.Command{"thread": "waits"})
	hold := must(p.lock.Lock(t.Context(), rlock.WithOwner(owner), rlock.WithLease(time.Minute)))(t)
	given := must(hold.HandOver())(t)
	require.Equal(t, owner, given)
	require.ErrorIs(t, hold.Err(), redlatch.ErrHandedOver)
	require.True(t, p.truth(t, "isHeldByThread", job))
	waiter := lockLater(t, ours)
	p.await(t, 1)
	p.does(t, "unlockAsync", job)
	require.NoError(t, waiter.await(t, wakeBound).value.Unlock())

	foreign := codec.NewOwner(owner.Client(), owner.N()+1)
	for name, unlock := range map[string]func(*testing.T) error{
		"UnlockAs": func(t *testing.T) error { t.Helper(); return p.lock.UnlockAs(t.Context(), owner) },
		"Resume": func(t *testing.T) error {
			t.Helper()
			return must(p.lock.Resume(t.Context(), owner, rlock.WithLease(time.Minute)))(t).Unlock()
		},
	} {
		p.does(t, "lockAsync", job.With(peer.Command{"lease": 60000}))
		require.ErrorIs(t, p.lock.UnlockAs(t.Context(), foreign), redlatch.ErrNotHeld)
		_, err := p.lock.Resume(t.Context(), foreign)
		require.ErrorIs(t, err, redlatch.ErrNotHeld)
		p.requireCount(t, 1, owner)
		theirs := p.begin("lock", waits)
		p.await(t, 1)
		require.NoError(t, unlock(t), name)
		must(theirs.Wait(wakeBound))(t)
		p.does(t, "unlock", waits)
	}
	hold = must(p.lock.Lock(t.Context(), rlock.WithOwner(owner), rlock.WithLease(time.Minute)))(t)
	p.does(t, "unlockAsync", job) // a Java client that knows the job ID does not need HandOver
	require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	p.requireFree(t)
}

func testWaitOver(t *testing.T, p *pair) {
	t.Helper()
	const wait = 2 * time.Second
	ours, theirs := p.rivals(peer.Command{"thread": "rival", "wait": wait.Milliseconds(), "lease": 60000})
	p.does(t, "lock", peer.Command{"thread": "t1", "lease": 60000})
	_, err := ours.Lock(t.Context(), rlock.WithWait(wait))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	require.False(t, p.truth(t, "tryLock", theirs))
	p.does(t, "unlock", peer.Command{"thread": "t1"})
	p.requireFree(t)
}

func (c *compat) testExpiry(t *testing.T) {
	c.beside(t)
	p := c.pair(t)
	const left = 3000
	p.does(t, "lock", peer.Command{"thread": "t1", "lease": left})
	hold := must(p.lock.Lock(t.Context(), rlock.WithLease(time.Minute), rlock.WithWait(atMost)))(t)
	require.NoError(t, hold.LetExpire())

	p.server.Do(t, "PEXPIRE", p.lock.Name(), left)
	p.does(t, "lock", peer.Command{"thread": "t2"})
	p.java.throws(t, "IllegalMonitorStateException", p.of("unlock", peer.Command{"thread": "t1"}))
	p.does(t, "unlock", peer.Command{"thread": "t2"})
}

func (c *compat) testJavaTakesOver(t *testing.T) {
	c.beside(t)
	p := c.pair(t)
	owner, job := p.job(t)
	handOver := func() {
		t.Helper()
		must(must(p.lock.Lock(t.Context(), rlock.WithOwner(owner)))(t).HandOver())(t)
	}
	handOver()
	p.does(t, "lockAsync", job)
	p.requireCount(t, 2, owner)
	_, err := p.lock.Lock(t.Context(), rlock.WithWait(twoLeases))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	p.does(t, "unlockAsync", job)
	p.requireCount(t, 1, owner)
	p.does(t, "unlockAsync", job)
	p.requireFree(t)

	handOver()
	require.True(t, p.truth(t, "tryLock", peer.Command{"wait": twoLeases.Milliseconds()}),
		"it was not taken over, and is not renewed")
	p.does(t, "unlock", nil)
}

func (c *compat) testWeTakeOver(t *testing.T) {
	c.beside(t)
	p, other := c.pair(t), c.pair(t)
	owner, job := other.job(t)
	other.name = p.name
	other.does(t, "lockAsync", job)
	other.does(t, "shutdown", nil)
	hold := must(p.lock.Resume(t.Context(), owner))(t)
	require.False(t, p.truth(t, "tryLock", peer.Command{"wait": twoLeases.Milliseconds()}))
	require.NoError(t, hold.Err())
	p.requireCount(t, 1, owner)
	require.NoError(t, hold.Unlock())
	p.requireFree(t)
}

func (c *compat) testNameMapper(t *testing.T) {
	c.beside(t)
	s := redistest.Start(t)
	const prefix, name = "app:", "orders"
	j := connect(t, c.peer, s, peer.Command{"prefix": prefix})
	lock := rlock.New(open(t, s, redlatch.WithNameMapper(redlatch.PrefixMapper(prefix))), name)
	hold := must(lock.Lock(t.Context()))(t)
	require.Equal(t, []byte(prefix+name), s.Do(t, "RANDOMKEY"))
	require.True(t, j.boolean(t, peer.Command{"op": "isLocked", "name": name}))
	waiter := j.begin(peer.Command{"op": "lock", "name": name})
	awaitListeners(t, s, prefix+name, 1)
	require.NoError(t, hold.Unlock())
	must(waiter.Wait(wakeBound))(t)

	awaitListeners(t, s, prefix+name, 0)
	ours := lockLater(t, lock)
	awaitListeners(t, s, prefix+name, 1)
	j.do(t, peer.Command{"op": "unlock", "name": name})
	require.NoError(t, ours.await(t, wakeBound).value.Unlock())
	requireClean(t, s, prefix+name)

	j.do(t, peer.Command{"op": "lock", "name": name})
	forced := must(lock.ForceUnlock(t.Context()))(t)
	require.True(t, forced)
	keys := must(redis.Strings(s.Do(t, "KEYS", "*"), nil))(t)
	for _, key := range keys {
		require.True(t, strings.HasPrefix(key, "redisson_unlock_latch:{"+prefix+name+"}:"), key)
	}
}

// testInterruptedWaiter waits for the second attempt, because Redisson 3.17.7 stays subscribed forever if the waiter is
// interrupted before it.
func (c *compat) testInterruptedWaiter(t *testing.T) {
	c.beside(t)
	o := observe(t)
	p := c.pairWith(t, c.peer, o.server, lockKinds[0], watchdog)
	hold := must(p.lock.Lock(t.Context(), rlock.WithLease(time.Minute)))(t)
	o.about(t, p.name)
	waiter := p.begin("lockInterruptibly", peer.Command{"thread": p.name})
	o.parked(t, p.name)
	p.interrupt(t, waiter)
	require.NoError(t, hold.Unlock())
	requireClean(t, p.server, p.name)
}

func (p *pair) interrupt(t *testing.T, waiter *peer.Call) {
	t.Helper()
	require.True(t, p.truth(t, "interrupt", peer.Command{"thread": p.name}))
	_, err := waiter.Wait(atMost)
	var thrown *peer.Exception
	require.ErrorAs(t, err, &thrown)
	// RedisException is thrown if the waiter was still reading its second reply.
	require.Contains(t, []string{"InterruptedException", "RedisException"}, thrown.Class)
}

const spinPoll = 200 * time.Millisecond

// testSpinFrees checks that our waiter polls, because a spin lock does not send a message when it is released.
func (c *compat) testSpinFrees(t *testing.T) {
	c.beside(t)
	p := c.pairWith(t, c.peer, redistest.Start(t), lockKinds[0], redlatch.WithPollCap(objectPoll))
	spin := peer.Command{"kind": "spin", "thread": "main"}
	p.does(t, "lock", spin)
	require.True(t, p.truth(t, "tryLock", spin), "it is entered again")
	refused(t, p.lock)
	p.does(t, "unlock", spin)
	w := lockLater(t, p.lock, rlock.WithPolling(spinPoll))
	time.Sleep(settle)
	require.Empty(t, w.outcome, "Java holds it still")
	published := p.server.CommandStats(t)["publish"]
	p.does(t, "unlock", spin)
	got := w.await(t, wakeBound)
	require.Equal(t, published, p.server.CommandStats(t)["publish"], "a spin lock's release has sent a message")
	require.NoError(t, got.value.Unlock())
	requireClean(t, p.server, p.name)
}
