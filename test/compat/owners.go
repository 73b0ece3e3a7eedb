package compat

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/rlock"
)

// jobThread is a thread id that no thread has: in Java a job's, not a thread's.
const jobThread = 4_000_000_057

// job is an owner that both sides can name: a thread id of the Java client.
func (p *pair) job(t *testing.T) (codec.Owner, peer.Command) {
	t.Helper()
	id, err := uuid.Parse(p.java.id)
	require.NoError(t, err)
	return codec.NewOwner(id, jobThread), peer.Command{"threadId": jobThread}
}

// requireCount holds how often an owner has the lock, by our count.
func (p *pair) requireCount(t *testing.T, want int64, owner codec.Owner) {
	t.Helper()
	count, err := p.lock.HoldCount(t.Context(), owner)
	require.NoError(t, err)
	require.Equal(t, want, count)
}

// requireFree holds that both sides see the lock free, and can have it.
func (p *pair) requireFree(t *testing.T) {
	t.Helper()
	require.False(t, p.truth(t, "isLocked", nil))
	hold, err := p.lock.TryLock(t.Context())
	require.NoError(t, err)
	require.NoError(t, hold.Unlock())
	require.True(t, p.truth(t, "tryLock", nil))
	p.does(t, "unlock", nil)
}

// testJavaCounts: a thread of Java is inside because of us, and counts with us.
func (c *compat) testJavaCounts(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.pair(t)
	owner, err := codec.ParseOwner(p.java.owner(t, "t1"))
	require.NoError(t, err)
	t1 := peer.Command{"thread": "t1"}
	requireJava := func(want int64) {
		t.Helper()
		require.Equal(t, want, p.java.number(t, t1.With(peer.Command{"op": "getHoldCount", "name": p.name})))
		require.Equal(t, want > 0, p.truth(t, "isHeldByCurrentThread", t1))
		require.Equal(t, want > 0, p.truth(t, "isHeldByThread", peer.Command{"threadId": owner.N()}))
		p.requireCount(t, want, owner)
	}
	var holds []*rlock.Hold
	for want := int64(1); want <= 3; want++ {
		hold, err := p.lock.Lock(t.Context(), rlock.WithOwner(owner))
		require.NoError(t, err)
		holds = append(holds, hold)
		requireJava(want)
	}
	p.does(t, "lock", t1)
	requireJava(4)
	require.NoError(t, holds[1].Unlock())
	requireJava(3)
	p.does(t, "unlock", t1)
	requireJava(2)
	require.False(t, p.truth(t, "tryLock", peer.Command{"thread": "t2"}))
	require.NoError(t, holds[0].Unlock())
	require.NoError(t, holds[2].Unlock())
	requireJava(0)
	p.requireFree(t)
}

// testWeCount: an owner of ours re-enters by proof; Java's re-entries are seen from
// here, and we enter as its thread.
func (c *compat) testWeCount(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.pair(t)
	owner, err := codec.ParseOwner(p.java.owner(t, "t1"))
	require.NoError(t, err)
	t1 := peer.Command{"thread": "t1"}
	for want := int64(1); want <= 3; want++ {
		p.does(t, "lock", t1)
		p.requireCount(t, want, owner)
	}
	hold, err := p.lock.Lock(t.Context(), rlock.WithOwner(owner))
	require.NoError(t, err)
	p.requireCount(t, 4, owner)
	require.Equal(t, int64(4), p.java.number(t, t1.With(peer.Command{"op": "getHoldCount", "name": p.name})))
	for want := int64(3); want >= 1; want-- {
		p.does(t, "unlock", t1)
		p.requireCount(t, want, owner)
		held, err := p.lock.IsHeldBy(t.Context(), owner)
		require.NoError(t, err)
		require.True(t, held)
	}
	// Java thinks that it is out, and the server knows better.
	_, err = p.lock.TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	require.NoError(t, hold.Unlock())
	p.requireCount(t, 0, owner)
	p.requireFree(t)

	outer, err := p.lock.Lock(t.Context())
	require.NoError(t, err)
	inner, err := p.lock.Lock(outer.Context(t.Context()))
	require.NoError(t, err)
	p.requireCount(t, 2, outer.Owner())
	require.NoError(t, inner.Unlock())
	require.True(t, p.truth(t, "isLocked", nil))
	require.NoError(t, outer.Unlock())
	p.requireFree(t)
}

// testJavaUnlocksOurs: what we acquired and handed over is unlocked in Java, and waiters of
// both languages are woken.
func (c *compat) testJavaUnlocksOurs(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.pair(t)
	owner, job := p.job(t)
	hold, err := p.lock.Lock(t.Context(), rlock.WithOwner(owner), rlock.WithLease(time.Minute))
	require.NoError(t, err)
	given, err := hold.HandOver()
	require.NoError(t, err)
	require.Equal(t, owner, given)
	require.ErrorIs(t, hold.Err(), redlatch.ErrHandedOver)
	require.True(t, p.truth(t, "isHeldByThread", job))

	p.java.throws(t, "IllegalMonitorStateException",
		peer.Command{"op": "unlockAsync", "name": p.name, "threadId": jobThread + 1})
	p.requireCount(t, 1, owner)
	theirs := p.begin("lock", peer.Command{"thread": "t1"})
	awaitListeners(t, p.server, p.name, 1)
	p.does(t, "unlockAsync", job)
	_, err = theirs.Wait(wakeBound)
	require.NoError(t, err)
	p.does(t, "unlock", peer.Command{"thread": "t1"})

	hold, err = p.lock.Lock(t.Context(), rlock.WithOwner(owner), rlock.WithLease(time.Minute))
	require.NoError(t, err)
	ours := lockLater(t, p.lock)
	awaitListeners(t, p.server, p.name, 1)
	p.does(t, "unlockAsync", job) // without HandOver: by a Java that knows the job
	got := ours.await(t, wakeBound)
	require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost, "it was not ours any more")
	require.NoError(t, got.hold.Unlock())
	p.requireFree(t)
}

// testWeUnlockJavas: what Java acquired is unlocked here, with a hold and without.
func (c *compat) testWeUnlockJavas(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.pair(t)
	owner, job := p.job(t)
	foreign := codec.NewOwner(owner.Client(), owner.N()+1)
	for name, unlock := range map[string]func(*testing.T) error{
		"UnlockAs": func(t *testing.T) error { t.Helper(); return p.lock.UnlockAs(t.Context(), owner) },
		"Resume": func(t *testing.T) error {
			t.Helper()
			hold, err := p.lock.Resume(t.Context(), owner, rlock.WithLease(time.Minute))
			require.NoError(t, err)
			return hold.Unlock()
		},
	} {
		p.does(t, "lockAsync", job.With(peer.Command{"lease": 60000}))
		require.ErrorIs(t, p.lock.UnlockAs(t.Context(), foreign), redlatch.ErrNotHeld)
		_, err := p.lock.Resume(t.Context(), foreign)
		require.ErrorIs(t, err, redlatch.ErrNotHeld)
		p.requireCount(t, 1, owner)

		theirs := p.begin("lock", peer.Command{"thread": "t1"})
		awaitListeners(t, p.server, p.name, 1)
		require.NoError(t, unlock(t), name)
		_, err = theirs.Wait(wakeBound)
		require.NoError(t, err, name)
		p.does(t, "unlock", peer.Command{"thread": "t1"})
		p.requireFree(t)
		p.java.throws(t, "IllegalMonitorStateException", job.With(peer.Command{"op": "unlockAsync", "name": p.name}))
	}
}

// testJavaTakesOver: Java enters as the owner that we handed over, and renews from
// then on. If it does not, the lease ends.
func (c *compat) testJavaTakesOver(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.pair(t)
	owner, job := p.job(t)
	hold, err := p.lock.Lock(t.Context(), rlock.WithOwner(owner))
	require.NoError(t, err)
	_, err = hold.HandOver()
	require.NoError(t, err)
	p.does(t, "lockAsync", job)
	p.requireCount(t, 2, owner)
	_, err = p.lock.Lock(t.Context(), rlock.WithWait(twoLeases))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	p.does(t, "unlockAsync", job)
	p.requireCount(t, 1, owner)
	p.does(t, "unlockAsync", job)
	p.requireFree(t)

	hold, err = p.lock.Lock(t.Context(), rlock.WithOwner(owner))
	require.NoError(t, err)
	_, err = hold.HandOver()
	require.NoError(t, err)
	require.True(t, p.truth(t, "tryLock", peer.Command{"wait": twoLeases.Milliseconds()}),
		"it was not taken over, and is not renewed")
	p.does(t, "unlock", nil)
}

// testWeTakeOver: we resume what a Java client acquired that is gone since then,
// and renew from then on.
func (c *compat) testWeTakeOver(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p, other := c.pair(t), c.pair(t)
	owner, job := other.job(t)
	other.name = p.name
	other.does(t, "lockAsync", job)
	other.does(t, "shutdown", nil)
	hold, err := p.lock.Resume(t.Context(), owner)
	require.NoError(t, err)
	require.False(t, p.truth(t, "tryLock", peer.Command{"wait": twoLeases.Milliseconds()}))
	require.NoError(t, hold.Err())
	p.requireCount(t, 1, owner)
	require.NoError(t, hold.Unlock())
	p.requireFree(t)
}
