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

// Not parallel: it counts goroutines.
func TestU18TenThousandRoundsLeaveNothingBehind(t *testing.T) {
	testlevel.All(t, "10,000 rounds")
	const clients, workers, rounds = 3, 30, 10_002
	s := redistest.Start(t)
	var all []*redlatch.Client
	for range clients {
		client := connect(t, s.URL())
		loadScripts(t, client) // both connections and the watchdog are there
		all = append(all, client)
	}
	until(t, soon, "no channel", func() bool { return len(s.Channels(t)) == 0 })
	baseline := runtime.NumGoroutine()

	var c churn
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for range rounds / workers {
				l := rfairlock.New(all[i%clients], "churn-"+strconv.Itoa(rand.IntN(4)))
				c.round(t, l)
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

// churn is what rounds of a random kind come to.
type churn struct {
	acquired, left atomic.Int64
	inside         [4]atomic.Int32 // by lock
}

// round takes the lock, or leaves early, in one way or another.
func (c *churn) round(t *testing.T, l *rlock.Lock) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var hold *rlock.Hold
	var err error
	switch rand.IntN(5) {
	case 0:
		hold, err = l.TryLock(ctx)
	case 1:
		hold, err = l.Lock(ctx, rlock.WithWait(rand.N(20*time.Millisecond).Truncate(time.Millisecond)))
	case 2:
		timer := time.AfterFunc(rand.N(20*time.Millisecond), cancel)
		defer timer.Stop()
		hold, err = l.Lock(ctx)
	case 3:
		timed, stop := context.WithTimeout(ctx, rand.N(20*time.Millisecond))
		defer stop()
		hold, err = l.Lock(timed, rlock.WithWait(time.Hour))
	default:
		hold, err = l.Lock(ctx)
	}
	if err != nil {
		c.left.Add(1)
		left := errors.Is(err, redlatch.ErrNotAcquired) || errors.Is(err, ctx.Err()) || errors.Is(err, context.DeadlineExceeded) ||
			errors.Is(err, redlatch.ErrUncertain) || errors.Is(err, redlatch.ErrNotSent)
		assert.True(t, left, "%v", err)
		return
	}
	c.acquired.Add(1)
	inside := &c.inside[l.Name()[len("churn-")]-'0']
	assert.Equal(t, int32(1), inside.Add(1), "one at a time")
	if rand.IntN(4) == 0 {
		<-time.After(rand.N(3 * time.Millisecond))
	}
	inside.Add(-1)
	assert.NoError(t, hold.Unlock())
}

// Connections break all the while. Whatever outcome a caller gets, there is at most one
// holder, no caller waits for ever, and no entry is left.
func TestU18ChurnWhileConnectionsBreakLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	const clients, workers = 2, 20
	rounds := testlevel.Rounds(20, 50)
	fenced(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy) {
		t.Helper()
		var c churn
		var wg sync.WaitGroup
		for range clients {
			client := connect(t, p.URL(), redlatch.WithCommandTimeout(time.Second))
			loadScripts(t, client)
			for range workers / clients {
				wg.Go(func() {
					for range rounds {
						c.roundUnderFaults(t, rfairlock.New(client, "churn-"+strconv.Itoa(rand.IntN(2))))
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

// breakSomething breaks connections in one of several ways.
func breakSomething(t *testing.T, s *redistest.Server, p *redistest.Proxy) {
	t.Helper()
	ways := []func(){
		p.Reset,
		func() { p.CutReplyAfter(rand.IntN(8)) },
		func() { s.KillClients(t, "pubsub") },
		func() { s.KillClients(t, "normal") },
	}
	if strings.HasSuffix(t.Name(), "no_fence") { // which is our own user, too
		ways = ways[:2]
	}
	ways[rand.IntN(len(ways))]()
}

// roundUnderFaults takes the lock, or does not, for one of many reasons.
func (c *churn) roundUnderFaults(t *testing.T, l *rlock.Lock) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var opts []rlock.Option
	if rand.IntN(2) == 0 {
		opts = append(opts, rlock.WithWait(rand.N(50*time.Millisecond)))
	}
	hold, err := l.Lock(ctx, opts...)
	if err != nil {
		c.left.Add(1)
		assert.NoError(t, ctx.Err(), "it has waited for a minute: %v", err)
		return
	}
	c.acquired.Add(1)
	inside := &c.inside[l.Name()[len("churn-")]-'0']
	assert.Equal(t, int32(1), inside.Add(1), "one at a time")
	<-time.After(rand.N(2 * time.Millisecond))
	inside.Add(-1)
	_ = hold.Unlock() // it may be uncertain: then it goes on in the background
}
