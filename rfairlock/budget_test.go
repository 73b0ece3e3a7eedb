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

// requests returns how many commands clients have sent for their locks. What scripts
// call in turn is not counted.
func requests(t *testing.T, srv *redistest.Server) int64 {
	t.Helper()
	stats := srv.CommandStats(t)
	t.Logf("evalsha %d, subscribe %d, unsubscribe %d", stats["evalsha"], stats["subscribe"], stats["unsubscribe"])
	return stats["eval"] + stats["evalsha"] + stats["subscribe"] + stats["unsubscribe"]
}

// An attempt that queues, one when its turn has come, a release.
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

// The lock is known to be contended as soon as one waits for it.
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
	require.LessOrEqual(t, asked, int64(callers+1), "the first one asks again when it listens, which may be now")
	cancel()
	for _, w := range all {
		require.ErrorIs(t, w.failed(t, soon), context.Canceled)
	}
	srv.Do(t, "DEL", l.Name())
	requireNoTrace(t, srv, l.Name())
}
