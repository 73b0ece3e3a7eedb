package rfairlock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
)

// One attempt queues, one acquires, and one request releases.
func TestContendedFairLockCycleTakesThreeRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 4
		rounds := testlevel.Rounds(40, 200)
		srv, client, calls := inBubble(t, noPoll())
		l := rfairlock.New(client, "job")
		var all sync.WaitGroup
		for range workers {
			all.Go(func() {
				for range rounds {
					assert.NoError(t, l.Do(t.Context(), func(context.Context) error { return nil }))
				}
			})
		}
		all.Wait()
		requireNoTrace(t, srv, "job")
		each := float64(calls.n.Load()+2*calls.subscribed.Load()) / float64(workers*rounds)
		t.Logf("%.2f requests for each acquisition", each)
		require.LessOrEqual(t, each, 3.2)
	})
}

// The first waiter makes the lock contended.
func TestContendedFairLockCallersSubscribeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 50
		srv, client, calls := inBubble(t, noPoll())
		l := rfairlock.New(client, "job")
		holdByHand(t, srv, "job", time.Hour)
		_, end := waitTogether(t, l, 1)
		before := calls.n.Load()
		_, endOthers := waitTogether(t, l, callers)
		require.Equal(t, before+callers, calls.n.Load())
		require.Len(t, queueOf(t, srv, "job"), callers+1)
		end()
		endOthers()
		srv.Do(t, "DEL", "job")
		requireNoTrace(t, srv, "job")
	})
}

// allocationsOfAPair are the hold, its owner's text, which is boxed, and the time for each of the two
// scripts.
const allocationsOfAPair = 5

// Not parallel, since it counts allocations.
func TestLockUnlockAllocations(t *testing.T) {
	testlevel.NoRace(t, "the race detector allocates")
	client := connect(t, redistest.Shared(t).URL())
	l := rfairlock.New(client, redistest.Key(t))
	ctx := t.Context()
	n := testing.AllocsPerRun(testlevel.Rounds(500, 2000), func() {
		hold, err := l.Lock(ctx)
		if err == nil {
			err = hold.Unlock()
		}
		if err != nil {
			t.Error(err)
		}
	})
	t.Logf("%.0f allocations", n)
	require.LessOrEqual(t, n, float64(allocationsOfAPair))
}
