package compat

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

func (c *compat) testFair(t *testing.T) {
	t.Run("dead Java waiters do not block the queue for long", c.testFairDead)
	t.Run("a Java waiter that subscribes late keeps its place", c.testFairLate)
	t.Run("an interrupted Java waiter keeps its place until its deadline", c.testFairInterrupted)
	t.Run("an interrupted Java waiter is evicted", c.testFairEvicted)
	t.Run("fifty waiters of six processes acquire in order", c.testFairProcesses)
	t.Run("no waiter is overtaken under contention", c.testFairContention)
}

func fair(fields peer.Command) peer.Command { return peer.Command{"kind": "fair"}.With(fields) }

func queueOf(t *testing.T, s *redistest.Server, name string) []string {
	t.Helper()
	queue := must(redis.Strings(s.Do(t, "LRANGE", codec.QueueKey(name), 0, -1), nil))(t)
	return queue
}

// awaitQueued waits until want waiters are queued and the last one, which it returns, has subscribed.
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
	counts := must(redis.Values(s.Do(t, "PUBSUB", "NUMSUB", protocol.OwnerChannel(name, owner)), nil))(t)
	return counts[1]
}

func deadlineOf(t *testing.T, s *redistest.Server, name, owner string) time.Time {
	t.Helper()
	score := must(redis.String(s.Do(t, "ZSCORE", codec.TimeoutKey(name), owner), nil))(t)
	ms := must(strconv.ParseFloat(score, 64))(t)
	return time.UnixMilli(int64(ms))
}

func requireNoQueue(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	require.EventuallyWithT(t, func(ct *assert.CollectT) {
		require.Equal(ct, int64(0), s.Do(t, "EXISTS", name, codec.QueueKey(name), codec.TimeoutKey(name)))
		channels, err := redis.Strings(s.Do(t, "PUBSUB", "CHANNELS"), nil)
		require.NoError(ct, err)
		require.False(ct, slices.ContainsFunc(channels, func(channel string) bool {
			return strings.HasPrefix(channel, protocol.OwnerChannel(name, ""))
		}))
	}, atMost, time.Millisecond, "something is left of %s", name)
}

// testFairInterrupted checks that an interrupted Java waiter stays at the head of the queue until its deadline.
func (c *compat) testFairInterrupted(t *testing.T) {
	c.beside(t)
	o := observe(t)
	p := c.pairWith(t, c.peer, o.server, lockKinds[1], watchdog)
	hold := must(p.lock.Lock(t.Context()))(t)
	o.about(t, p.name)
	waiter := p.begin("tryLock", fair(peer.Command{"thread": p.name, "wait": fairVictimWait.Milliseconds(),
		"lease": 60000}))
	o.attempted(t, p.name, 2)
	owner := p.java.owner(t, p.name)
	p.interrupt(t, waiter)
	require.Equal(t, []string{owner}, queueOf(t, o.server, p.name))
	deadline := deadlineOf(t, o.server, p.name, owner)
	ours := lockLater(t, p.lock)
	awaitQueued(t, o.server, p.name, 2)
	require.NoError(t, hold.Unlock())
	got := ours.await(t, atMost)
	requireAfter(t, deadline, got.at)
	require.NoError(t, got.value.Unlock())
	requireNoQueue(t, o.server, p.name)
}

// testFairEvicted checks that a Java waiter behind an interrupted one stays blocked until Evict is called.
func (c *compat) testFairEvicted(t *testing.T) {
	c.beside(t)
	o := observe(t)
	p := c.pairWith(t, c.peer, o.server, lockKinds[1], watchdog)
	hold := must(p.lock.Lock(t.Context()))(t)
	o.about(t, p.name)
	waiter := p.begin("tryLock", fair(peer.Command{"thread": p.name, "wait": time.Minute.Milliseconds(), "lease": 60000}))
	o.attempted(t, p.name, 2)
	dead := p.java.owner(t, p.name)
	_, err := admin.Evict(t.Context(), p.lock, dead)
	require.ErrorIs(t, err, admin.ErrWaiterAlive)
	next := p.begin("lock", fair(peer.Command{"thread": "t2"}))
	awaitQueued(t, o.server, p.name, 2)
	p.interrupt(t, waiter)
	deadline := deadlineOf(t, o.server, p.name, dead)
	require.NoError(t, hold.Unlock())

	in := must(admin.Inspect(t.Context(), p.lock))(t)
	require.Empty(t, in.Holders)
	require.Equal(t, dead, in.Queue[0].Text)
	require.False(t, protocol.IsRedlatch(in.Queue[0].Owner))
	var done *admin.Eviction
	require.Eventually(t, func() bool {
		done, err = admin.Evict(t.Context(), p.lock, dead)
		return err == nil
	}, atMost, 10*time.Millisecond)
	must(next.Wait(wakeBound))(t)
	require.Equal(t, 1, done.Position)
	require.True(t, done.Woken)
	require.Equal(t, in.Queue[1].Text, done.Next)
	require.True(t, done.Deadline.Equal(deadline))
	require.Less(t, time.Now(), deadline)
	p.does(t, "unlock", fair(peer.Command{"thread": "t2"}))
	requireNoQueue(t, o.server, p.name)
}

// testFairLate loses the replies to queued Java waiters. Threads that are still waiting keep their places. Threads that
// have thrown an exception leave dead entries in the queue.
func (c *compat) testFairLate(t *testing.T) {
	t.Parallel()
	const lost = 16 * time.Second
	server, name := redistest.Start(t), redistest.Key(t)
	hold := must(rfairlock.New(open(t, server), name).Lock(t.Context(), rlock.WithLease(time.Hour)))(t)
	proxy := redistest.NewProxy(t, server.Addr())
	java := connectTo(t, c.peer, proxy.URL(), nil)
	free := fair(peer.Command{"name": redistest.Key(t), "thread": "late"})
	java.do(t, free.With(peer.Command{"op": "lock"}))
	java.do(t, free.With(peer.Command{"op": "unlock"}))
	proxy.Blackhole(redistest.ToClient)
	queued := time.Now()
	call := java.begin(fair(peer.Command{"op": "lock", "name": name, "thread": "late"}))
	require.Eventually(t, func() bool { return len(queueOf(t, server, name)) == 1 }, atMost, time.Millisecond)
	first := queueOf(t, server, name)[0]

	var seen evictions
	ours, taken := open(t, server, redlatch.WithObserver(seen.observer())), make(chan error, 1)
	go func() {
		hold, err := rfairlock.New(ours, name).Lock(t.Context())
		if err == nil {
			err = hold.Unlock()
		}
		taken <- err
	}()
	awaitQueued(t, server, name, 2)
	<-time.After(lost - time.Since(queued))
	proxy.Heal(redistest.ToClient)

	if _, err := call.Wait(10 * time.Second); errors.Is(err, peer.ErrTimeout) {
		t.Logf("Redisson %s waits on after %v without replies", c.release, lost)
		require.Equal(t, int64(1), listenersOf(t, server, name, first))
		<-time.After(deadBound - time.Since(queued))
		require.Equal(t, first, queueOf(t, server, name)[0])
		require.Zero(t, seen.of(name), "a living waiter was evicted")
		require.NoError(t, hold.Unlock())
		must(call.Wait(atMost))(t)
		java.do(t, fair(peer.Command{"op": "unlock", "name": name, "thread": "late"}))
	} else {
		require.Error(t, err)
		require.NoError(t, hold.Unlock())
		require.Eventually(t, func() bool { return seen.of(name) == 1 }, deadBound-time.Since(queued)+time.Second,
			time.Millisecond)
	}
	require.NoError(t, <-taken)
}
