package compat

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rsemaphore"
)

// testObjectBehaviour has each language do in turn what the other sees.
func (c *compat) testObjectBehaviour(t *testing.T) {
	t.Run("permits count alike", c.testPermitCounts)
	t.Run("either gives back what the other took", c.testPermitIDs)
	t.Run("our permits are renewed, beside Java's", c.testPermitRenewal)
	t.Run("Java renews a permit that we wait for", c.testJavaRenewsPermit)
	t.Run("a latch opens for both", c.testLatchOpens)
	c.testObjectDefects(t)
}

func (c *compat) testPermitCounts(t *testing.T) {
	c.beside(t)
	p := c.objectPair(t)
	set := must(p.permits.TrySetPermits(t.Context(), 5))(t)
	require.True(t, set)
	var java bool
	require.NoError(t, p.calls(t, "permits", "trySetPermits", 9).Into(&java))
	require.False(t, java)
	p.takes(t, 60000, msUnit)
	p.takes(t)
	hold := must(p.permits.Acquire(bounded(t), 2))(t)
	p.agree(t, 1, 4)
	require.NoError(t, p.permits.SetPermits(t.Context(), 7))
	p.agree(t, 3, 4)
	p.calls(t, "permits", "addPermits", 2)
	p.agree(t, 5, 4)
	require.NoError(t, hold.Release())
	p.agree(t, 7, 2)
	if c.release.CountsPermits() {
		p.calls(t, "permits", "setPermits", 1)
		p.agree(t, -1, 2)
	}

	p = c.objectPair(t)
	p.calls(t, "semaphore", "trySetPermits", 2)
	require.NoError(t, p.counter.TryAcquire(t.Context(), 2))
	require.NoError(t, p.counter.Add(t.Context(), 5))
	require.EqualValues(t, 5, p.asks(t, "semaphore", "availablePermits"))
	require.EqualValues(t, 5, p.asks(t, "semaphore", "drainPermits"))
}

// agree holds that both languages count the same.
func (p *objectPair) agree(t *testing.T, free, taken int) {
	t.Helper()
	n := must(p.permits.Available(t.Context()))(t)
	require.Equal(t, free, n)
	require.EqualValues(t, free, p.asks(t, "permits", "availablePermits"))
	n = must(p.permits.Acquired(t.Context()))(t)
	require.Equal(t, taken, n)
	n = must(p.permits.Permits(t.Context()))(t)
	require.Equal(t, free+taken, n)
	if p.release.CountsPermits() {
		require.EqualValues(t, taken, p.asks(t, "permits", "acquiredPermits"))
		require.EqualValues(t, free+taken, p.asks(t, "permits", "getPermits"))
	}
}

func (c *compat) testPermitIDs(t *testing.T) {
	c.beside(t)
	p := c.objectPair(t)
	p.calls(t, "permits", "trySetPermits", 2)
	id := p.takes(t, 60000, msUnit)
	hold := must(p.permits.Acquire(bounded(t), 1))(t)
	n := must(p.permits.Release(t.Context(), id))(t)
	require.Equal(t, 1, n)
	_, err := p.permits.Release(t.Context(), id)
	require.ErrorIs(t, err, redlatch.ErrNotHeld)
	_, err = p.starts("main", "permits", "release", id).Wait(atMost)
	require.Error(t, err, "it is back already")

	p.calls(t, "permits", "release", hold.ID())
	ctx := hold.Context(t.Context())
	select {
	case <-ctx.Done():
	case <-time.After(twoLeases):
		require.FailNow(t, "the hold does not notice that its permit was given back")
	}
	require.ErrorIs(t, hold.Err(), redlatch.ErrLost)
	require.ErrorIs(t, hold.Release(), redlatch.ErrLost)
	p.agree(t, 2, 0)
}

func (c *compat) testPermitRenewal(t *testing.T) {
	c.beside(t)
	p := c.objectPair(t)
	p.calls(t, "permits", "trySetPermits", 1)
	hold := must(p.permits.Acquire(bounded(t), 1))(t)
	waiter := p.starts("waits", "permits", "tryAcquire", twoLeases.Milliseconds(), 60000, msUnit)
	reply := must(waiter.Wait(atMost))(t)
	require.JSONEq(t, "null", string(reply.Value), "Java took a permit that is renewed")
	require.NoError(t, hold.Err())
	p.agree(t, 0, 1)
	require.NoError(t, hold.Release())
	p.agree(t, 1, 0)
}

func (c *compat) testJavaRenewsPermit(t *testing.T) {
	c.beside(t)
	const lease = 6000
	p := c.objectPair(t)
	p.calls(t, "permits", "trySetPermits", 1)
	id := p.takes(t, lease, msUnit)
	began := time.Now()
	var hold *rsemaphore.Hold
	w := later(func() (err error) { hold, err = p.permits.Acquire(bounded(t), 1); return err })
	for range 4 {
		time.Sleep(lease / 4 * time.Millisecond) // Java works, and is alive
		p.calls(t, "permits", "updateLeaseTime", id, lease, msUnit)
	}
	require.Empty(t, w, "we took a permit that is renewed")
	// Then it dies: the permit is free when the last lease is over.
	w.done(t, lease*time.Millisecond+wakeBound, "a lease of Java's that is over")
	require.Greater(t, time.Since(began), 3*lease/2*time.Millisecond)
	require.NoError(t, hold.Release())
}

func (c *compat) testLatchOpens(t *testing.T) {
	c.beside(t)
	p := c.objectPair(t)
	for _, last := range []string{"ours", "Java's"} {
		set := must(p.latch.TrySet(t.Context(), 2))(t)
		require.True(t, set)
		require.EqualValues(t, 2, p.asks(t, "latch", "getCount"))
		theirs := p.starts("waits", "latch", "await")
		ours := later(func() error { return p.latch.Wait(bounded(t)) })
		p.latched(t, 2)
		time.Sleep(settle)
		if last == "ours" {
			p.calls(t, "latch", "countDown")
			require.NoError(t, p.latch.CountDown(t.Context()))
		} else {
			require.NoError(t, p.latch.CountDown(t.Context()))
			p.calls(t, "latch", "countDown")
		}
		must(theirs.Wait(wakeBound))(t)
		ours.done(t, wakeBound, "we were not woken by "+last)
		p.latched(t, 0)
	}
}
