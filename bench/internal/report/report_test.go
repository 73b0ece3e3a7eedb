package report_test

import (
	"flag"
	"os"
	"path/filepath"
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
		ID: "x", Title: "Work", Level: "goroutines", Levels: []int{1, 8}, Log: true,
		Places: []host.Placement{host.Apart, host.Free},
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
				s := run.Sample{Case: "x", Place: host.Apart, Level: level, Round: round + 1, Entrant: e.Label}
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
	tables := report.Tables(made(), entrants(), samples())
	require.Len(t, tables, 1, "a placement without samples has no table")
	golden(t, "table.md", tables[0].String())
}

func TestReportWritesTablesFiguresAndPlots(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "new", "folder")
	env := report.Environment{Revision: "abc", Go: "go1", System: "any", Processors: 2, Server: "7", Java: "none", Rounds: 3, Scale: 0.5}
	require.NoError(t, report.Write(folder, env, []run.Case{made()}, entrants(), samples()))
	for name, parts := range map[string][]string{
		"results.json": {`"entrant": "redlatch"`},
		"tables.md":    {"3 rounds of 0.5 times the usual length, Redisson: none.*", "![Work](x-apart.svg)"},
		"x-apart.svg":  {"</svg>"},
	} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		for _, part := range parts {
			assert.Contains(t, string(content), part)
		}
	}
	assert.NoFileExists(t, filepath.Join(folder, "x-free.svg"))
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
