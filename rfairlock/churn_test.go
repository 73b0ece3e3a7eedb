package rfairlock_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// churn counts the results of rounds, which acquire a lock in random ways.
type churn struct {
	acquired, left atomic.Int64
	inside         [2]atomic.Int32 // by lock
}

// round expects any error, as connections break.
func (c *churn) round(t *testing.T, client *redlatch.Client) {
	t.Helper()
	n := rand.IntN(len(c.inside))
	l := rfairlock.New(client, "churn-"+strconv.Itoa(n))
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	hold, err := c.lock(ctx, l)
	if err != nil {
		c.left.Add(1)
		assert.NoError(t, ctx.Err(), "waited for an hour: %v", err)
		return
	}
	c.acquired.Add(1)
	assert.Equal(t, int32(1), c.inside[n].Add(1), "one at a time")
	switch rand.IntN(8) {
	case 0:
		_, _ = l.HoldCount(ctx, hold.Owner())
	case 1:
		if inner, err := l.Lock(hold.Context(ctx)); err == nil {
			_ = inner.Unlock()
		}
	case 2, 3:
		time.Sleep(rand.N(3 * time.Millisecond))
	}
	c.inside[n].Add(-1)
	_ = hold.Unlock()
}

// lock waits without a limit, for a moment, or until its context ends.
func (c *churn) lock(ctx context.Context, l *rlock.Lock) (*rlock.Hold, error) {
	moment := rand.N(20 * time.Millisecond)
	switch rand.IntN(6) {
	case 0:
		return l.TryLock(ctx)
	case 1, 2:
		return l.Lock(ctx, rlock.WithWait(moment.Truncate(time.Millisecond)))
	case 3:
		ctx, cancel := context.WithCancel(ctx)
		defer time.AfterFunc(moment, cancel).Stop()
		return l.Lock(ctx)
	case 4:
		ctx, cancel := context.WithTimeout(ctx, moment)
		defer cancel()
		return l.Lock(ctx, rlock.WithWait(time.Hour))
	}
	return l.Lock(ctx)
}

// At most one holder exists at a time, every caller returns, and no key, channel or goroutine is left: the
// bubble waits for its goroutines.
func TestU18ChurnWithFaultsLeaksNothing(t *testing.T) {
	t.Parallel()
	const clients, workers = 3, 30
	rounds := testlevel.Rounds(5, 80)
	synctest.Test(t, func(t *testing.T) {
		srv, _, _ := inBubble(t)
		var c churn
		var wg sync.WaitGroup
		for range clients {
			client, _ := fakeClient(t, srv)
			for range workers / clients {
				wg.Go(func() {
					for range rounds {
						c.round(t, client)
					}
				})
			}
		}
		done := make(chan struct{})
		go func() { defer close(done); wg.Wait() }()
		for broken := true; broken; {
			select {
			case <-done:
				broken = false
			case <-time.After(20*time.Millisecond + rand.N(100*time.Millisecond)):
				breakSomething(srv)
			}
		}
		t.Logf("acquired %d, left %d", c.acquired.Load(), c.left.Load())
		require.Greater(t, c.acquired.Load(), int64(workers*rounds/10))
		require.Greater(t, c.left.Load(), int64(workers*rounds/10))
		srv.Heal()
		time.Sleep(time.Minute)
		require.Zero(t, srv.Do(t, "DBSIZE"))
		require.Empty(t, channelsOf(t, srv))
	})
}

// breakSomething breaks connections in a random way.
func breakSomething(srv *redistest.MiniServer) {
	ways := []func(){srv.DropConnections, srv.DropSubscribers, func() { srv.LoseReplies(1 + rand.IntN(8)) }}
	ways[rand.IntN(len(ways))]()
}
