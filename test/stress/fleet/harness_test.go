//go:build linux

// Package fleet runs fleets with fake time in bubbles of testing/synctest. A fleet consists of several clients with
// several callers each, the server of package embedded, and networks with faults between them. Run it from the root of
// the checkout:
//
//	make fleet DURATION=1m          with random seeds, the first of which is printed
//	make fleet FLEETS=1 SEED=7      with the fleet for this seed
//
// # A fleet
//
//	seed ──rapid──▶ plan ──▶ bubble: callers and faults ──▶ rest ──▶ end
//	                 ▲                                        │       │
//	                 └── a smaller one ◀── a finding ◀── history and leftovers
//
// A plan is data. It contains the locks, the clients, the steps of each caller, and the faults with their times. At
// rest, all callers have returned and calls with uncertain results have been resolved, so that every owner that is
// still on the server was left there on purpose. At the end, all clients have been closed, leases have expired, and
// dead waiters have been evicted. Then there must not be any keys, channels or connections, and a leaked goroutine
// makes the bubble panic.
//
// Package history of test/stress judges the histories. This package adds checks that a busy machine would disturb: a
// lock with waiters is free for at most half a second, fair locks are granted in the order of the calls, and a hold
// that is renewed is only lost near a fault. Faults excuse as little as possible, and a quarter of the fleets do not
// have faults.
//
// # When a hold is valid
//
// A hold is valid from its grant until it is released or its context is canceled. In a bubble,
// neither the holder nor the checker is ever late.
//
// # Faults
//
//   - Delay ("slow up", "slow down", "freeze"): bytes are held back and arrive later, as after
//     retransmissions.
//   - Loss ("lose up", "lose down", "partition"): a stream cannot lose bytes and continue, so a
//     connection becomes a black hole in one direction or both until one of its ends closes it.
//   - Repetition ("repeat", "lose reply"): a stream does not repeat bytes, and the client never
//     resends an acquisition. However, a request that is in flight on a broken connection may run
//     after the client's next requests.
//   - Pause ("pause"): a bubble cannot stop goroutines. Instead, a client's connections stall in
//     both directions, which is how other clients see a paused process. The tests of package clock
//     and test/stress cover a paused process that detects a loss late.
//   - Clocks ("drift", "clock step", and clients whose clock is ahead): the server's leases end
//     early, either gradually by less than the loss margin or all at the same time. The fair locks
//     of a client get a wrong time. Leases in the client use the bubble's clock.
//   - Death ("kill"): the client's connections break, new ones are not accepted, and its history
//     ends. Its goroutines are no longer observed.
//
// The server also restarts with its data but without its scripts, restarts empty, and loses single locks.
//
// # Seeds
//
// A seed determines the plan and the delay of each packet, so that events rarely coincide. It does not determine which
// of two goroutines runs first, or the client's own jitter. Therefore only one seed in four repeats its history to the
// nanosecond. Because it may take several runs until a finding recurs, a plan that has failed must pass five runs to be
// considered correct. A plan that found a bug is kept in testdata as a regression test.
//
// # Known behavior
//
// If a waiter in a fair lock's queue has a short rlock.WithWait and is behind waiters with long waits, it may be
// overdue when one of these acquires the lock. It is then evicted, because deadlines follow Redisson's rule. The waiter
// is queued again with its next heartbeat, within five seconds. Plans do not have such waits.
package fleet

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/test/stress/internal/history"
)

// inNetwork runs a test with a connection through a network with a latency of 10 ms.
func inNetwork(t *testing.T, test func(t *testing.T, n *network, c redis.Conn, count func() int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		srv, err := embedded.Start(embedded.WithInProcess())
		require.NoError(t, err)
		var wg sync.WaitGroup
		n := &network{server: srv, latency: 10 * time.Millisecond, seed: 1, wg: &wg, conns: map[*link]struct{}{}}
		c, err := n.dial(t.Context())
		require.NoError(t, err)
		direct, err := srv.Dial(t.Context())
		require.NoError(t, err)
		test(t, n, c, func() int {
			count, err := redis.Int(direct.Do("GET", "n"))
			if err != nil {
				return 0
			}
			return count
		})
		_ = c.Close() // may be broken
		srv.Close()
		wg.Wait()
		assert.Zero(t, n.open())
	})
}

func TestNetworkAddsLatencyAndStalls(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network, c redis.Conn, count func() int) {
		t.Helper()
		incr := func() time.Duration {
			began := time.Now()
			_, err := c.Do("INCR", "n")
			require.NoError(t, err)
			return time.Since(began).Round(time.Millisecond)
		}
		assert.Equal(t, 20*time.Millisecond, incr())
		n.hold(down, time.Second)
		began := time.Now()
		assert.InDelta(t, time.Second, incr(), float64(5*time.Millisecond))
		assert.Less(t, time.Since(began), 1100*time.Millisecond)
		n.hold(up, time.Second)
		go func() {
			time.Sleep(990 * time.Millisecond)
			assert.Equal(t, 2, count(), "delivered when the delay ends")
		}()
		assert.InDelta(t, 1010*time.Millisecond, incr(), float64(5*time.Millisecond))
		assert.Equal(t, 3, count())
	})
}

func TestBlackHoleDropsDataUntilClosed(t *testing.T) {
	for _, d := range []direction{up, down} {
		inNetwork(t, func(t *testing.T, n *network, c redis.Conn, count func() int) {
			t.Helper()
			n.each(func(l *link) { l.lose(d) })
			began := time.Now()
			_, err := c.Do("INCR", "n")
			require.Error(t, err)
			assert.Equal(t, keepAlive, time.Since(began))
			assert.Equal(t, int(d), count(), "lost in the given direction only")
			again, err := n.dial(t.Context())
			require.NoError(t, err)
			_, err = again.Do("INCR", "n")
			require.NoError(t, err)
			require.NoError(t, again.Close())
		})
	}
}

func TestCutConnectionDelaysOrDropsData(t *testing.T) {
	for _, late := range []time.Duration{0, time.Second} {
		inNetwork(t, func(t *testing.T, n *network, c redis.Conn, count func() int) {
			t.Helper()
			time.AfterFunc(5*time.Millisecond, func() { n.each(func(l *link) { l.cut(late) }) })
			_, err := c.Do("INCR", "n")
			require.Error(t, err)
			time.Sleep(500 * time.Millisecond)
			assert.Zero(t, count())
			time.Sleep(600 * time.Millisecond)
			assert.Equal(t, int(late/time.Second), count())
		})
	}
}

// queued returns the history of two callers of a fair lock in the order of their calls. The second
// caller gets the lock at at.
func queued(at history.Time, more ...history.Record) *history.Story {
	const s = time.Second
	return history.NewStory(append(more,
		history.Record{T: 1 * s, Kind: history.Call, ID: "a", Op: "lock", Key: keyName(0)},
		history.Record{T: 2 * s, Kind: history.Call, ID: "b", Op: "lock", Key: keyName(0)},
		history.Record{T: 8 * s, Kind: history.Grant, ID: "a", Hold: "a", Key: keyName(0), Owner: "a", Lease: 3 * s, Renewed: true},
		history.Record{T: at, Kind: history.Grant, ID: "b", Hold: "b", Key: keyName(0), Owner: "b"},
		history.Record{T: 9 * s, Kind: history.Over, Hold: "a", Err: "lost"},
	))
}

func TestFairOrderCheckedOnlyInCalmPeriods(t *testing.T) {
	t.Parallel()
	f := &fleet{plan: plan{Keys: []key{{Fair: true, Lease: 3000}}}}
	assert.Empty(t, f.checkOrder(queued(10*time.Second)))
	assert.Len(t, f.checkOrder(queued(7*time.Second)), 1)
	fault := history.Record{T: 500 * time.Millisecond, Until: time.Second, Kind: history.Fault}
	assert.Empty(t, f.checkOrder(queued(7*time.Second, fault)))
	f.plan.Clients = []client{{Ahead: 60_000}}
	assert.Empty(t, f.checkOrder(queued(7*time.Second)), "a client with a wrong clock may overtake")
}

func TestHoldLostOnlyNearFault(t *testing.T) {
	t.Parallel()
	const s = time.Second
	fault := func(from, to history.Time, key string) *history.Story {
		return queued(10*s, history.Record{T: from, Until: to, Kind: history.Fault, Key: key})
	}
	for what, c := range map[string]struct {
		story *history.Story
		want  bool
	}{
		"none":              {queued(10 * s), false},
		"long over":         {fault(s, 2*s, ""), false},
		"near":              {fault(7*s, 7*s, ""), true},
		"data loss":         {fault(5*s, 5*s, "*"), true},
		"earlier data loss": {fault(s/4, s/2, "*"), false},
	} {
		assert.Equal(t, c.want, disturbed(c.story, c.story.Holds["a"]), what)
	}
}
