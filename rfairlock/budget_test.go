package rfairlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
)

// requests counts the commands that clients sent, without the calls of scripts.
func requests(t *testing.T, srv *redistest.Server) int64 {
	t.Helper()
	stats := srv.CommandStats(t)
	t.Logf("evalsha %d, subscribe %d, unsubscribe %d", stats["evalsha"], stats["subscribe"], stats["unsubscribe"])
	return stats["eval"] + stats["evalsha"] + stats["subscribe"] + stats["unsubscribe"]
}

// One attempt queues, one acquires, and one request releases.
func TestWorkersOfAContendedFairLockCostThreeRequestsEachTime(t *testing.T) {
	t.Parallel()
	const workers = 16
	rounds := testlevel.Rounds(20, 50)
	srv := redistest.Start(t)
	client := connect(t, srv.URL(), noPoll())
	loadScripts(t, client)
	l := rfairlock.New(client, redistest.Key(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	srv.Do(t, "CONFIG", "RESETSTAT")
	require.NoError(t, takeTurns(ctx, l, workers, rounds))
	requireNoTrace(t, srv, l.Name())
	each := float64(requests(t, srv)) / float64(workers*rounds)
	t.Logf("%.2f requests for each acquisition", each)
	require.LessOrEqual(t, each, 3.2)
}

// The first waiter makes the lock contended.
func TestCallersOfAContendedFairLockSubscribeFirstAndAskOnce(t *testing.T) {
	t.Parallel()
	const callers = 50
	srv := redistest.Start(t)
	client := connect(t, srv.URL(), noPoll())
	loadScripts(t, client)
	l := rfairlock.New(client, redistest.Key(t))
	holdByHand(t, srv, l.Name(), forever)
	ctx, cancel := context.WithCancel(t.Context())
	all := queueUp(ctx, t, srv, l, 1)
	srv.Do(t, "CONFIG", "RESETSTAT")
	for range callers {
		all = append(all, await(ctx, l))
	}
	awaitQueue(t, srv, l.Name(), len(all))
	asked := srv.CommandStats(t)["evalsha"]
	require.GreaterOrEqual(t, asked, int64(callers))
	require.LessOrEqual(t, asked, int64(callers+1), "the first asks again after it has subscribed")
	cancel()
	for _, w := range all {
		require.ErrorIs(t, w.failed(t, soon), context.Canceled)
	}
	srv.Do(t, "DEL", l.Name())
	requireNoTrace(t, srv, l.Name())
}

// allocationsOfAPair are the hold, its owner's text, which is boxed, and the time for each of the two
// scripts.
const allocationsOfAPair = 5

// Not parallel, since it counts allocations.
func TestPairStaysWithinItsAllocations(t *testing.T) {
	testlevel.NoRace(t, "it takes allocations, too")
	client := connect(t, redistest.Shared(t).URL())
	l := rfairlock.New(client, redistest.Key(t))
	ctx := t.Context()
	n := testing.AllocsPerRun(2000, func() {
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
