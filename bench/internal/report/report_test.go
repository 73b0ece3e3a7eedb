package report_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/report"
	"github.com/redlatch/redlatch/bench/internal/run"
	"github.com/redlatch/redlatch/bench/internal/work"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file, which `go test ./internal/report -update` writes.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

func entrants() []run.Entrant {
	return []run.Entrant{
		{Label: "redlatch", Contestant: contest.Contestant{Role: contest.Own}},
		{Label: "slow-peer", Contestant: contest.Contestant{Role: contest.Peer}},
		{Label: "fast-peer", Contestant: contest.Contestant{Role: contest.Peer}},
		{Label: "redisson", Contestant: contest.Contestant{Role: contest.Peer, Java: true}},
		{Label: "raw", Contestant: contest.Contestant{Role: contest.Limit}},
	}
}

func made() run.Case {
	return run.Case{
		ID: "x", Title: "Work", Level: "goroutines", Levels: []int{1, 8}, Place: host.Apart, Plot: true,
		Figures: []run.Figure{
			{Name: work.Rate, Title: "per second", More: true},
			{Name: work.P50, Title: "p50 µs"},
			{Name: "never", Title: "never measured"},
		},
	}
}

// samples returns the samples of three rounds. The second round runs at half speed. At one size,
// the JVM is the best peer, and it fails in one round.
func samples() []run.Sample {
	var all []run.Sample
	rates := map[string]float64{"redlatch": 3000, "slow-peer": 500, "fast-peer": 1500, "redisson": 2500, "raw": 3300}
	for _, level := range []int{1, 8} {
		for round, speed := range []float64{1, 0.5, 1.02} {
			for _, e := range entrants() {
				if e.Label == "redisson" && level == 8 {
					continue
				}
				rate := rates[e.Label] * speed * float64(level)
				s := run.Sample{Run: 1, Case: "x", Level: level, Round: round + 1, Entrant: e.Label}
				if e.Label == "redisson" && round == 2 {
					s.Error = "it did not answer"
				} else {
					s.Values = work.Values{work.Rate: rate, work.P50: 1e6 / rate}
				}
				all = append(all, s)
			}
		}
	}
	return all
}

func TestTablesMatchGoldenFiles(t *testing.T) {
	t.Parallel()
	golden(t, "table.md", report.CaseTable(made(), entrants(), samples()).String())
	other := made()
	other.ID = "y"
	require.Empty(t, report.CaseTable(other, entrants(), samples()).Rows, "it was not measured")
}

func TestReportWritesTablesFiguresAndPlots(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "new", "folder")
	env := report.Environment{Revision: "abc", Go: "go1", System: "any", Processors: 2, Server: "7", Java: "none", Rounds: 3, Scale: 0.5}
	require.NoError(t, report.Write(folder, env, []run.Case{made()}, entrants(), samples()))
	for name, parts := range map[string][]string{
		"results.json": {`"entrant": "redlatch"`},
		"tables.md":    {"3 rounds of 0.5 times the usual length, Redisson: none.*", "![Work](x.svg)"},
		"x.svg":        {"</svg>"},
	} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		for _, part := range parts {
			assert.Contains(t, string(content), part)
		}
	}

	failed := samples()
	for i := range failed {
		failed[i].Values = nil
	}
	require.ErrorContains(t, report.Write(folder, env, []run.Case{made()}, entrants(), failed), "plot x: no client")
}

// The second run is at half speed, and the JVM failed in it.
func TestSummaryComparesWholeRuns(t *testing.T) {
	t.Parallel()
	who := append(entrants(), run.Entrant{Label: "redlatch-async", Contestant: contest.Contestant{Role: contest.Own}})
	rates := map[string]float64{"redlatch": 900, "redlatch-async": 1800, "slow-peer": 500, "fast-peer": 1000, "redisson": 300, "raw": 990}
	var all []run.Sample
	for id, figure := range map[string]string{"a": work.Rate, "j-500": work.Rate, "c-mixed": run.Ours, "f-million": work.Heap} {
		for n, speed := range map[int]float64{1: 1, 2: 0.5} {
			for round := range 3 {
				for label, rate := range rates {
					level := map[string]int{"a": 1, "j-500": 1, "c-mixed": 16, "f-million": 1_000_000}[id]
					s := run.Sample{Run: n, Case: id, Level: level, Round: round + 1, Entrant: label, Values: work.Values{
						figure: rate * speed * float64(1+round),
					}}
					switch {
					case label == "redisson" && n == 2:
						s.Values, s.Error = nil, "it did not answer"
					case label == "redlatch-async" && id != "j-500", label != "redlatch" && id == "c-mixed", label != "redlatch" && id == "f-million":
						continue
					}
					all = append(all, s)
				}
			}
		}
	}
	assert.Equal(t, `| work | Redlatch | best Go peer | Redisson |
|---|---:|---:|---:|
| lock and unlock, 1 goroutine: pairs/s | 1350 | fast-peer 1500 (0.90, 0.90) | redisson 600 (3.00, –) |
| round trip + 0.5 ms, 1 goroutine | 1350 | fast-peer 1500 (0.90, 0.90) | redisson 600 (3.00, –) |
| the same with `+"`UnlockAsync`"+` | 2700 | fast-peer 1500 (1.80, 1.80) | redisson 600 (6.00, –) |
| two processes and two JVMs: Redlatch's share of acquisitions, % | 1350 | – | – |
| a million locks held: commands/s | – | – | – |
| longest time between renewals of a 30 s lease, s | – | – | – |
| heap bytes per lock | 1350 | – | – |
`, report.Summary(run.Cases(), who, all))
	assert.NotContains(t, report.Summary(run.Cases()[1:], who, all), "1 goroutine: pairs/s", "a case that was not chosen")
}

// Every size of a case, except those that only the text quotes, has a row: others need not be measured.
func TestSummaryHasRowForEachMeasuredSize(t *testing.T) {
	t.Parallel()
	all := []run.Entrant{{Label: "redlatch", Contestant: contest.Contestant{Role: contest.Own}}}
	onlyInText := []string{"j-50 4", "j-500 4"}
	for _, c := range run.Cases() {
		for _, level := range c.Levels {
			values := work.Values{
				work.Rate: 1, run.Ours: 1, work.Whole: 1, run.RequestRate: 1,
			}
			rows := strings.Count(report.Summary([]run.Case{c}, all, []run.Sample{{
				Run: 1, Case: c.ID, Level: level, Entrant: "redlatch", Values: values,
			}}), "| 1.00 |")
			where := fmt.Sprint(c.ID, " ", level)
			assert.Equal(t, !slices.Contains(onlyInText, where), rows > 0, where)
		}
	}
}

func TestReportIncludesHostActivity(t *testing.T) {
	t.Parallel()
	all := samples()[:4]
	all[0].Stolen, all[1].Stolen = 0.01, 0.07
	all[1].Disturbed, all[1].Again, all[2].Again = true, 8, 3
	assert.Equal(t, "The machine's host used 2.0 % of the CPU time. Therefore "+
		"11 measurements were repeated; 1 of 4 are reported although they were disturbed.", report.Disturbances(all))
	assert.Contains(t, report.Disturbances(nil), "0 of 0")
}

func TestChangesNameFigureAndDirection(t *testing.T) {
	t.Parallel()
	var all []run.Sample
	for round, noise := range []float64{1, 1.02, 0.97, 1.03, 0.98} {
		for label, rate := range map[string]float64{"tree": 80, "base": 100} {
			v := work.Values{work.Rate: rate * noise, work.P50: rate, "same": noise}
			if label == "base" {
				v["same"] = 2 - noise
			}
			all = append(all, run.Sample{Level: 8, Round: round + 1, Entrant: label, Values: v})
		}
	}
	c := run.Case{Title: "one key", Levels: []int{8}, Figures: []run.Figure{
		{Name: work.Rate, Title: "per second", More: true},
		{Name: work.P50, Title: "p50 µs"},
		{Name: "same", Title: "same"},
	}}
	changes := report.Changes(c, "redlatch", all)
	require.Len(t, changes, 3)
	assert.True(t, changes[0].Worse(), "fewer per second")
	assert.True(t, changes[1].Better(), "a shorter wait")
	assert.False(t, changes[2].Better() || changes[2].Worse(), changes[2])
	golden(t, "changes.txt", report.ChangeTable(changes).String()+"\n"+report.Verdict(changes))

	require.NoError(t, report.Least(changes, 0.79))
	require.ErrorContains(t, report.Least(changes, 0.81), "redlatch, one key, 8: 0.80 of the base's rate; the minimum is 0.81")
	require.NoError(t, report.Least(nil, 0), "nothing is asked for")
	require.Error(t, report.Least(changes[1:], 0.5), "nothing was compared")

	all[0].Error = "gone"
	failed := report.Changes(c, "redlatch", all)
	assert.Contains(t, report.ChangeTable(failed).String(), "FAILED")
	require.Error(t, report.Least(failed, 0.5))
}

func TestReportWithoutRedlatchFails(t *testing.T) {
	t.Parallel()
	some := []run.Sample{
		{Case: "f", Level: 100, Entrant: "fast-peer", Round: 1, Error: "it gave up"},
		{Case: "c", Level: 16, Entrant: "redlatch", Round: 2},
	}
	require.NoError(t, report.Failures(entrants(), some))
	some[1].Error = "no such lock"
	require.EqualError(t, report.Failures(entrants(), some), "c 16, redlatch, round 2: no such lock")
}
