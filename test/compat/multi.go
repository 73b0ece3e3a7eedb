package compat

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
)

func (c *compat) testMulti(t *testing.T) {
	t.Helper()
	t.Run("a Java multi lock waits for our member", c.testJavaMultiWaits)
	t.Run("our multi lock waits for a Java member", c.testOurMultiWaits)
	t.Run("multi locks of both libraries wake each other", c.testMultiWakeUps)
	t.Run("members in reverse order, concurrently", c.testMultiFleet)
	t.Run("members in reverse order, each holding one", c.testMultiReverse)
	t.Run("fair members in reverse order, each holding one", c.testMultiReverseFair)
}

// multiPair has six names. We lock them in our canonical order, and Java locks them in the reverse order.
type multiPair struct {
	*pair
	names  []string
	ours   *rmultilock.Lock
	theirs peer.Command
}

func (c *compat) multiPair(t *testing.T) *multiPair {
	t.Helper()
	s, base := redistest.Shared(t), redistest.Key(t)
	client := open(t, s, redlatch.WithPollCap(objectPoll))
	var names, reverse []string
	for i := range 6 {
		name := base + strconv.Itoa(i+1)
		names, reverse = append(names, name), append([]string{name}, reverse...)
	}
	// The watchdog's lease is longer than wakeBound, so a waiter that returns in time was woken by a message.
	p := &pair{c, s, connect(t, c.peer, s, nil), client, base, lockKinds[0], rlock.New(client, names[1])}
	theirs := peer.Command{"kind": "multi", "members": reverse, "thread": "multi"}
	return &multiPair{p, names, rmultilock.New(client, names...), theirs}
}

const allNames = "123456"

func (p *multiPair) held(t *testing.T) (all string) {
	t.Helper()
	for i, name := range p.names {
		n := must(redis.Int(p.server.Do(t, "EXISTS", name), nil))(t)
		all += strings.Repeat(strconv.Itoa(i+1), n)
	}
	return all
}

func (p *multiPair) allHeld(t *testing.T) {
	t.Helper()
	require.Equal(t, allNames, p.held(t))
	other := peer.Command{"thread": "other"}
	for _, name := range p.names {
		_, err := rlock.New(p.client, name).TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.False(t, p.java.boolean(t, peer.Command{"op": "tryLock", "name": name}.With(other)))
	}
	_, err := p.ours.TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	require.False(t, p.truth(t, "tryLock", p.theirs.With(other)))
	require.Equal(t, allNames, p.held(t))
}

func (p *multiPair) requireClean(t *testing.T) {
	t.Helper()
	for _, name := range p.names {
		requireClean(t, p.server, name)
	}
}

func (c *compat) testJavaMultiWaits(t *testing.T) {
	c.beside(t)
	p := c.multiPair(t)
	one := must(p.lock.Lock(t.Context()))(t)
	require.False(t, p.truth(t, "tryLock", p.theirs))
	require.Equal(t, "2", p.held(t), "Java's holds were not released")
	waiter := p.begin("lock", p.theirs)
	awaitListeners(t, p.server, p.names[1], 1)
	time.Sleep(settle)
	require.NoError(t, one.Unlock())
	must(waiter.Wait(wakeBound))(t)
	p.allHeld(t)
	p.does(t, "unlock", p.theirs)
	p.requireClean(t)

	// Early releases leak a subscription if the wait ends during a client's first subscription.
	one = must(p.lock.Lock(t.Context()))(t)
	require.False(t, p.truth(t, "tryLock", p.theirs.With(peer.Command{"wait": 500})))
	require.Equal(t, "2", p.held(t))
	require.NoError(t, one.Unlock())
	p.requireClean(t)
}

func (c *compat) testOurMultiWaits(t *testing.T) {
	c.beside(t)
	p := c.multiPair(t)
	one := peer.Command{"name": p.names[1], "thread": "one"}
	for _, kind := range []string{"plain", "spin"} {
		one = one.With(peer.Command{"kind": kind})
		p.does(t, "lock", one)
		_, err := p.ours.TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		var refused *redlatch.LockError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, p.names[1], refused.Name)
		require.Equal(t, p.java.owner(t, "one"), refused.Holder.String())

		var opts []rlock.Option
		if kind == "spin" {
			opts = append(opts, rlock.WithPolling(spinPoll))
		}
		var hold *rmultilock.Hold
		w := later(func() (err error) { hold, err = p.ours.Lock(bounded(t), opts...); return err })
		if kind == "spin" {
			time.Sleep(settle)
		} else {
			awaitListeners(t, p.server, p.names[1], 1)
		}
		require.Equal(t, "2", p.held(t), "ours holds none while it waits")
		p.does(t, "unlock", one)
		w.done(t, wakeBound, "we were not woken")
		p.allHeld(t)
		require.NoError(t, hold.Unlock())
		p.requireClean(t)
	}
}

func (c *compat) testMultiWakeUps(t *testing.T) {
	c.beside(t)
	p := c.multiPair(t)
	hold := must(p.ours.Lock(t.Context()))(t)
	waiter := p.begin("lock", p.theirs)
	awaitListeners(t, p.server, p.names[5], 1)
	time.Sleep(settle)
	p.allHeld(t)
	require.NoError(t, hold.Unlock())
	must(waiter.Wait(wakeBound))(t)

	w := later(func() (err error) { hold, err = p.ours.Lock(bounded(t)); return err })
	awaitListeners(t, p.server, p.names[0], 1)
	p.does(t, "unlock", p.theirs)
	w.done(t, wakeBound, "we were not woken")
	p.allHeld(t)
	require.NoError(t, hold.Unlock())
	p.requireClean(t)
}

const (
	multiRounds = 25
	// multiRest is a Java thread's maximum pause between rounds, in milliseconds.
	multiRest = 20
)

// testMultiFleet makes Java pause between rounds. Otherwise our client rarely succeeds, because Redisson releases the
// locks sequentially since 3.27.2 (see docs/compatibility.md).
func (c *compat) testMultiFleet(t *testing.T) {
	c.beside(t)
	p := c.multiPair(t)
	f := &fleet{server: p.server, name: p.name, key: p.name + "n", lock: p.ours}
	t.Cleanup(func() { p.server.Do(t, "DEL", f.key) })
	f.javaCounts(p.java, 2, p.theirs.With(peer.Command{"rest": multiRest}))
	counters := newCounters(f.key, 2)
	for range cap(counters.ended) {
		counters.begin(t.Context(), p.ours, p.server.Dial(t))
	}
	f.ours = counters
	f.awaitRounds(t, multiRounds)
	count, _ := f.end(t)
	t.Logf("Redisson %s: Go %d of %d rounds", c.release, f.ours.rounds(t), count)
	p.requireClean(t)
}

// testMultiReverse checks that the side that times out releases its locks, so that the other side succeeds.
func (c *compat) testMultiReverse(t *testing.T) {
	c.beside(t)
	p := c.multiPair(t)
	const wait, theirWait = time.Second, 10 * time.Second
	first := must(rlock.New(p.client, p.names[0]).Lock(t.Context()))(t)
	theirs := p.begin("tryLock", p.theirs.With(peer.Command{"wait": theirWait.Milliseconds()}))
	awaitListeners(t, p.server, p.names[0], 1)
	require.Equal(t, allNames, p.held(t), "Java has five, ours has one")
	_, err := p.ours.Lock(first.Context(bounded(t)), rlock.WithWait(wait))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	require.Equal(t, allNames, p.held(t))
	var hold *rmultilock.Hold
	ours := later(func() (err error) { hold, err = p.ours.Lock(first.Context(bounded(t))); return err })
	reply := must(theirs.Wait(atMost))(t)
	require.JSONEq(t, "false", string(reply.Value), "each waits for the other")
	ours.done(t, wakeBound, "Java stopped waiting, but our waiter does not acquire")

	again := p.begin("lock", p.theirs)
	awaitListeners(t, p.server, p.names[5], 1)
	time.Sleep(settle)
	require.NoError(t, first.Unlock())
	p.allHeld(t)
	require.NoError(t, hold.Unlock())
	must(again.Wait(wakeBound))(t)
	p.does(t, "unlock", p.theirs)
	p.requireClean(t)
}

// testMultiReverseFair relies on the fact that Redisson's lock() restarts after 1.5 seconds per member, whereas our
// waiter stays queued.
func (c *compat) testMultiReverseFair(t *testing.T) {
	c.beside(t)
	p := c.multiPair(t)
	one, two := rfairlock.New(p.client, p.names[0]), rfairlock.New(p.client, p.names[1])
	multi := p.theirs.With(peer.Command{"member": "fair", "members": []string{p.names[1], p.names[0]}})
	first := must(one.Lock(t.Context()))(t)
	theirs := p.begin("lock", multi)
	p.queued(t, p.names[0], 1)
	var hold *rmultilock.Hold
	ours := later(func() (err error) {
		hold, err = rmultilock.Of(two, one).Lock(first.Context(bounded(t)))
		return err
	})
	p.queued(t, p.names[1], 1)
	ours.done(t, 2*1500*time.Millisecond+wakeBound, "each waits for the other")
	require.NoError(t, first.Unlock())
	require.NoError(t, hold.Unlock())
	must(theirs.Wait(wakeBound))(t)
	require.Equal(t, "12", p.held(t))
	p.does(t, "unlock", multi)
	p.requireClean(t)
	for _, name := range p.names {
		require.EqualValues(t, 0, p.server.Do(t, "EXISTS", codec.QueueKey(name), codec.TimeoutKey(name)))
	}
}

func (p *pair) queued(t *testing.T, name string, n int64) {
	t.Helper()
	require.Eventually(t, func() bool { return p.server.Do(t, "LLEN", codec.QueueKey(name)) == any(n) }, atMost,
		time.Millisecond)
}
