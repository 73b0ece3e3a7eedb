package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/run"
	"github.com/redlatch/redlatch/bench/internal/stats"
	"github.com/redlatch/redlatch/bench/internal/work"
)

// rows are the rows of the summary. Redlatch's contestant is the first of the case, unless who names
// another.
var rows = []struct {
	title, id string
	level     int
	figure    string
	who       string
}{
	{"lock and unlock, 1 goroutine: pairs/s", "a", 1, work.Rate, ""},
	{"the same, 8 goroutines", "a", 8, work.Rate, ""},
	{"the same, 64 goroutines", "a", 64, work.Rate, ""},
	{"the same, 512 goroutines", "a", 512, work.Rate, ""},
	{"unpinned, 1 goroutine", "a-unpinned", 1, work.Rate, ""},
	{"unpinned, 64 goroutines", "a-unpinned", 64, work.Rate, ""},
	{"round trip + 0.2 ms, 4 goroutines", "j-200", 4, work.Rate, ""},
	{"round trip + 0.5 ms, 1 goroutine", "j-500", 1, work.Rate, ""},
	{"the same with `UnlockAsync`", "j-500", 1, work.Rate, "redlatch-async"},
	{"one key, 128 goroutines: acquisitions/s", "b", 128, work.Rate, ""},
	{"p99 of the wait, µs", "b", 128, work.P99, ""},
	{"one key, 8 processes of 16: acquisitions/s", "c", 16, work.Rate, ""},
	{"requests per acquisition", "c", 16, run.Requests, ""},
	{"longest wait, µs", "c", 16, work.Longest, ""},
	{"two processes and two JVMs: Redlatch's share of acquisitions, %", "c-mixed", 16, run.Ours, ""},
	{"hand-over from calling unlock, p50, µs", "d", 1, work.Whole, ""},
	{"1,000 waiters for one lock: commands/s", "e", 1000, run.RequestRate, ""},
	{"heap bytes per waiter", "e", 1000, work.Heap, ""},
	{"100,000 locks held: commands/s", "f", 100000, run.RequestRate, ""},
	{"longest time between renewals of a 30 s lease, s", "f", 100000, work.Oldest, ""},
	{"a million locks held: commands/s", "f-million", 1000000, run.RequestRate, ""},
	{"longest time between renewals of a 30 s lease, s", "f-million", 1000000, work.Oldest, ""},
	{"heap bytes per lock", "f-million", 1000000, work.Heap, ""},
	{"fair lock, 10 queued: acquisitions/s", "g", 10, work.Rate, ""},
	{"100 queued", "g", 100, work.Rate, ""},
	{"1,000 queued", "g", 1000, work.Rate, ""},
	{"read/write lock, 8 readers: acquisitions/s", "h", 8, work.Rate, ""},
	{"64 readers", "h", 64, work.Rate, ""},
	{"64 goroutines, 90% reads", "i", 64, work.Rate, ""},
	{"p99 of the wait, µs", "i", 64, work.P99, ""},
	{"eight permits with IDs, 8 goroutines: acquisitions/s", "k", 8, work.Rate, ""},
	{"64 goroutines", "k", 64, work.Rate, ""},
	{"a counter of eight permits, 8 goroutines: acquisitions/s", "l", 8, work.Rate, ""},
	{"64 goroutines", "l", 64, work.Rate, ""},
}

// Summary returns the table of docs/performance.md, with the rows that were measured. A cell has the
// median of the runs' medians and, for rivals, Redlatch's ratio in each run.
func Summary(cases []run.Case, entrants []run.Entrant, samples []run.Sample) string {
	var b strings.Builder
	b.WriteString("| work | Redlatch | best Go peer | Redisson |\n|---|---:|---:|---:|\n")
	for _, r := range rows {
		i := slices.IndexFunc(cases, func(c run.Case) bool { return c.ID == r.id })
		if i < 0 {
			continue
		}
		c := cases[i]
		all := group(entrants, of(c, samples), r.level)
		own := slices.IndexFunc(entrants, func(e run.Entrant) bool {
			return e.Contestant.Role == contest.Own && len(all.samples[e.Label]) > 0 && (r.who == "" || r.who == e.Label)
		})
		if own < 0 {
			continue
		}
		who := entrants[own].Label
		fmt.Fprintf(&b, "| %s | %s ", r.title, Number(all.median(who, r.figure)))
		for _, rival := range rivals[:2] {
			b.WriteString("| " + all.against(all.best(c.Figures[0], rival.is), who, r.figure) + " ")
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// runs returns the samples of each run.
func (g grouped) runs() (all []grouped) {
	for n := 1; ; n++ {
		one := grouped{entrants: g.entrants, samples: map[string][]run.Sample{}}
		for label, samples := range g.samples {
			for _, s := range samples {
				if s.Run == n {
					one.samples[label] = append(one.samples[label], s)
				}
			}
		}
		if len(one.samples) == 0 {
			return all
		}
		all = append(all, one)
	}
}

// median returns the median of the runs' medians.
func (g grouped) median(label, figure string) float64 {
	var medians []float64
	for _, one := range g.runs() {
		medians = append(medians, stats.Median(one.values(label, figure)))
	}
	return stats.Median(medians)
}

func (g grouped) against(rival, who, figure string) string {
	number := Number(g.median(rival, figure))
	if number == none {
		return none
	}
	var ratios []string
	for _, one := range g.runs() {
		ratios = append(ratios, Ratio(stats.Paired(one.values(who, figure), one.values(rival, figure)).Median))
	}
	return fmt.Sprintf("%s %s (%s)", rival, number, strings.Join(ratios, ", "))
}
