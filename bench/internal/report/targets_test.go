package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/report"
	"github.com/redlatch/redlatch/bench/internal/run"
	"github.com/redlatch/redlatch/bench/internal/work"
)

func TestTargetsAreComparedPairByPairAndOnlyWhereTheyWereMeasured(t *testing.T) {
	t.Parallel()
	all := append(entrants(), run.Entrant{Label: "raw-pipelined", Contestant: contest.Contestant{Role: contest.Limit}})
	var measured []run.Sample
	add := func(id string, place host.Placement, level, round int, who string, v work.Values) {
		measured = append(measured, run.Sample{Case: id, Place: place, Level: level, Round: round, Entrant: who, Values: v})
	}
	for round, speed := range []float64{1, 0.5, 1.1} {
		for who, rate := range map[string]float64{
			"redlatch": 2500, "fast-peer": 1000, "slow-peer": 500, "redisson": 5000, "raw-pipelined": 2600,
		} {
			add("a", host.Apart, 64, round+1, who, work.Values{work.Rate: rate * speed, work.Allocs: 3.004})
			add("a", host.Free, 64, round+1, who, work.Values{work.Rate: rate * speed})
		}
		add("c", host.Apart, 16, round+1, "redlatch", work.Values{run.Least: 7.9})
	}
	got := report.Targets(all, measured)
	require.Equal(t, []string{"case", "figure", "target", "median", "95 %", "met"}, got.Head)
	require.Equal(t, [][]string{
		{"a 64", "pairs/s ÷ best Go peer", "≥ 1.6", "2.50", "2.50–2.50", "yes"},
		{"a 64", "pairs/s ÷ raw, pipelined", "≥ 0.95", "0.96", "0.96–0.96", "yes"},
		{"a 64", "pairs/s ÷ Redisson", "≥ 7", "0.50", "0.50–0.50", "no"},
		{"a 64, unpinned", "pairs/s ÷ best Go peer", "≥ 1.4", "2.50", "2.50–2.50", "yes"},
		{"a 64, unpinned", "pairs/s ÷ raw, pipelined", "≥ 0.95", "0.96", "0.96–0.96", "yes"},
		{"a 64", "allocations of a pair", "≤ 3", "3.00", "3.00–3.00", "yes"},
		{"c 16", "least of a process, %", "≥ 8", "7.90", "7.90–7.90", "no"},
	}, got.Rows)
	require.Empty(t, report.Targets(all, samples()).Rows, "other work")

	runs := report.Missed(all, [][]run.Sample{measured, measured[:len(measured)-1], measured})
	require.Regexp(t, `^Of \d\d targets, 5 are met in all of 3 runs$`, runs.Title)
	require.Contains(t, runs.Rows, []string{"a 64", "pairs/s ÷ Redisson", "≥ 7", "**0.50**, **0.50**, **0.50**"})
	require.Contains(t, runs.Rows, []string{"a 8", "pairs/s ÷ best Go peer", "≥ 1.1", "–, –, –"})
	require.NotContains(t, runs.Rows, []string{"a 64", "allocations of a pair", "≤ 3", "3.00, 3.00, 3.00"})
}

func TestARunInWhichRedlatchWasNotMeasuredFails(t *testing.T) {
	t.Parallel()
	some := []run.Sample{
		{Case: "f", Level: 100, Entrant: "fast-peer", Round: 1, Error: "it gave up"},
		{Case: "c", Level: 16, Entrant: "redlatch", Round: 2},
	}
	require.NoError(t, report.Failures(entrants(), some))
	some[1].Error = "no such lock"
	require.EqualError(t, report.Failures(entrants(), some), "c 16, redlatch, round 2: no such lock")
}

func TestASummaryHasTheMedianOfTheRunsAndHowOthersCompareInEach(t *testing.T) {
	t.Parallel()
	measured := func(own, fast float64) []run.Sample {
		var all []run.Sample
		for who, rate := range map[string]float64{"redlatch": own, "fast-peer": fast, "slow-peer": 500, "redisson": 5000} {
			all = append(all, run.Sample{
				Case: "a", Place: host.Apart, Level: 64, Round: 1, Entrant: who, Values: work.Values{work.Rate: rate},
			})
		}
		heap := work.Values{work.Heap: 2000, run.RequestRate: 1}
		return append(all,
			run.Sample{Case: "e", Place: host.Apart, Level: 1000, Round: 1, Entrant: "redlatch", Values: heap},
			run.Sample{Case: "e", Place: host.Apart, Level: 1000, Round: 1, Entrant: "redisson", Values: heap})
	}
	got := report.Summary(entrants(), [][]run.Sample{measured(2500, 1000), measured(2000, 1000), measured(3000, 3000)})
	require.Equal(t, []string{"work", "Redlatch", "best Go peer", "Redisson"}, got.Head)
	require.Equal(t, [][]string{
		{"the same, 64 goroutines", "2500", "fast-peer 1000 (2.50, 2.00, 1.00)", "redisson 5000 (0.50, 0.40, 0.60)"},
		{"1,000 waiters for one lock: commands/s", "1.00", "–", "redisson 1.00 (1.00, 1.00, 1.00)"},
		{"heap bytes of a waiter", "2000", "–", "–"},
	}, got.Rows)
}
