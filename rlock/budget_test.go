package rlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// commands returns what a server ran in all, without the tests' own questions.
func commands(t testing.TB, srv *redistest.Server) (scripts, all int64) {
	t.Helper()
	stats := srv.CommandStats(t)
	for name, n := range stats {
		if name != "info" && name != "ping" && name != "config|resetstat" {
			all += n
		}
	}
	return stats["evalsha"], all
}

func TestThousandPairsCostTwoScriptsOfThreeCommandsEach(t *testing.T) {
	t.Parallel()
	const pairs = 1000
	srv := redistest.Start(t)
	l := rlock.New(connect(t, srv.URL()), redistest.Key(t))
	require.NoError(t, take(t, l).Unlock()) // the server knows the scripts
	srv.Do(t, "CONFIG", "RESETSTAT")
	for range pairs {
		hold, err := l.Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Unlock())
	}
	scripts, all := commands(t, srv)
	require.EqualValues(t, 2*pairs, scripts)
	require.LessOrEqual(t, all, int64(2*(1+3)*pairs))
	require.Empty(t, srv.Channels(t), "a free lock has no subscribers")
	require.Equal(t, 1, srv.Clients(t))
}

// What uncontended pairs allocate: the hold, its owner's text and that boxed; for a re-entry
// the hold, and what each of its two changes of the count says.
const (
	allocationsOfAPair    = 3
	allocationsOfAReentry = 7
)

// Not parallel: it counts allocations.
func TestPairStaysWithinItsAllocations(t *testing.T) {
	testlevel.NoRace(t, "it takes allocations, too")
	_, client := onShared(t)
	l := rlock.New(client, redistest.Key(t))
	ctx := t.Context()
	require.NoError(t, take(t, l).Unlock())
	require.LessOrEqual(t, allocations(ctx, t, l), allocationsOfAPair)
	outer := take(t, l)
	inside := outer.Context(ctx)
	require.LessOrEqual(t, allocations(inside, t, l), allocationsOfAReentry)
	require.NoError(t, outer.Unlock())
}

// allocations returns how many a pair makes. The average is cut to a whole number: what the
// background does now and then is not counted.
func allocations(ctx context.Context, t *testing.T, l *rlock.Lock) int {
	t.Helper()
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
	return int(n)
}
