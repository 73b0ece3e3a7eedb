//go:build unix

package gocronredlatch_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/internal/test/trials"
)

// TestProcessesThatAreKilledAndStalledDoEachJobOnce kills or stalls the process that does a job,
// again and again. With REDLATCH_TEST=all it does so 200 times each, in ten fleets at a time, half of
// which have an Elector.
func TestProcessesThatAreKilledAndStalledDoEachJobOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	stalls := redistest.WatchStalls(t)
	for i := range testlevel.Rounds(2, 10) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			f := trials.Start(t, trials.Args{URL: s.URL(), Name: redistest.Key(t), Other: i%2 == 1})
			for range testlevel.Rounds(1, 20) {
				f.Kill(trialWork)
				f.Stall(trialPeriod)
			}
			oneInEachPeriod(t, stalls, f.Judge())
		})
	}
}

// stall is how late a process may be without an effect. Periods are one second longer than a run and
// a lease, which is time for a few stalls that are shorter.
const stall = 300 * time.Millisecond

// oneInEachPeriod holds that no period had two runs, and that each had one unless the machine stood
// still since the run before, or since a lease before that.
func oneInEachPeriod(t *testing.T, stalls *redistest.Stalls, all []trials.Run) {
	t.Helper()
	period := func(r trials.Run) int64 { return (r.First + int64(trialPeriod)/2) / int64(trialPeriod) }
	for i := 1; i < len(all); i++ {
		last, next := all[i-1], all[i]
		require.Less(t, period(last), period(next), "a period has two runs")
		if period(last)+1 == period(next) {
			continue
		}
		still := stalls.Longest(time.Unix(0, last.First).Add(-trialLease), time.Unix(0, next.First))
		require.Greater(t, still, stall, "%d periods have no run", period(next)-period(last)-1)
		t.Logf("%d periods have no run, for the machine stood still for %v", period(next)-period(last)-1, still)
	}
}
