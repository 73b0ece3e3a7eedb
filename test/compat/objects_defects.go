package compat

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/rlock"
)

// testObjectDefects requires that our waiters recover from each known lost wake-up.
func (c *compat) testObjectDefects(t *testing.T) {
	t.Helper()
	t.Run("S1 a release of three wakes one asynchronous waiter", c.testAsyncWaiters)
	t.Run("S2 a big waiter swallows a small one's wake-up", c.testBigWaiter)
	t.Run("S4 a missed message is missed for good", c.testMissedMessage)
	t.Run("h1 a deleted latch blocks its waiters", c.testLatchGone)
	t.Run("h3 a latch spins on a false message", c.testLatchSpins)
}

const unwoken = wakeBound

func doneAfter(d time.Duration, all ...*peer.Call) int {
	n := 0
	end := time.Now().Add(d)
	for _, call := range all {
		if _, err := call.Wait(max(time.Until(end), time.Millisecond)); err == nil {
			n++
		}
	}
	return n
}

func (p *objectPair) latched(t *testing.T, n int) {
	t.Helper()
	awaitListenersOn(t, p.server, protocol.CountDownChannel(p.name), n)
}

func (c *compat) testAsyncWaiters(t *testing.T) {
	c.beside(t)
	o := observe(t)
	waiters := func(p *objectPair) (all []*peer.Call) {
		o.about(t, p.name)
		for i := range 3 {
			all = append(all, p.starts(fmt.Sprint("t", i), "semaphore", "acquireAsync"))
			o.parked(t, p.name)
		}
		time.Sleep(settle)
		return all
	}
	p := c.objectPairOn(t, o.server)
	p.calls(t, "semaphore", "trySetPermits", 0)
	calls := waiters(p)
	p.calls(t, "semaphore", "release", 3)
	require.Equal(t, 1, doneAfter(unwoken, calls...), "Redisson %s", c.release)
	require.EqualValues(t, 2, p.value(t))

	p = c.objectPairOn(t, o.server)
	p.calls(t, "semaphore", "trySetPermits", 0)
	calls = waiters(p)
	require.NoError(t, p.counter.Release(t.Context(), 3))
	require.Equal(t, 3, doneAfter(wakeBound, calls...), "our release has left asynchronous waiters of Java's asleep")
	require.Zero(t, p.value(t))

	var ours []waiting
	for range 3 {
		ours = append(ours, later(func() error { return p.counter.Acquire(bounded(t), 1) }))
	}
	p.listening(t, 1)
	time.Sleep(settle)
	p.calls(t, "semaphore", "release", 3)
	for _, w := range ours {
		w.done(t, wakeBound, "first of three waiters")
	}
}

func (c *compat) testBigWaiter(t *testing.T) {
	c.beside(t)
	o := observe(t)
	p := c.objectPairOn(t, o.server)
	p.calls(t, "semaphore", "trySetPermits", 0)
	o.about(t, p.name)
	p.starts("big", "semaphore", "acquire", 2)
	o.parked(t, p.name)
	small := p.starts("small", "semaphore", "acquire", 1)
	o.parked(t, p.name)
	time.Sleep(settle)
	p.calls(t, "semaphore", "release", 1)
	require.Zero(t, doneAfter(unwoken, small), "Redisson %s", c.release)
	require.EqualValues(t, 1, p.value(t))
	p.calls(t, "semaphore", "release", 2)

	for kind, on := range map[string]func(p *objectPair) (big, small waiting){
		"semaphore": func(p *objectPair) (big, small waiting) {
			big = later(func() error { return p.counter.Acquire(bounded(t), 2) })
			p.listening(t, 1)
			return big, later(func() error { return p.counter.Acquire(bounded(t), 1) })
		},
		"permits": func(p *objectPair) (big, small waiting) {
			take := func(n int) func() error {
				return func() error {
					_, err := p.permits.Acquire(bounded(t), n, rlock.WithLease(time.Minute))
					return err
				}
			}
			big = later(take(2))
			p.listening(t, 1)
			return big, later(take(1))
		},
	} {
		p := c.objectPair(t)
		p.calls(t, kind, "trySetPermits", 3)
		taken := p.drain(t, kind)
		big, small := on(p)
		time.Sleep(2 * settle)
		taken()
		small.done(t, wakeBound, "the small waiter of "+kind)
		require.Empty(t, big)
		taken()
		taken()
		big.done(t, wakeBound, "the big waiter of "+kind)
	}
}

func (p *objectPair) drain(t *testing.T, kind string) (back func()) {
	t.Helper()
	if kind == "semaphore" {
		p.calls(t, kind, "acquire", 3)
		return func() { p.calls(t, kind, "release", 1) }
	}
	var ids []string
	for range 3 {
		ids = append(ids, p.takes(t, 600000, msUnit))
	}
	return func() {
		p.calls(t, kind, "release", ids[0])
		ids = ids[1:]
	}
}

func (c *compat) testMissedMessage(t *testing.T) {
	c.beside(t)
	const poll = time.Second
	p := c.objectPair(t, redlatch.WithPollCap(poll))
	p.calls(t, "semaphore", "trySetPermits", 0)
	theirs := p.starts("waits", "semaphore", "acquire", 1)
	p.listening(t, 1)
	time.Sleep(settle)
	p.server.Do(t, "SET", p.name, 1)
	require.Zero(t, doneAfter(4*time.Second, theirs), "Redisson %s", c.release)
	p.server.Do(t, "SET", p.name, 0)
	ours := later(func() error { return p.counter.Acquire(bounded(t), 1) })
	p.listening(t, 2)
	time.Sleep(settle)
	p.server.Do(t, "SET", p.name, 1)
	ours.done(t, poll+wakeBound, "a permit that came without a message")
	p.calls(t, "semaphore", "release", 1)
}

func (c *compat) testLatchGone(t *testing.T) {
	c.beside(t)
	const poll = time.Second
	for does, opens := range map[string]func(p *objectPair){
		"deleted by Java": func(p *objectPair) { p.calls(t, "latch", "delete") },
		"expired":         func(p *objectPair) { p.server.Do(t, "PEXPIRE", p.name, 1) },
	} {
		p := c.objectPair(t, redlatch.WithPollCap(poll))
		p.calls(t, "latch", "trySetCount", 1)
		theirs := p.starts("waits", "latch", "await")
		ours := later(func() error { return p.latch.Wait(bounded(t)) })
		p.latched(t, 2)
		time.Sleep(settle)
		opens(p)
		ours.done(t, poll+wakeBound, does)
		require.Zero(t, doneAfter(unwoken, theirs), "Redisson %s, %s", c.release, does)
		p.server.Do(t, "PUBLISH", protocol.CountDownChannel(p.name), protocol.MessageOpened)
		must(theirs.Wait(wakeBound))(t)
	}
}

func (c *compat) testLatchSpins(t *testing.T) {
	c.beside(t)
	const spins = 100
	o := observe(t)
	p := c.objectPairOn(t, o.server)
	gets := func(waits, looks func()) int {
		waits()
		p.latched(t, 1)
		time.Sleep(settle)
		o.about(t, p.name)
		p.server.Do(t, "PUBLISH", protocol.CountDownChannel(p.name), protocol.MessageOpened)
		looks()
		p.server.Do(t, "PUBLISH", protocol.CountDownChannel(p.name), protocol.MessageClosed)
		n := 0
		for _, call := range o.about(t, p.name) {
			if call.Name() == "GET" {
				n++
			}
		}
		return n
	}
	p.calls(t, "latch", "trySetCount", 1)
	var theirs *peer.Call
	gets(func() { theirs = p.starts("waits", "latch", "await") }, func() {
		before := o.server.CommandStats(t)["get"]
		require.Eventually(t, func() bool { return o.server.CommandStats(t)["get"] > before+spins }, atMost,
			10*time.Millisecond, "Redisson %s", c.release)
	})
	p.calls(t, "latch", "countDown")
	must(theirs.Wait(wakeBound))(t)
	p.latched(t, 0)

	p.calls(t, "latch", "trySetCount", 1)
	var ours waiting
	n := gets(func() { ours = later(func() error { return p.latch.Wait(bounded(t)) }) },
		func() { time.Sleep(time.Second) })
	require.LessOrEqual(t, n, 2, "at most one per message")
	p.calls(t, "latch", "countDown")
	ours.done(t, wakeBound, "it is open")
}
