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

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// testFair runs what both languages do with one fair lock, side by side.
func (c *compat) testFair(t *testing.T) {
	t.Run("dead Java waiters do not block the queue for long", c.testFairDead) // the longest first
	t.Run("a Java waiter that is late to listen keeps its place", c.testFairLate)
	t.Run("an interrupted Java waiter keeps its place until its deadline", c.testFairInterrupted)
	t.Run("an interrupted Java waiter is taken out by hand", c.testFairEvicted)
	t.Run("fifty waiters of six processes have no inversion", c.testFairProcesses)
	t.Run("no waiter is overtaken under contention", c.testFairContention)
}

// fair are the fields of a Java command about a fair lock.
func fair(fields peer.Command) peer.Command { return peer.Command{"kind": "fair"}.With(fields) }

// queueOf returns the waiters of a fair lock, in the order of their RPUSH.
func queueOf(t *testing.T, s *redistest.Server, name string) []string {
	t.Helper()
	queue := must(redis.Strings(s.Do(t, "LRANGE", codec.QueueKey(name), 0, -1), nil))(t)
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
	counts := must(redis.Values(s.Do(t, "PUBSUB", "NUMSUB", codec.OwnerChannel(name, owner)), nil))(t)
	return counts[1]
}

// deadlineOf returns when a waiter counts as dead.
func deadlineOf(t *testing.T, s *redistest.Server, name, owner string) time.Time {
	t.Helper()
	score := must(redis.String(s.Do(t, "ZSCORE", codec.TimeoutKey(name), owner), nil))(t)
	ms := must(strconv.ParseFloat(score, 64))(t)
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

// testFairInterrupted: the waiter has subscribed and tried again when its thread is
// interrupted. It stays first in the queue, so that we wait for its deadline.
func (c *compat) testFairInterrupted(t *testing.T) {
	c.beside(t)
	o := observe(t)
	p := c.pairWith(t, c.peer, o.server, lockKinds[1], watchdog)
	hold := must(p.lock.Lock(t.Context()))(t)
	o.about(t, p.name)
	waiter := p.begin("tryLock", fair(peer.Command{"thread": p.name, "wait": fairVictimWait.Milliseconds(), "lease": 60000}))
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
