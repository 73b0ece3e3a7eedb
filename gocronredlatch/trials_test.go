//go:build unix

package gocronredlatch_test

import (
	"strconv"
	"testing"

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
	for i := range testlevel.Rounds(2, 10) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			f := trials.Start(t, trials.Args{URL: s.URL(), Name: redistest.Key(t), Other: i%2 == 1})
			for range testlevel.Rounds(1, 20) {
				f.Kill(trialWork)
				f.Stall(trialPeriod)
			}
			oneInEachPeriod(t, f.Judge())
		})
	}
}

// oneInEachPeriod holds that each period had one run.
func oneInEachPeriod(t *testing.T, all []trials.Run) {
	t.Helper()
	period := func(r trials.Run) int64 { return (r.First + int64(trialPeriod)/2) / int64(trialPeriod) }
	for i, r := range all {
		require.Equal(t, period(all[0])+int64(i), period(r), "a period has two runs, or none")
	}
}
