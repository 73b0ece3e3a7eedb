//go:build unix

package gocronredlatch_test

import (
	"slices"
	"strconv"
	"sync"
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
	machine := watch(t)
	for i := range testlevel.Rounds(2, 10) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			f := trials.Start(t, trials.Args{URL: s.URL(), Name: redistest.Key(t), Other: i%2 == 1})
			for range testlevel.Rounds(1, 20) {
				f.Kill(trialWork)
				f.Stall(trialPeriod)
			}
			machine.oneInEachPeriod(t, f.Judge())
		})
	}
}

// machine knows when the machine stood still.
type machine struct {
	mu     sync.Mutex // guards stalls
	stalls []int64    // when they ended, in nanoseconds since 1970
}

// watch looks until the end of the test how much too late this process wakes up.
func watch(t *testing.T) *machine {
	t.Helper()
	// Periods are one second longer than a run and a lease, which is time for a few stalls that are shorter.
	const nap, stall = 10 * time.Millisecond, 300 * time.Millisecond
	m := &machine{}
	var done sync.WaitGroup
	t.Cleanup(done.Wait) // t.Context ends before
	done.Go(func() {
		tick := time.NewTicker(nap)
		defer tick.Stop()
		for last := time.Now(); t.Context().Err() == nil; last = time.Now() {
			<-tick.C
			if time.Since(last)-nap > stall {
				m.mu.Lock()
				m.stalls = append(m.stalls, time.Now().UnixNano())
				m.mu.Unlock()
			}
		}
	})
	return m
}

// stoodStill reports whether a stall ended between two times.
func (m *machine) stoodStill(from, to int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.stalls, func(at int64) bool { return from <= at && at <= to })
}

// oneInEachPeriod holds that no period had two runs, and that each had one unless the machine stood
// still since the run before, or since a lease before that.
func (m *machine) oneInEachPeriod(t *testing.T, all []trials.Run) {
	t.Helper()
	period := func(r trials.Run) int64 { return (r.First + int64(trialPeriod)/2) / int64(trialPeriod) }
	for i := 1; i < len(all); i++ {
		last, next := all[i-1], all[i]
		require.Less(t, period(last), period(next), "a period has two runs")
		if period(last)+1 == period(next) {
			continue
		}
		require.True(t, m.stoodStill(last.First-int64(trialLease), next.First), "%d periods have no run", period(next)-period(last)-1)
		t.Logf("%d periods have no run, for the machine stood still", period(next)-period(last)-1)
	}
}
