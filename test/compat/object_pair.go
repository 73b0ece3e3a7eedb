package compat

import (
	"context"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/rsemaphore"
)

// testObjects runs what both languages do with semaphores and latches, side by side.
func (c *compat) testObjects(t *testing.T) {
	t.Run("fleet", c.testPermitFleet)
	t.Run("behaviour", c.testObjectBehaviour)
}

// objectPair is a client of each language at one name, which is a semaphore or a latch.
type objectPair struct {
	*pair
	permits *rsemaphore.Expirable
	counter *rsemaphore.Semaphore
	latch   *rlatch.Latch
}

// objectPoll is the poll cap of these clients: long, so that a waiter that is in time was woken.
const objectPoll = 20 * time.Second

func (c *compat) objectPair(t *testing.T, opts ...redlatch.Option) *objectPair {
	t.Helper()
	return c.objectPairOn(t, redistest.Shared(t), opts...)
}

func (c *compat) objectPairOn(t *testing.T, s *redistest.Server, opts ...redlatch.Option) *objectPair {
	t.Helper()
	p := c.pairWith(t, c.peer, s, lockKinds[0], append([]redlatch.Option{watchdog, redlatch.WithPollCap(objectPoll)}, opts...)...)
	return &objectPair{p, rsemaphore.NewExpirable(p.client, p.name), rsemaphore.New(p.client, p.name), rlatch.New(p.client, p.name)}
}

// starts begins a method of Java's on a thread of its own.
func (p *objectPair) starts(thread, kind, method string, args ...any) *peer.Call {
	return p.java.begin(object(kind, method, args...).With(peer.Command{"name": p.name, "thread": thread}))
}

// calls runs a method of Java's.
func (p *objectPair) calls(t *testing.T, kind, method string, args ...any) peer.Reply {
	t.Helper()
	return p.java.do(t, object(kind, method, args...).With(peer.Command{"name": p.name, "thread": "main"}))
}

// asks is the number that a method of Java's returns.
func (p *objectPair) asks(t *testing.T, kind, method string, args ...any) int64 {
	t.Helper()
	var n int64
	require.NoError(t, p.calls(t, kind, method, args...).Into(&n))
	return n
}

// takes is the id of a permit that Java takes.
func (p *objectPair) takes(t *testing.T, args ...any) string {
	t.Helper()
	var id string
	require.NoError(t, p.calls(t, "permits", "acquire", args...).Into(&id))
	require.Len(t, id, 32)
	return id
}

// listening waits until so many listen: each client is one, however many of its callers wait.
func (p *objectPair) listening(t *testing.T, n int) {
	t.Helper()
	awaitListenersOn(t, p.server, codec.SemaphoreChannel(p.name), n)
}

// settle is for Java's waiters: one listens before it is about to wait.
const settle = 500 * time.Millisecond

// waiting is a call of ours that waits.
type waiting chan error

func later(call func() error) waiting {
	w := make(waiting, 1)
	go func() { w <- call() }()
	return w
}

// done demands that it ends well, in time.
func (w waiting) done(t *testing.T, by time.Duration, why string) {
	t.Helper()
	select {
	case err := <-w:
		require.NoError(t, err, why)
	case <-time.After(by):
		require.FailNow(t, "still waiting", why)
	}
}

// value is a number on the server.
func (p *objectPair) value(t *testing.T) int64 {
	t.Helper()
	n := must(redis.Int64(p.server.Do(t, "GET", p.name), nil))(t)
	return n
}

// bounded is a context for one call.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), atMost)
	t.Cleanup(cancel)
	return ctx
}
