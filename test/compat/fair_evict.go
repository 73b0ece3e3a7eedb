package compat

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/peer"
)

// testFairEvicted: only Java waits, and the first is a thread that was interrupted. The
// lock is free, and stays so until the first is evicted by hand.
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
	require.False(t, in.Queue[0].Owner.IsRedlatch())
	var done *admin.Eviction
	require.Eventually(t, func() bool { // it unsubscribes in the background
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
