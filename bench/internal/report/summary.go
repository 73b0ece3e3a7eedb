package report

import (
	"slices"
	"strings"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/run"
	"github.com/redlatch/redlatch/bench/internal/stats"
	"github.com/redlatch/redlatch/bench/internal/work"
)

// line is what a row of the summary has.
type line struct {
	title string
	of    figure
}

// lines are the rows of the summary, in the order of their cases.
var lines = slices.Concat(lonely(), shared(), still(), others())

func lonely() []line {
	pairs := func(place host.Placement, level int) figure { return at("a", place, level, work.Rate) }
	return []line{
		{"lock and unlock, 1 goroutine: pairs/s", pairs(host.Apart, 1)},
		{"the same, 8 goroutines", pairs(host.Apart, 8)},
		{"the same, 64 goroutines", pairs(host.Apart, 64)},
		{"the same, 512 goroutines", pairs(host.Apart, 512)},
		{"unpinned, 1 goroutine", pairs(host.Free, 1)},
		{"unpinned, 8 goroutines", pairs(host.Free, 8)},
		{"unpinned, 64 goroutines", pairs(host.Free, 64)},
		{"unpinned, 512 goroutines", pairs(host.Free, 512)},
		{"0.2 ms away, 1 goroutine", at("j-200", host.Apart, 1, work.Rate)},
		{"0.2 ms away, 4 goroutines", at("j-200", host.Apart, 4, work.Rate)},
		{"0.5 ms away, 1 goroutine", at("j-500", host.Apart, 1, work.Rate)},
		{"the same with `UnlockAsync`", at("j-500", host.Apart, 1, work.Rate).against("redlatch-async")},
		{"one server, 512 goroutines, unpinned", at("m", host.Free, 512, work.Rate)},
		{"the same on a cluster of three masters", at("m", host.Free, 512, work.Rate).against("redlatch-cluster")},
	}
}

func shared() []line {
	key := func(level int, name string) figure { return at("b", host.Apart, level, name) }
	many := func(name string) figure { return at("c", host.Apart, 16, name) }
	return []line{
		{"one key, 128 goroutines: acquisitions/s", key(128, work.Rate)},
		{"p99 of the wait, µs", key(128, work.P99)},
		{"one key, 1,000 goroutines: acquisitions/s", key(1000, work.Rate)},
		{"p99 of the wait, µs", key(1000, work.P99)},
		{"one key, 8 processes of 16: acquisitions/s", many(work.Rate)},
		{"requests of an acquisition", many(run.Requests)},
		{"longest wait, µs", many(work.Longest)},
		{"two processes beside two JVMs: turns, %", at("c-mixed", host.Apart, 16, run.Ours)},
		{"wake-up from the unlock's call, p50, µs", at("d", host.Apart, 1, work.Whole)},
		{"unpinned", at("d", host.Free, 1, work.Whole)},
	}
}

func still() []line {
	waiting := func(name string) figure { return at("e", host.Apart, 1000, name) }
	held := func(name string) figure { return at("f", host.Apart, 100000, name) }
	million := func(name string) figure { return at("f-million", host.Apart, 1000000, name) }
	return []line{
		{"1,000 waiters for one lock: commands/s", waiting(run.RequestRate)},
		{"connections", waiting(work.Connections)},
		{"heap bytes of a waiter", waiting(work.Heap)},
		{"100,000 locks held: commands/s", held(run.RequestRate)},
		{"latest renewal, of 30 s", held(work.Oldest)},
		{"a million locks held: commands/s", million(run.RequestRate)},
		{"latest renewal, of 30 s", million(work.Oldest)},
		{"heap bytes of a lock", million(work.Heap)},
	}
}

func others() []line {
	rate := func(id string, level int) figure { return at(id, host.Apart, level, work.Rate) }
	return []line{
		{"fair lock, 10 queued: acquisitions/s", rate("g", 10)},
		{"100 queued", rate("g", 100)},
		{"1,000 queued", rate("g", 1000)},
		{"read/write lock, 1 reader: acquisitions/s", rate("h", 1)},
		{"8 readers", rate("h", 8)},
		{"64 readers", rate("h", 64)},
		{"512 readers", rate("h", 512)},
		{"64 goroutines, nine of ten read", rate("i", 64)},
		{"p99 of their wait, µs", at("i", host.Apart, 64, work.P99)},
		{"eight permits with ids, 1 goroutine: acquisitions/s", rate("k", 1)},
		{"8 goroutines", rate("k", 8)},
		{"64 goroutines", rate("k", 64)},
		{"a counter of eight permits, 1 goroutine: acquisitions/s", rate("l", 1)},
		{"8 goroutines", rate("l", 8)},
		{"64 goroutines", rate("l", 64)},
	}
}

// Summary returns a table of what users ask about first. A cell has the median of the runs' medians, and
// for others in brackets how many times as much Redlatch has, the paired median of each run. The best Go
// peer is the one that is best by the first figure of the case.
func Summary(entrants []run.Entrant, runs [][]run.Sample) Table {
	table := Table{Title: "Summary", Head: []string{"work", "Redlatch", bestPeer, "Redisson"}}
	for _, l := range lines {
		own := l.of.median(entrants, runs)
		if own == none {
			continue
		}
		row := []string{l.title, own}
		for _, r := range rivals[:2] {
			row = append(row, l.rival(entrants, runs, r.is))
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// rival returns the cell of the best of those that is picks.
func (l line) rival(entrants []run.Entrant, runs [][]run.Sample, is func(contest.Contestant) bool) string {
	here := slices.DeleteFunc(slices.Concat(runs...), func(s run.Sample) bool {
		return s.Case != l.of.work || s.Place != l.of.place
	})
	i := slices.IndexFunc(run.Cases(), func(c run.Case) bool { return c.ID == l.of.work })
	who := group(entrants, here, l.of.level).best(run.Cases()[i].Figures[0], is)
	if who == "" {
		return none
	}
	with := l.of.against(who)
	if l.of.name == work.Heap && strings.HasPrefix(who, "redisson") {
		return none // a JVM's heap has what its garbage collector leaves for later
	}
	median := with.median(entrants, runs)
	if median == none {
		return none
	}
	var ratios []string
	for _, samples := range runs {
		ratios = append(ratios, Ratio(stats.Paired(l.of.values(entrants, samples), with.values(entrants, samples)).Median))
	}
	return who + " " + median + " (" + strings.Join(ratios, ", ") + ")"
}

// median returns the median of the runs' medians.
func (f figure) median(entrants []run.Entrant, runs [][]run.Sample) string {
	var medians []float64
	for _, samples := range runs {
		medians = append(medians, stats.Median(f.values(entrants, samples)))
	}
	return Number(stats.Median(medians))
}
