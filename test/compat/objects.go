package compat

import (
	"context"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/rsemaphore"
)

func (c *compat) testObjects(t *testing.T) {
	t.Run("fleet", c.testPermitFleet)
	t.Run("behaviour", c.testObjectBehaviour)
}

type objectPair struct {
	*pair
	permits *rsemaphore.Expirable
	counter *rsemaphore.Semaphore
	latch   *rlatch.Latch
}

// objectPoll is so long that a waiter that returns in time must have been woken by a message.
const objectPoll = 20 * time.Second

func (c *compat) objectPair(t *testing.T, opts ...redlatch.Option) *objectPair {
	t.Helper()
	return c.objectPairOn(t, redistest.Shared(t), opts...)
}

func (c *compat) objectPairOn(t *testing.T, s *redistest.Server, opts ...redlatch.Option) *objectPair {
	t.Helper()
	opts = append([]redlatch.Option{watchdog, redlatch.WithPollCap(objectPoll)}, opts...)
	p := c.pairWith(t, c.peer, s, lockKinds[0], opts...)
	return &objectPair{p, rsemaphore.NewExpirable(p.client, p.name), rsemaphore.New(p.client, p.name),
		rlatch.New(p.client, p.name)}
}

func (p *objectPair) starts(thread, kind, method string, args ...any) *peer.Call {
	return p.java.begin(object(kind, method, args...).With(peer.Command{"name": p.name, "thread": thread}))
}

func (p *objectPair) calls(t *testing.T, kind, method string, args ...any) peer.Reply {
	t.Helper()
	return p.java.do(t, object(kind, method, args...).With(peer.Command{"name": p.name, "thread": "main"}))
}

func (p *objectPair) asks(t *testing.T, kind, method string, args ...any) int64 {
	t.Helper()
	var n int64
	require.NoError(t, p.calls(t, kind, method, args...).Into(&n))
	return n
}

func (p *objectPair) takes(t *testing.T, args ...any) string {
	t.Helper()
	var id string
	require.NoError(t, p.calls(t, "permits", "acquire", args...).Into(&id))
	require.Len(t, id, 32)
	return id
}

func (p *objectPair) listening(t *testing.T, n int) {
	t.Helper()
	awaitListenersOn(t, p.server, protocol.SemaphoreChannel(p.name), n)
}

// settle is the time that Java's waiters need to subscribe.
const settle = 500 * time.Millisecond

type waiting chan error

func later(call func() error) waiting {
	w := make(waiting, 1)
	go func() { w <- call() }()
	return w
}

func (w waiting) done(t *testing.T, by time.Duration, why string) {
	t.Helper()
	select {
	case err := <-w:
		require.NoError(t, err, why)
	case <-time.After(by):
		require.FailNow(t, "still waiting", why)
	}
}

func (p *objectPair) value(t *testing.T) int64 {
	t.Helper()
	n := must(redis.Int64(p.server.Do(t, "GET", p.name), nil))(t)
	return n
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), atMost)
	t.Cleanup(cancel)
	return ctx
}

func (c *compat) testObjectBehaviour(t *testing.T) {
	t.Run("permits are counted alike", c.testPermitCounts)
	t.Run("both release the other's permits", c.testPermitIDs)
	t.Run("our permits are renewed next to Java's", c.testPermitRenewal)
	t.Run("Java renews a permit while we wait", c.testJavaRenewsPermit)
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
	require.NoError(t, p.counter.AddPermits(t.Context(), 5))
	require.EqualValues(t, 5, p.asks(t, "semaphore", "availablePermits"))
	require.EqualValues(t, 5, p.asks(t, "semaphore", "drainPermits"))
}

func (p *objectPair) agree(t *testing.T, free, taken int) {
	t.Helper()
	n := must(p.permits.Available(t.Context()))(t)
	require.Equal(t, free, n)
	require.EqualValues(t, free, p.asks(t, "permits", "availablePermits"))
	in := must(p.permits.Inspect(t.Context()))(t)
	require.Equal(t, free, in.Available)
	require.Equal(t, taken, in.Acquired)
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

	p.calls(t, "permits", "release", hold.IDs()[0])
	ctx := hold.Context(t.Context())
	select {
	case <-ctx.Done():
	case <-time.After(twoLeases):
		require.FailNow(t, "the hold does not notice its released permit")
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
		time.Sleep(lease / 4 * time.Millisecond)
		p.calls(t, "permits", "updateLeaseTime", id, lease, msUnit)
	}
	require.Empty(t, w, "we took a permit that is renewed")
	w.done(t, lease*time.Millisecond+wakeBound, "a lease of Java's that is over")
	require.Greater(t, time.Since(began), 3*lease/2*time.Millisecond)
	require.NoError(t, hold.Release())
}

func (c *compat) testLatchOpens(t *testing.T) {
	c.beside(t)
	p := c.objectPair(t)
	for _, last := range []string{"ours", "Java's"} {
		set := must(p.latch.TrySetCount(t.Context(), 2))(t)
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
