package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/run"
	"github.com/redlatch/redlatch/bench/internal/stats"
	"github.com/redlatch/redlatch/bench/internal/work"
)

// bestPeer stands for the Go peer with the best rate.
const bestPeer = "best Go peer"

// figure is a figure of one client at one kind of work.
type figure struct {
	work  string // ID of the case
	place host.Placement
	level int
	who   string // an entrant, or bestPeer
	name  string
}

// target is what a figure, or how it compares with another, shall be.
type target struct {
	what  string
	of    figure
	with  figure // nothing: the figure itself counts
	least bool   // bound is the least, else the most
	bound float64
}

// targets are what this project wants to reach: see docs/performance.md.
var targets = slices.Concat(
	uncontended(), contended(), processes(), waking(), resting(), queued(), reading(), distant(),
)

// at returns Redlatch's figure at some work, and against the same of another.
func at(id string, place host.Placement, level int, name string) figure {
	who := "redlatch"
	switch id {
	case "g":
		who = "redlatch-fair"
	case "h", "i":
		who = "redlatch-rw"
	case "k":
		who = "redlatch-permits"
	case "l":
		who = "redlatch-counter"
	}
	return figure{id, place, level, who, name}
}

func (f figure) against(who string) figure {
	f.who = who
	return f
}

func uncontended() []target {
	var all []target
	for _, place := range []host.Placement{host.Apart, host.Free} {
		f := at("a", place, 1, work.P50)
		all = append(all, target{"p50 of a pair ÷ two raw scripts", f, f.against("raw-one"), false, 1.1})
	}
	for _, t := range []struct {
		place          host.Placement
		level          int
		peer, redisson float64
	}{
		{host.Apart, 1, 1, 2}, {host.Apart, 8, 1.1, 4}, {host.Apart, 64, 1.6, 7}, {host.Apart, 512, 2.6, 15},
		{host.Free, 1, 1, 0}, {host.Free, 8, 1.1, 0}, {host.Free, 64, 1.4, 0}, {host.Free, 512, 1.7, 0},
	} {
		f := at("a", t.place, t.level, work.Rate)
		all = append(all, target{"pairs/s ÷ best Go peer", f, f.against(bestPeer), true, t.peer})
		if t.level > 1 {
			all = append(all, target{"pairs/s ÷ raw, pipelined", f, f.against("raw-pipelined"), true, 0.95})
		}
		if t.redisson > 0 {
			all = append(all, target{"pairs/s ÷ Redisson", f, f.against("redisson"), true, t.redisson})
		}
	}
	return append(all, target{"allocations of a pair", at("a", host.Apart, 64, work.Allocs), figure{}, false, 3})
}

func contended() []target {
	var all []target
	for _, level := range []int{16, 128, 1000} {
		rate, p99 := at("b", host.Apart, level, work.Rate), at("b", host.Apart, level, work.P99)
		all = append(all,
			target{"acquisitions/s ÷ pairs/s of one goroutine", rate, at("b", host.Apart, 1, work.Rate), true, 0.9},
			target{"requests of an acquisition", at("b", host.Apart, level, run.Requests), figure{}, false, 2.1},
			target{"p99 of the wait ÷ p50", p99, at("b", host.Apart, level, work.P50), false, 1.5})
	}
	rate, p99 := at("b", host.Apart, 1000, work.Rate), at("b", host.Apart, 1000, work.P99)
	return append(all,
		target{"acquisitions/s ÷ Redisson", rate, rate.against("redisson"), true, 1.3},
		target{"p99 of the wait ÷ Redisson", p99, p99.against("redisson"), false, 0.2})
}

func processes() []target {
	rate, ours := at("c", host.Apart, 16, work.Rate), at("c-mixed", host.Apart, 16, run.Ours)
	return []target{
		// Of the others that wait without asking it is the only one.
		{"hand-overs/s ÷ rueidislock", rate, rate.against("rueidislock"), true, 1.5},
		{"requests of an acquisition", at("c", host.Apart, 16, run.Requests), figure{}, false, 3},
		{"least of a process, %", at("c", host.Apart, 16, run.Least), figure{}, true, 8},
		{"most of a process, %", at("c", host.Apart, 16, run.Most), figure{}, false, 17},
		{"Redlatch's share, %", ours, figure{}, true, 30},
		{"Redlatch's share, %", ours, figure{}, false, 70},
	}
}

func waking() []target {
	var all []target
	for _, place := range []host.Placement{host.Apart, host.Free} {
		f, call := at("d", place, 1, work.P50), at("d", place, 1, work.Whole)
		all = append(all,
			target{"wake-up from the call, p50 ÷ rueidislock", call, call.against("rueidislock"), false, 1},
			target{"wake-up from the call, p50 ÷ Redisson", call, call.against("redisson"), false, 0.7},
			target{"wake-up, p50 ÷ Redisson", f, f.against("redisson"), false, 0.9})
	}
	return all
}

func resting() []target {
	return []target{
		{"connections", at("e", host.Apart, 1000, work.Connections), figure{}, false, 2},
		{"commands/s", at("e", host.Apart, 1000, run.RequestRate), figure{}, false, 1},
		{"heap bytes of a waiter", at("e", host.Apart, 1000, work.Heap), figure{}, false, 2048},
	}
}

func queued() []target {
	var all []target
	for _, t := range []struct {
		level int
		times float64
	}{{10, 2}, {100, 2}, {1000, 4}} {
		rate := at("g", host.Apart, t.level, work.Rate)
		all = append(all,
			target{"acquisitions/s ÷ Redisson", rate, rate.against("redisson-fair"), true, t.times},
			target{"requests of an acquisition", at("g", host.Apart, t.level, run.Requests), figure{}, false, 3.2})
	}
	return all
}

// reading wants of read/write locks what uncontended and contended want of plain ones.
func reading() []target {
	var all []target
	for _, t := range []struct {
		work  string
		level int
		times float64
	}{{"h", 1, 2}, {"h", 8, 4}, {"h", 64, 7}, {"h", 512, 15}, {"i", 8, 1.3}, {"i", 64, 1.3}} {
		rate := at(t.work, host.Apart, t.level, work.Rate)
		all = append(all, target{"acquisitions/s ÷ Redisson", rate, rate.against("redisson-rw"), true, t.times})
	}
	p99 := at("i", host.Apart, 64, work.P99)
	return append(all, target{"p99 of the wait ÷ Redisson", p99, p99.against("redisson-rw"), false, 0.2})
}

// distant wants of UnlockAsync that a pair costs little more than one round trip, where that is
// what a pair costs.
func distant() []target {
	rate := at("j-500", host.Apart, 1, work.Rate)
	return []target{{"pairs/s with UnlockAsync ÷ Unlock", rate.against("redlatch-async"), rate, true, 1.7}}
}

// Targets returns a table of the targets whose figures were measured, and whether
// they are met: by the median of the rounds, as it is printed.
func Targets(entrants []run.Entrant, samples []run.Sample) Table {
	table := Table{Title: "Targets", Head: []string{"case", "figure", "target", "median", "95 %", "met"}}
	for _, t := range targets {
		r := t.reached(entrants, samples)
		if r.Rounds == 0 {
			continue
		}
		met := "yes"
		if !t.met(r) {
			met = "no"
		}
		table.Rows = append(table.Rows, append(t.named(), Ratio(r.Median), Interval(r), met))
	}
	return table
}

// Missed returns a table of the targets that one of some runs did not meet: the medians of all,
// bold where it is not met. How many are met stands in its title.
func Missed(entrants []run.Entrant, runs [][]run.Sample) Table {
	table := Table{Head: []string{"case", "figure", "target", "median of each run"}}
	reached := 0
	for _, t := range targets {
		var medians []string
		missed := false
		for _, samples := range runs {
			r := t.reached(entrants, samples)
			switch {
			case r.Rounds == 0:
				medians = append(medians, none)
				missed = true
			case t.met(r):
				medians = append(medians, Ratio(r.Median))
			default:
				medians = append(medians, "**"+Ratio(r.Median)+"**")
				missed = true
			}
		}
		if !missed {
			reached++
			continue
		}
		table.Rows = append(table.Rows, append(t.named(), strings.Join(medians, ", ")))
	}
	table.Title = fmt.Sprintf("Of %d targets, %d are met in all of %d runs", len(targets), reached, len(runs))
	return table
}

// named returns the cells that say what a target is.
func (t target) named() []string {
	sign, place := "≤", strconv.Itoa(t.of.level)
	if t.least {
		sign = "≥"
	}
	if t.of.place != host.Apart {
		place += ", unpinned"
	}
	return []string{t.of.work + " " + place, t.what, sign + " " + strconv.FormatFloat(t.bound, 'g', -1, 64)}
}

// met reports whether what was measured is as it shall be, by the median as it is printed.
func (t target) met(r stats.Ratio) bool {
	rounded := math.Round(100*r.Median) / 100
	if t.least {
		return rounded >= t.bound
	}
	return rounded <= t.bound
}

// reached returns what was measured. Of a figure that stands for itself the interval
// is that of its median.
func (t target) reached(entrants []run.Entrant, samples []run.Sample) stats.Ratio {
	of := t.of.values(entrants, samples)
	if t.with == (figure{}) {
		ones := make([]float64, len(of))
		for i := range ones {
			ones[i] = 1
		}
		return stats.Paired(of, ones)
	}
	return stats.Paired(of, t.with.values(entrants, samples))
}

// values returns the figure round by round.
func (f figure) values(entrants []run.Entrant, samples []run.Sample) []float64 {
	here := slices.DeleteFunc(slices.Clone(samples), func(s run.Sample) bool { return s.Case != f.work || s.Place != f.place })
	g := group(entrants, here, f.level)
	who := f.who
	if who == bestPeer {
		who = g.best(run.Figure{Name: f.name, More: true}, goPeer)
	}
	return g.values(who, f.name)
}
