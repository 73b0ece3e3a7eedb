package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/run"
	"github.com/redlatch/redlatch/bench/internal/stats"
	"github.com/redlatch/redlatch/bench/internal/work"
)

// Clients of targets: Redlatch's plain lock, and the Go peer with the best rate.
const (
	own      = "redlatch"
	bestPeer = "best Go peer"
)

// Signs of targets.
const (
	atLeast = "≥"
	atMost  = "≤"
)

const apart, free = host.Apart, host.Free

// target is a bound on a figure, or on the ratio of two figures.
type target struct {
	work  string // ID of the case
	place host.Placement
	level int
	who   string // an entrant
	name  string
	over  over // zero: the bound is on the figure itself
	sign  string
	bound float64
	what  string
}

// over is the other figure of a ratio. Its zero fields are those of the first.
type over struct {
	level int
	who   string // an entrant or bestPeer
	name  string
}

// targets are this project's goals: see docs/performance.md.
var targets = []target{
	{"a", apart, 1, own, work.P50, over{who: "raw-one"}, atMost, 1.1, "p50 of a pair ÷ two raw scripts"},
	{"a", free, 1, own, work.P50, over{who: "raw-one"}, atMost, 1.1, "p50 of a pair ÷ two raw scripts"},
	{"a", apart, 1, own, work.Rate, over{who: bestPeer}, atLeast, 1, "pairs/s ÷ best Go peer"},
	{"a", apart, 1, own, work.Rate, over{who: "redisson"}, atLeast, 2, "pairs/s ÷ Redisson"},
	{"a", apart, 8, own, work.Rate, over{who: bestPeer}, atLeast, 1.1, "pairs/s ÷ best Go peer"},
	{"a", apart, 8, own, work.Rate, over{who: "raw-pipelined"}, atLeast, 0.95, "pairs/s ÷ raw, pipelined"},
	{"a", apart, 8, own, work.Rate, over{who: "redisson"}, atLeast, 4, "pairs/s ÷ Redisson"},
	{"a", apart, 64, own, work.Rate, over{who: bestPeer}, atLeast, 1.6, "pairs/s ÷ best Go peer"},
	{"a", apart, 64, own, work.Rate, over{who: "raw-pipelined"}, atLeast, 0.95, "pairs/s ÷ raw, pipelined"},
	{"a", apart, 64, own, work.Rate, over{who: "redisson"}, atLeast, 7, "pairs/s ÷ Redisson"},
	{"a", apart, 512, own, work.Rate, over{who: bestPeer}, atLeast, 2.6, "pairs/s ÷ best Go peer"},
	{"a", apart, 512, own, work.Rate, over{who: "raw-pipelined"}, atLeast, 0.95, "pairs/s ÷ raw, pipelined"},
	{"a", apart, 512, own, work.Rate, over{who: "redisson"}, atLeast, 15, "pairs/s ÷ Redisson"},
	{"a", free, 1, own, work.Rate, over{who: bestPeer}, atLeast, 1, "pairs/s ÷ best Go peer"},
	{"a", free, 8, own, work.Rate, over{who: bestPeer}, atLeast, 1.1, "pairs/s ÷ best Go peer"},
	{"a", free, 8, own, work.Rate, over{who: "raw-pipelined"}, atLeast, 0.95, "pairs/s ÷ raw, pipelined"},
	{"a", free, 64, own, work.Rate, over{who: bestPeer}, atLeast, 1.4, "pairs/s ÷ best Go peer"},
	{"a", free, 64, own, work.Rate, over{who: "raw-pipelined"}, atLeast, 0.95, "pairs/s ÷ raw, pipelined"},
	{"a", free, 512, own, work.Rate, over{who: bestPeer}, atLeast, 1.7, "pairs/s ÷ best Go peer"},
	{"a", free, 512, own, work.Rate, over{who: "raw-pipelined"}, atLeast, 0.95, "pairs/s ÷ raw, pipelined"},
	{"a", apart, 64, own, work.Allocs, over{}, atMost, 3, "allocations of a pair"},
	{"b", apart, 16, own, work.Rate, over{level: 1}, atLeast, 0.9, "acquisitions/s ÷ pairs/s of one goroutine"},
	{"b", apart, 16, own, run.Requests, over{}, atMost, 2.1, "requests of an acquisition"},
	{"b", apart, 16, own, work.P99, over{name: work.P50}, atMost, 1.5, "p99 of the wait ÷ p50"},
	{"b", apart, 128, own, work.Rate, over{level: 1}, atLeast, 0.9, "acquisitions/s ÷ pairs/s of one goroutine"},
	{"b", apart, 128, own, run.Requests, over{}, atMost, 2.1, "requests of an acquisition"},
	{"b", apart, 128, own, work.P99, over{name: work.P50}, atMost, 1.5, "p99 of the wait ÷ p50"},
	{"b", apart, 1000, own, work.Rate, over{level: 1}, atLeast, 0.9, "acquisitions/s ÷ pairs/s of one goroutine"},
	{"b", apart, 1000, own, run.Requests, over{}, atMost, 2.1, "requests of an acquisition"},
	{"b", apart, 1000, own, work.P99, over{name: work.P50}, atMost, 1.5, "p99 of the wait ÷ p50"},
	{"b", apart, 1000, own, work.Rate, over{who: "redisson"}, atLeast, 1.3, "acquisitions/s ÷ Redisson"},
	{"b", apart, 1000, own, work.P99, over{who: "redisson"}, atMost, 0.2, "p99 of the wait ÷ Redisson"},
	// Of the peers that wait without polling, rueidislock is the only one.
	{"c", apart, 16, own, work.Rate, over{who: "rueidislock"}, atLeast, 1.5, "hand-overs/s ÷ rueidislock"},
	{"c", apart, 16, own, run.Requests, over{}, atMost, 3, "requests of an acquisition"},
	{"c", apart, 16, own, run.Least, over{}, atLeast, 8, "least of a process, %"},
	{"c", apart, 16, own, run.Most, over{}, atMost, 17, "most of a process, %"},
	{"c-mixed", apart, 16, own, run.Ours, over{}, atLeast, 30, "Redlatch's share, %"},
	{"c-mixed", apart, 16, own, run.Ours, over{}, atMost, 70, "Redlatch's share, %"},
	{"d", apart, 1, own, work.Whole, over{who: "rueidislock"}, atMost, 1, "wake-up from the call, p50 ÷ rueidislock"},
	{"d", apart, 1, own, work.Whole, over{who: "redisson"}, atMost, 0.7, "wake-up from the call, p50 ÷ Redisson"},
	{"d", apart, 1, own, work.P50, over{who: "redisson"}, atMost, 0.9, "wake-up, p50 ÷ Redisson"},
	{"d", free, 1, own, work.Whole, over{who: "rueidislock"}, atMost, 1, "wake-up from the call, p50 ÷ rueidislock"},
	{"d", free, 1, own, work.Whole, over{who: "redisson"}, atMost, 0.7, "wake-up from the call, p50 ÷ Redisson"},
	{"d", free, 1, own, work.P50, over{who: "redisson"}, atMost, 0.9, "wake-up, p50 ÷ Redisson"},
	{"e", apart, 1000, own, work.Connections, over{}, atMost, 2, "connections"},
	{"e", apart, 1000, own, run.RequestRate, over{}, atMost, 1, "commands/s"},
	{"e", apart, 1000, own, work.Heap, over{}, atMost, 2048, "heap bytes of a waiter"},
	{"g", apart, 10, "redlatch-fair", work.Rate, over{who: "redisson-fair"}, atLeast, 2, "acquisitions/s ÷ Redisson"},
	{"g", apart, 10, "redlatch-fair", run.Requests, over{}, atMost, 3.2, "requests of an acquisition"},
	{"g", apart, 100, "redlatch-fair", work.Rate, over{who: "redisson-fair"}, atLeast, 2, "acquisitions/s ÷ Redisson"},
	{"g", apart, 100, "redlatch-fair", run.Requests, over{}, atMost, 3.2, "requests of an acquisition"},
	{"g", apart, 1000, "redlatch-fair", work.Rate, over{who: "redisson-fair"}, atLeast, 4, "acquisitions/s ÷ Redisson"},
	{"g", apart, 1000, "redlatch-fair", run.Requests, over{}, atMost, 3.2, "requests of an acquisition"},
	// Read/write locks have the targets of plain locks.
	{"h", apart, 1, "redlatch-rw", work.Rate, over{who: "redisson-rw"}, atLeast, 2, "acquisitions/s ÷ Redisson"},
	{"h", apart, 8, "redlatch-rw", work.Rate, over{who: "redisson-rw"}, atLeast, 4, "acquisitions/s ÷ Redisson"},
	{"h", apart, 64, "redlatch-rw", work.Rate, over{who: "redisson-rw"}, atLeast, 7, "acquisitions/s ÷ Redisson"},
	{"h", apart, 512, "redlatch-rw", work.Rate, over{who: "redisson-rw"}, atLeast, 15, "acquisitions/s ÷ Redisson"},
	{"i", apart, 8, "redlatch-rw", work.Rate, over{who: "redisson-rw"}, atLeast, 1.3, "acquisitions/s ÷ Redisson"},
	{"i", apart, 64, "redlatch-rw", work.Rate, over{who: "redisson-rw"}, atLeast, 1.3, "acquisitions/s ÷ Redisson"},
	{"i", apart, 64, "redlatch-rw", work.P99, over{who: "redisson-rw"}, atMost, 0.2, "p99 of the wait ÷ Redisson"},
	// UnlockAsync makes a pair cost little more than one round trip.
	{"j-500", apart, 1, "redlatch-async", work.Rate, over{who: own}, atLeast, 1.7, "pairs/s with UnlockAsync ÷ Unlock"},
}

// Targets returns a table of the targets whose figures were measured, and whether they are met. The
// median of the rounds decides, as it is printed.
func Targets(entrants []run.Entrant, samples []run.Sample) Table {
	table := Table{Title: "Targets", Head: []string{"case", "figure", "target", "median", "95 %", "met"}}
	for _, t := range targets {
		r := t.ratio(entrants, samples)
		if r.Rounds == 0 {
			continue
		}
		met := "no"
		if median := math.Round(100*r.Median) / 100; median == t.bound || (median > t.bound) == (t.sign == atLeast) {
			met = "yes"
		}
		place := strconv.Itoa(t.level)
		if t.place != apart {
			place += ", unpinned"
		}
		table.Rows = append(table.Rows, []string{
			t.work + " " + place, t.what, t.sign + " " + strconv.FormatFloat(t.bound, 'g', -1, 64),
			Ratio(r.Median), Interval(r), met,
		})
	}
	return table
}

// ratio returns the figure over the one it is compared with, or over 1.
func (t target) ratio(entrants []run.Entrant, samples []run.Sample) stats.Ratio {
	here := slices.DeleteFunc(slices.Clone(samples), func(s run.Sample) bool {
		return s.Case != t.work || s.Place != t.place
	})
	values := func(level int, who, name string) []float64 {
		g := group(entrants, here, level)
		if who == bestPeer {
			who = g.best(run.Figure{Name: name, More: true}, goPeer)
		}
		return g.values(who, name)
	}
	of := values(t.level, t.who, t.name)
	if t.over == (over{}) {
		return stats.Paired(of, slices.Repeat([]float64{1}, len(of)))
	}
	o := t.over
	return stats.Paired(of, values(cmp.Or(o.level, t.level), cmp.Or(o.who, t.who), cmp.Or(o.name, t.name)))
}
