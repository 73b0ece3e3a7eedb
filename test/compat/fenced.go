package compat

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfencedlock"
)

func (c *compat) testFenced(t *testing.T) {
	if !c.release.HasFenced() {
		t.Skip("release without fenced locks")
	}
	t.Run("tokens of both libraries grow in the order of the holds", c.testFencedOrder)
	t.Run("both libraries continue the other's tokens", c.testFencedTurns)
	t.Run("a Java fair lock waits in the queue of our fair fenced lock", c.testFencedFairQueue)
}

func fenced(fields peer.Command) peer.Command { return peer.Command{"kind": "fenced"}.With(fields) }

// inOrder collects tokens. Each token is appended while the lock is held.
type inOrder struct {
	mu     sync.Mutex // guards the fields below
	tokens []int64
	java   int
}

func (o *inOrder) add(token int64, java int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tokens = append(o.tokens, token)
	o.java += java
}

func (c *compat) testFencedOrder(t *testing.T) {
	c.beside(t)
	const callers, turns = 3, 40
	s, name := redistest.Start(t), redistest.Key(t)
	j := connect(t, c.peer, s, nil)
	var order inOrder
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() { j.takesTurns(t, fmt.Sprint("t", i), name, turns, &order) })
	}
	for range 2 {
		lock := rfencedlock.New(open(t, s), name)
		for range callers {
			all.Go(func() {
				for range turns {
					ctx, cancel := context.WithTimeout(t.Context(), atMost)
					assert.NoError(t, lock.Do(ctx, func(_ context.Context, hold *rfencedlock.Hold) error {
						order.add(hold.Token(), 0)
						return nil
					}))
					cancel()
				}
			})
		}
	}
	all.Wait()
	require.Len(t, order.tokens, 3*callers*turns)
	require.Equal(t, callers*turns, order.java)
	for i, token := range order.tokens {
		require.EqualValues(t, i+1, token, "tokens of both libraries form one sequence")
	}
	requireClean(t, s, name)
	require.EqualValues(t, -1, s.Do(t, "PTTL", protocol.TokenKey(name)))
}

func (j *java) takesTurns(t *testing.T, thread, name string, turns int, order *inOrder) {
	t.Helper()
	at := fenced(peer.Command{"thread": thread, "name": name})
	for range turns {
		var token int64
		reply, err := j.begin(at.With(peer.Command{"op": "lockAndGetToken"})).Wait(atMost)
		if !assert.NoError(t, err) || !assert.NoError(t, reply.Into(&token)) {
			return
		}
		order.add(token, 1)
		if _, err = j.begin(at.With(peer.Command{"op": "unlock"})).Wait(atMost); !assert.NoError(t, err) {
			return
		}
	}
}

func (c *compat) testFencedTurns(t *testing.T) {
	c.beside(t)
	s, name := redistest.Start(t), redistest.Key(t)
	j := connect(t, c.peer, s, nil)
	lock := rfencedlock.New(open(t, s), name)
	at := fenced(peer.Command{"thread": "main", "name": name})
	takes := func() int64 { return j.number(t, at.With(peer.Command{"op": "lockAndGetToken"})) }

	require.EqualValues(t, 1, takes())
	require.EqualValues(t, 2, takes(), "Java's re-entry must get a new token")
	_, err := lock.TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	last := must(lock.Token(t.Context()))(t)
	require.EqualValues(t, 2, last)
	forced := must(lock.ForceUnlock(t.Context()))(t)
	require.True(t, forced)

	hold := must(lock.Lock(t.Context()))(t)
	require.EqualValues(t, 3, hold.Token())
	inner := must(lock.Lock(hold.Context(t.Context())))(t)
	require.EqualValues(t, 4, inner.Token())
	require.EqualValues(t, 4, j.number(t, at.With(peer.Command{"op": "getToken"})))
	require.False(t, j.boolean(t, at.With(peer.Command{"op": "tryLock"})))
	waiter := j.begin(at.With(peer.Command{"op": "lockAndGetToken", "thread": "waits"}))
	awaitListeners(t, s, name, 1)
	require.NoError(t, inner.Unlock())
	require.NoError(t, hold.Unlock())
	var token int64
	reply := must(waiter.Wait(wakeBound))(t)
	require.NoError(t, reply.Into(&token))
	require.EqualValues(t, 5, token)
	j.do(t, at.With(peer.Command{"op": "unlock", "thread": "waits"}))
	requireClean(t, s, name)
}

func (c *compat) testFencedFairQueue(t *testing.T) {
	c.beside(t)
	s, name := redistest.Start(t), redistest.Key(t)
	j := connect(t, c.peer, s, nil)
	lock := rfencedlock.NewFair(open(t, s), name)
	hold := must(lock.Lock(t.Context()))(t)
	first := j.begin(fair(peer.Command{"op": "lock", "thread": "first", "name": name}))
	queued := func(n int64) {
		require.Eventually(t, func() bool { return s.Do(t, "LLEN", codec.QueueKey(name)) == any(n) }, atMost,
			time.Millisecond)
	}
	queued(1)
	second := make(chan int64, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), atMost)
		defer cancel()
		h, err := lock.Lock(ctx)
		if assert.NoError(t, err) {
			second <- h.Token()
			assert.NoError(t, h.Unlock())
		}
		close(second)
	}()
	queued(2)
	require.NoError(t, hold.Unlock())
	must(first.Wait(wakeBound))(t)
	require.Empty(t, second, "it has overtaken Java")
	j.do(t, fair(peer.Command{"op": "unlock", "thread": "first", "name": name}))
	require.EqualValues(t, 2, <-second, "the fair lock of Java's counted nothing")
	<-second
	requireClean(t, s, name)
}
