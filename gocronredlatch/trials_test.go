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

// The test repeatedly kills or stalls the process that runs a job. With REDLATCH_TEST=all it does so 200 times
// each, in ten fleets at a time, half of which use an Elector.
func TestKilledAndStalledProcessesRunEachJobOnce(t *testing.T) {
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

// stall is the longest process delay that has no effect. Periods are one second longer than a run
// and a lease, which leaves time for a few shorter stalls.
const stall = 300 * time.Millisecond

// lateRun is how late the machine must have made a run that seems to be in the next period. Such a
// run started more than half a period late, and Locker causes at most a third of a period of that.
const lateRun = trialPeriod/2 - trialPeriod/3

// oneInEachPeriod requires that there was one run in each period, unless the machine stalled after
// the previous run, or up to a lease before it.
func oneInEachPeriod(t *testing.T, stalls *redistest.Stalls, all []trials.Run) {
	t.Helper()
	period := func(r trials.Run) int64 { return (r.First + int64(trialPeriod)/2) / int64(trialPeriod) }
	for i := 1; i < len(all); i++ {
		last, next := all[i-1], all[i]
		still := stalls.Longest(time.Unix(0, last.First).Add(-trialLease), time.Unix(0, next.First))
		switch passed := period(next) - period(last); {
		case passed == 1:
			continue
		case passed < 1:
			require.Greater(t, still, lateRun, "a period has two runs")
		default:
			require.Greater(t, still, stall, "%d periods have no run", passed-1)
		}
		t.Logf("periods %d and %d have the next two runs: the machine stalled for %v", period(last), period(next), still)
	}
}
