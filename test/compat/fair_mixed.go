package compat

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// testFair runs what both languages do with one fair lock, side by side.
func (c *compat) testFair(t *testing.T) {
	t.Run("dead Java waiters do not block the queue for long", c.testFairDead) // the longest first
	t.Run("a Java waiter that is late to listen keeps its place", c.testFairLate)
	t.Run("an interrupted Java waiter keeps its place until its deadline", c.testFairInterrupted)
	t.Run("an interrupted Java waiter is taken out by hand", c.testFairEvicted)
	t.Run("turns come in the order of the queue", c.testFairOrder)
	t.Run("fifty waiters of six processes have no inversion", c.testFairProcesses)
	t.Run("no waiter is overtaken under contention", c.testFairContention)
	t.Run("a release wakes the first of the other language", c.testFairWakeUp)
	t.Run("either counts the other's fair re-entries", c.testFairCounts)
	t.Run("Java forces our fair lock", c.testJavaForcesFair)
	t.Run("we force Java's fair lock", c.testWeForceFair)
	t.Run("a fair wait that is over leaves no trace", c.testFairWaitOver)
	t.Run("crashes", c.testFairCrashes)
}

// fair are the fields of a Java command about a fair lock.
func fair(fields peer.Command) peer.Command { return peer.Command{"kind": "fair"}.With(fields) }

// fairPair is a client of each language with one fair lock.
func (c *compat) fairPair(t *testing.T) *pair {
	t.Helper()
	p := c.pair(t)
	p.lock = rfairlock.New(p.client, p.name)
	return p
}

// queueOf returns the waiters of a fair lock, in the order of their RPUSH.
func queueOf(t *testing.T, s *redistest.Server, name string) []string {
	t.Helper()
	queue, err := redis.Strings(s.Do(t, "LRANGE", codec.QueueKey(name), 0, -1), nil)
	require.NoError(t, err)
	return queue
}

// awaitQueued waits until so many stand in the queue, and the last of them listens.
// It returns that one.
func awaitQueued(t *testing.T, s *redistest.Server, name string, want int) (last string) {
	t.Helper()
	require.EventuallyWithT(t, func(ct *assert.CollectT) {
		queue := queueOf(t, s, name)
		require.Len(ct, queue, want)
		last = queue[want-1]
		require.Equal(ct, int64(1), listenersOf(t, s, name, last))
	}, atMost, time.Millisecond, "%d waiters for %s", want, name)
	return last
}

func listenersOf(t *testing.T, s *redistest.Server, name, owner string) any {
	t.Helper()
	counts, err := redis.Values(s.Do(t, "PUBSUB", "NUMSUB", codec.OwnerChannel(name, owner)), nil)
	require.NoError(t, err)
	return counts[1]
}

// deadlineOf returns when a waiter counts as dead.
func deadlineOf(t *testing.T, s *redistest.Server, name, owner string) time.Time {
	t.Helper()
	score, err := redis.String(s.Do(t, "ZSCORE", codec.TimeoutKey(name), owner), nil)
	require.NoError(t, err)
	ms, err := strconv.ParseFloat(score, 64)
	require.NoError(t, err)
	return time.UnixMilli(int64(ms))
}

// requireNoQueue requires that a fair lock is free, its queue empty, and its channel
// without listeners.
func requireNoQueue(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	require.EventuallyWithT(t, func(ct *assert.CollectT) {
		require.Equal(ct, int64(0), s.Do(t, "EXISTS", name, codec.QueueKey(name), codec.TimeoutKey(name)))
		channels, err := redis.Strings(s.Do(t, "PUBSUB", "CHANNELS"), nil)
		require.NoError(ct, err)
		require.False(ct, slices.ContainsFunc(channels, func(channel string) bool {
			return strings.HasPrefix(channel, codec.OwnerChannel(name, ""))
		}))
	}, atMost, time.Millisecond, "something is left of %s", name)
}

// testFairWakeUp: the holder's lease is long, so only the message can be in time.
func (c *compat) testFairWakeUp(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.fairPair(t)
	for range 10 {
		hold, err := p.lock.Lock(t.Context(), rlock.WithLease(time.Minute))
		require.NoError(t, err)
		theirs := p.begin("lock", fair(peer.Command{"lease": 60000}))
		awaitQueued(t, p.server, p.name, 1)
		require.NoError(t, hold.Unlock())
		_, err = theirs.Wait(wakeBound)
		require.NoError(t, err)

		ours := lockLater(t, p.lock)
		awaitQueued(t, p.server, p.name, 1)
		p.does(t, "unlock", fair(peer.Command{}))
		require.NoError(t, ours.await(t, wakeBound).hold.Unlock())
	}
	requireNoQueue(t, p.server, p.name)
}

// testFairCounts: one owner, used by both, counts up and down.
func (c *compat) testFairCounts(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.fairPair(t)
	owner, err := codec.ParseOwner(p.java.owner(t, "t1"))
	require.NoError(t, err)
	t1 := fair(peer.Command{"thread": "t1"})
	requireBoth := func(want int64) {
		t.Helper()
		require.Equal(t, want, p.java.number(t, t1.With(peer.Command{"op": "getHoldCount", "name": p.name})))
		require.Equal(t, want > 0, p.truth(t, "isLocked", t1))
		p.requireCount(t, want, owner)
	}
	p.does(t, "lock", t1)
	p.does(t, "lock", t1)
	requireBoth(2)
	hold, err := p.lock.Lock(t.Context(), rlock.WithOwner(owner))
	require.NoError(t, err)
	again, err := p.lock.TryLock(t.Context(), rlock.WithOwner(owner))
	require.NoError(t, err)
	requireBoth(4)
	require.False(t, p.truth(t, "tryLock", fair(peer.Command{"thread": "t2"})))
	_, err = p.lock.TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	p.does(t, "unlock", t1)
	require.NoError(t, hold.Unlock())
	requireBoth(2)
	require.NoError(t, again.Unlock())
	p.does(t, "unlock", t1)
	requireBoth(0)
	requireNoQueue(t, p.server, p.name)
}

func (c *compat) testJavaForcesFair(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.fairPair(t)
	hold, err := p.lock.Lock(t.Context(), rlock.WithLease(time.Minute))
	require.NoError(t, err)
	require.True(t, p.truth(t, "isLocked", fair(peer.Command{})))
	first := p.begin("lock", fair(peer.Command{"thread": "t1"}))
	awaitQueued(t, p.server, p.name, 1)
	second := lockLater(t, p.lock)
	awaitQueued(t, p.server, p.name, 2)
	require.True(t, p.truth(t, "forceUnlock", fair(peer.Command{"thread": "t2"})))
	_, err = first.Wait(wakeBound)
	require.NoError(t, err)
	require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	require.True(t, p.truth(t, "forceUnlock", fair(peer.Command{"thread": "t2"})))
	require.NoError(t, second.await(t, wakeBound).hold.Unlock())
	require.False(t, p.truth(t, "isLocked", fair(peer.Command{})))
	require.False(t, p.truth(t, "forceUnlock", fair(peer.Command{})))
	requireNoQueue(t, p.server, p.name)
}

func (c *compat) testWeForceFair(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.fairPair(t)
	p.does(t, "lock", fair(peer.Command{"thread": "t1", "lease": 60000}))
	locked, err := p.lock.IsLocked(t.Context())
	require.NoError(t, err)
	require.True(t, locked)
	first := lockLater(t, p.lock)
	awaitQueued(t, p.server, p.name, 1)
	second := p.begin("lock", fair(peer.Command{"thread": "t2"}))
	awaitQueued(t, p.server, p.name, 2)
	forced, err := p.lock.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, forced)
	got := first.await(t, wakeBound)
	p.java.throws(t, "IllegalMonitorStateException", fair(peer.Command{"op": "unlock", "name": p.name, "thread": "t1"}))
	forced, err = p.lock.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, forced)
	_, err = second.Wait(wakeBound)
	require.NoError(t, err)
	require.ErrorIs(t, got.hold.Unlock(), redlatch.ErrLost)
	p.does(t, "unlock", fair(peer.Command{"thread": "t2"}))
	requireNoQueue(t, p.server, p.name)
}

// testFairInterrupted: the waiter has subscribed and tried again when its thread is
// interrupted. It stays first in the queue, so that we wait for its deadline.
func (c *compat) testFairInterrupted(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	o := observe(t)
	p := c.pairWith(t, c.peer, o.server)
	p.lock = rfairlock.New(p.client, p.name)
	hold, err := p.lock.Lock(t.Context())
	require.NoError(t, err)
	o.about(t, p.name)
	waiter := p.begin("tryLock", fair(peer.Command{"thread": p.name, "wait": fairVictimWait.Milliseconds(), "lease": 60000}))
	o.attempted(t, p.name, 2)
	owner := p.java.owner(t, p.name)
	require.True(t, p.truth(t, "interrupt", peer.Command{"thread": p.name}))
	_, err = waiter.Wait(atMost)
	var thrown *peer.Exception
	require.ErrorAs(t, err, &thrown)
	require.Contains(t, []string{"InterruptedException", "RedisException"}, thrown.Class)
	require.Equal(t, []string{owner}, queueOf(t, o.server, p.name))
	deadline := deadlineOf(t, o.server, p.name, owner)
	ours := lockLater(t, p.lock)
	awaitQueued(t, o.server, p.name, 2)
	require.NoError(t, hold.Unlock())
	got := ours.await(t, atMost)
	requireAfter(t, deadline, got.at)
	require.NoError(t, got.hold.Unlock())
	requireNoQueue(t, o.server, p.name)
}

// attempted waits for scripts of waiters, not counting renewals.
func (o observed) attempted(t *testing.T, name string, times int) {
	t.Helper()
	for times > 0 {
		call, err := o.watch.Until(name)
		require.NoError(t, err)
		if slices.Contains(call.Keys, codec.QueueKey(name)) {
			times--
		}
	}
}

// testFairWaitOver: both give up, the one in front first.
func (c *compat) testFairWaitOver(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	const wait = 5 * time.Second // each must be seen in the queue before its end
	p := c.fairPair(t)
	p.does(t, "lock", fair(peer.Command{"thread": "t1", "lease": 60000}))
	ours := make(chan error, 1)
	go func() {
		_, err := p.lock.Lock(t.Context(), rlock.WithWait(wait))
		ours <- err
	}()
	awaitQueued(t, p.server, p.name, 1)
	require.False(t, p.truth(t, "tryLock", fair(peer.Command{"thread": "t2", "wait": wait.Milliseconds(), "lease": 60000})))
	require.ErrorIs(t, <-ours, redlatch.ErrNotAcquired)
	require.Empty(t, queueOf(t, p.server, p.name))
	p.does(t, "unlock", fair(peer.Command{"thread": "t1"}))
	requireNoQueue(t, p.server, p.name)
}
