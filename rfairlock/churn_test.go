package rfairlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// Not parallel, since it counts goroutines.
func TestU18TenThousandRoundsLeaveNothingBehind(t *testing.T) {
	testlevel.All(t, "10,000 rounds")
	const clients, workers, rounds = 3, 30, 10_002
	s := redistest.Start(t)
	var all []*redlatch.Client
	for range clients {
		client := connect(t, s.URL())
		loadScripts(t, client) // starts both connections and the watchdog
		all = append(all, client)
	}
	until(t, soon, "no channel", func() bool { return len(s.Channels(t)) == 0 })
	baseline := runtime.NumGoroutine()

	var c churn
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for range rounds / workers {
				c.round(t, all[i%clients], 4)
			}
		})
	}
	wg.Wait()
	t.Logf("acquired %d, left %d", c.acquired.Load(), c.left.Load())
	require.Greater(t, c.acquired.Load(), int64(rounds/10))
	require.Greater(t, c.left.Load(), int64(rounds/10))
	until(t, soon, "no key", func() bool { return s.Do(t, "DBSIZE") == int64(0) })
	until(t, soon, "no channel", func() bool { return len(s.Channels(t)) == 0 })
	until(t, soon, "no goroutine", func() bool { return runtime.NumGoroutine() <= baseline })
}

// churn counts the results of rounds, which acquire a lock in random ways.
type churn struct {
	faults         bool // any error is expected
	acquired, left atomic.Int64
	inside         [4]atomic.Int32 // by lock
}

func (c *churn) round(t *testing.T, client *redlatch.Client, locks int) {
	t.Helper()
	n := rand.IntN(locks)
	l := rfairlock.New(client, "churn-"+strconv.Itoa(n))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	hold, err := c.lock(ctx, l)
	if err != nil {
		c.left.Add(1)
		left := errors.Is(err, redlatch.ErrNotAcquired) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
			errors.Is(err, redlatch.ErrUncertain) || errors.Is(err, redlatch.ErrNotSent)
		assert.True(t, left || c.faults, "%v", err)
		assert.NoError(t, ctx.Err(), "it has waited for a minute: %v", err)
		return
	}
	c.acquired.Add(1)
	assert.Equal(t, int32(1), c.inside[n].Add(1), "one at a time")
	switch rand.IntN(8) {
	case 0:
		if n, err := l.HoldCount(ctx, hold.Owner()); err == nil {
			assert.EqualValues(t, 1, n)
		} else {
			assert.True(t, c.faults, "%v", err)
		}
	case 1:
		inner, err := l.Lock(hold.Context(ctx))
		if err == nil {
			err = inner.Unlock()
		}
		assert.True(t, err == nil || c.faults, "%v", err)
	case 2, 3:
		<-time.After(rand.N(3 * time.Millisecond))
	}
	c.inside[n].Add(-1)
	err = hold.Unlock()
	assert.True(t, err == nil || c.faults, "%v", err)
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

// Checks that there is at most one holder, that no caller waits forever, and that the server ends empty.
func TestU18ChurnWhileConnectionsBreakLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	const clients, workers = 2, 20
	rounds := testlevel.Rounds(20, 50)
	fenced(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy) {
		t.Helper()
		c := churn{faults: true}
		var wg sync.WaitGroup
		for range clients {
			client := connect(t, p.URL(), redlatch.WithCommandTimeout(time.Second))
			loadScripts(t, client)
			for range workers / clients {
				wg.Go(func() {
					for range rounds {
						c.round(t, client, 2)
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
				breakSomething(t, s, p)
			}
		}
		t.Logf("acquired %d, left %d", c.acquired.Load(), c.left.Load())
		require.Greater(t, c.acquired.Load(), int64(workers))
		p.Heal()
		until(t, soon, "no key", func() bool { return s.Do(t, "DBSIZE") == int64(0) })
		until(t, soon, "no channel", func() bool { return len(s.Channels(t)) == 0 })
	})
}

// breakSomething breaks connections in a random way.
func breakSomething(t *testing.T, s *redistest.Server, p *redistest.Proxy) {
	t.Helper()
	ways := []func(){
		p.Reset,
		func() { p.CutReplyAfter(rand.IntN(8)) },
		func() { s.KillClients(t, "pubsub") },
		func() { s.KillClients(t, "normal") },
	}
	if strings.HasSuffix(t.Name(), "no_fence") { // the test has the same rights
		ways = ways[:2]
	}
	ways[rand.IntN(len(ways))]()
}
