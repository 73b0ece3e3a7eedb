//go:build linux

// Package fleet runs fleets of clients in bubbles of testing/synctest, on fake time: several
// clients with several callers each, the server of package embedded, and networks between
// them that go wrong. From the root of the checkout:
//
//	make fleet DURATION=1m            random seeds; it prints the first
//	make fleet FLEETS=1 SEED=7      that fleet again
//
// # A fleet
//
//	seed ──rapid──▶ plan ──▶ bubble: callers and faults ──▶ rest ──▶ end
//	                 ▲                                        │       │
//	                 └── a smaller one ◀── a finding ◀── history and leftovers
//
// A plan is data: the locks, the clients, what each caller does step by step, the faults and
// their moments. At rest all callers have returned and calls in doubt had time: an owner on
// the server is one that a caller has left there on purpose. At the end all clients are
// closed, leases have run out, and dead waiters have been passed: then no key, channel or
// connection is left, and a goroutine that is left makes the bubble panic.
//
// Package history of the nemesis run (see test/stress) judges what the callers saw. What needs
// no allowance for a busy machine is judged here: a lock with waiters lies free for half a
// second at most, fair locks are had in the order of the calls, and a renewed hold is lost
// only near a fault. Faults excuse as little as possible, and a quarter of the fleets has none.
//
// # When a hold is valid
//
// From its grant until it is given up, or until its context ends, which in a bubble is the
// moment when the holder could know. Neither the holder nor the checker is ever late there.
//
// # What the faults stand for
//
//   - Delay ("slow up", "slow down", "freeze"): bytes stand still and arrive afterwards, as after
//     retransmissions.
//   - Loss ("lose up", "lose down", "partition"): a stream cannot lose bytes and go on, so a
//     connection becomes a black hole, in one direction or both, until an end gives it up.
//   - Repetition ("repeat", "lose reply"): a stream does not repeat bytes, and the client sends
//     no acquisition twice. What a server does see is a request that was under way when its
//     connection broke, and runs behind what the client sent anew.
//   - Pause ("pause"): goroutines cannot be stopped in a bubble. The connections of a client
//     stand still in both directions, which is what others see of a paused process. That it
//     sees its own loss late is for package clock's tests and the nemesis run.
//   - Clocks ("drift", "clock step", and clients whose clock is ahead): the server's leases end
//     sooner, by less than the loss margin or all at once; fair locks of a client are given a
//     time that is wrong. The clock of a client's own leases is the bubble's: there is no seam.
//   - Death ("kill"): its connections break, nothing connects any more, and its history ends.
//     Its goroutines go on, in order to end, and are not heard.
//
// The server starts again with its data and without its scripts, or empty, and forgets single
// locks.
//
// # Seeds
//
// A seed says what the plan is, and each packet takes a time of its own, so that little happens
// at one moment. It does not say which of two goroutines runs first, nor the product's own
// jitter: one seed in four gives the same history twice, to the nanosecond. A finding may need
// several runs to come again, so a plan that has failed is run five times before it counts as
// right. A plan that found a bug is kept in testdata, and is a test from then on.
//
// # What it has found
//
// A place in a fair lock's queue that was asked for with a short rlock.WithWait, behind
// places with long waits, can be overdue as soon as one of those is served, and is then taken
// out: the rule for deadlines is Redisson's. The waiter queues anew with its next heartbeat, five
// seconds later at most. Plans have no such waits.
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

// inNetwork runs a test with a network of 10 ms and a connection through it.
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
		_ = c.Close() // it may be broken
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
			assert.Equal(t, 2, count(), "it arrives at the end of the time")
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
			assert.Equal(t, int(d), count(), "only the reply was lost, or the request")
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

// queued is the history of two callers of a fair lock, in the order of their calls. The second
// one gets it at at.
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
	assert.Empty(t, f.checkOrder(queued(7*time.Second)), "whose clock is wrong may overtake")
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
		"none":                    {queued(10 * s), false},
		"long over":               {fault(s, 2*s, ""), false},
		"near":                    {fault(7*s, 7*s, ""), true},
		"the server forgot it":    {fault(5*s, 5*s, "*"), true},
		"it was forgotten before": {fault(s/4, s/2, "*"), false},
	} {
		assert.Equal(t, c.want, disturbed(c.story, c.story.Holds["a"]), what)
	}
}
