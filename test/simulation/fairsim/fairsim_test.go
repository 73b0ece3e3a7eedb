package fairsim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/test/simulation/fairsim"
)

// short is for how long a load is simulated here: so many of its longest holds.
// `make model` takes longer.
func short(load fairsim.Load) time.Duration {
	longest := time.Duration(testlevel.Rounds(3, 15)) * time.Hour
	return max(longest/5, min(150*load.Hold, longest))
}

// seeds are what the fleets here are simulated with: one that is always the same, and,
// where all tests run, one that is not, which a failure names.
func seeds(t *testing.T) []uint64 {
	t.Helper()
	if !testlevel.IsAll() {
		return []uint64{1}
	}
	random := rand.Uint64()
	t.Logf("seeds: 1 and %d", random)
	return []uint64{1, random}
}

// each simulates fleets of both kinds under each load.
func each(t *testing.T, cfg fairsim.Config, check func(*testing.T, fairsim.Load, fairsim.Result, int64)) {
	t.Helper()
	for _, seed := range seeds(t) {
		for _, load := range slices.Concat(fairsim.Loads, []fairsim.Load{fairsim.Skewed, fairsim.Light}) {
			c := cfg
			c.Seed, c.Load, c.Time, c.Fleet = seed, load, short(load), fairsim.Mixed
			t.Run(fmt.Sprintf("%s/%d", load.Name, seed), func(t *testing.T) {
				t.Parallel()
				r := fairsim.Run(c)
				require.Empty(t, r.FirstFaults)
				require.Zero(t, r.EvictedRedlatch+r.EvictedRedisson, "live waiters were evicted")
				require.Less(t, r.Idle, allowedIdle(load)+chance(seed)*600_000, "the lock lay idle for so many milliseconds")
				check(t, load, r, chance(seed))
			})
		}
	}
}

// chance is how many places may be lost in fleets to which anything may happen: one now and
// then is, when several leave within one period. And the queue may have no waiter of ours
// for a while, so that a dead one blocks it for minutes.
func chance(seed uint64) int64 {
	if seed == 1 {
		return 0
	}
	return 3
}

// allowedIdle is for how many milliseconds the lock may lie idle: the share that is
// promised for long, and some minutes for what chance does in a short time.
func allowedIdle(load fairsim.Load) int64 {
	return int64(load.Idle*float64(short(load).Milliseconds())) + 300_000
}

func TestMixedFleetsLoseNoPlaceAndLittleTime(t *testing.T) {
	t.Parallel()
	each(t, fairsim.Config{}, func(t *testing.T, load fairsim.Load, r fairsim.Result, chance int64) {
		t.Helper()
		require.LessOrEqual(t, r.PrunedRedlatch, chance, "our own live waiters were pruned")
		require.LessOrEqual(t, r.PrunedRedisson, chance, "live waiters of Redisson's were pruned")
		if load.Think == 0 {
			require.NotZero(t, r.EvictedDead)
		}
	})
}

// Without this library all that happens which it is there to prevent: else the
// simulation would prove nothing.
func TestFleetsOfRedissonAloneLoseTimeAndPlaces(t *testing.T) {
	testlevel.All(t, "simulates many fleets")
	t.Parallel()
	for _, load := range fairsim.Loads {
		r := fairsim.Run(fairsim.Config{Seed: 1, Time: short(load) / 2, Load: load, Fleet: fairsim.Pure})
		require.Empty(t, r.FirstFaults)
		require.Zero(t, r.EvictedDead)
		require.Greater(t, r.IdleShare(), 2*load.Idle)
		require.NotZero(t, r.Pruned())
	}
}

func TestTheSameSeedGivesTheSameResult(t *testing.T) {
	t.Parallel()
	cfg := fairsim.Config{Seed: 7, Time: time.Hour, Load: fairsim.Loads[0], Fleet: fairsim.Mixed}
	first := fairsim.Run(cfg)
	require.Equal(t, first, fairsim.Run(cfg))
	cfg.Seed++
	require.NotEqual(t, first, fairsim.Run(cfg))
}

func TestTableHasOneLineForEachRow(t *testing.T) {
	t.Parallel()
	r := fairsim.Result{Time: time.Hour, Granted: 2000, PrunedRedisson: 3, Idle: 36_000, EvictedDead: 4, LongestBlock: 12_345}
	table := fairsim.Table([]fairsim.Row{{What: "x", Result: r}})
	require.Contains(t, table, "| x | 2000 | 1.5 | 0 | 1.0 % | 4 | 12s |\n")
	require.Contains(t, table, "|---|---|---|---|---|---|---|\n")
}
