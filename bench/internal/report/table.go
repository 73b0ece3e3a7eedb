// Package report makes tables, plots and files from the results of a run.
package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/run"
	"github.com/redlatch/redlatch/bench/internal/stats"
)

const none = "–"

// Table is a table of strings with a title.
type Table struct {
	Title string
	Head  []string
	Rows  [][]string
}

// of returns the samples of a case.
func of(c run.Case, samples []run.Sample) []run.Sample {
	return slices.DeleteFunc(slices.Clone(samples), func(s run.Sample) bool { return s.Case != c.ID })
}

var rivals = []struct {
	title string
	is    func(contest.Contestant) bool
}{
	{"best Go peer", goPeer},
	{"Redisson", func(c contest.Contestant) bool { return c.Java }},
	{"limit", func(c contest.Contestant) bool { return c.Role == contest.Limit }},
}

func goPeer(c contest.Contestant) bool { return c.Role == contest.Peer && !c.Java }

// CaseTable returns the table of a case. It has no rows if the case was not measured.
func CaseTable(c run.Case, entrants []run.Entrant, samples []run.Sample) Table {
	t := Table{Title: fmt.Sprintf("%s. %s (%s)", c.ID, c.Title, placed(c.Place)), Head: []string{c.Level, "client"}}
	for i, f := range c.Figures {
		t.Head = append(t.Head, f.Title)
		if i == 0 {
			t.Head = append(t.Head, "min", "max")
		}
	}
	for _, r := range rivals {
		t.Head = append(t.Head, "× "+r.title)
	}
	for _, level := range c.Levels {
		g := group(entrants, of(c, samples), level)
		for _, e := range entrants {
			if _, ok := g.samples[e.Label]; ok {
				t.Rows = append(t.Rows, g.row(c, level, e))
			}
		}
	}
	return t.withoutEmpty()
}

func placed(p host.Placement) string {
	if p == host.Apart {
		return "server on a dedicated CPU"
	}
	return "unpinned"
}

type grouped struct {
	entrants []run.Entrant
	samples  map[string][]run.Sample
}

func group(entrants []run.Entrant, samples []run.Sample, level int) grouped {
	g := grouped{entrants: entrants, samples: map[string][]run.Sample{}}
	for _, s := range samples {
		if s.Level == level {
			g.samples[s.Entrant] = append(g.samples[s.Entrant], s)
		}
	}
	for _, s := range g.samples {
		slices.SortFunc(s, func(a, b run.Sample) int { return cmp.Or(a.Run-b.Run, a.Round-b.Round) })
	}
	return g
}

// values returns a figure's value in each round, or NaN if it is missing.
func (g grouped) values(label, figure string) []float64 {
	var v []float64
	for _, s := range g.samples[label] {
		x, ok := s.Values[figure]
		if !ok {
			x = math.NaN()
		}
		v = append(v, x)
	}
	return v
}

func (g grouped) best(f run.Figure, is func(contest.Contestant) bool) string {
	label, figure := "", math.NaN()
	for _, e := range g.entrants {
		if !is(e.Contestant) {
			continue
		}
		m := stats.Median(g.values(e.Label, f.Name))
		if math.IsNaN(m) {
			continue
		}
		if label == "" || f.More && m > figure || !f.More && m < figure {
			label, figure = e.Label, m
		}
	}
	return label
}

func (g grouped) row(c run.Case, level int, e run.Entrant) []string {
	row := []string{strconv.Itoa(level), e.Label}
	for i, f := range c.Figures {
		s := stats.Summarize(g.values(e.Label, f.Name))
		row = append(row, Number(s.Median))
		if i == 0 {
			row = append(row, Number(s.Min), Number(s.Max))
		}
	}
	main := c.Figures[0]
	for _, r := range rivals {
		rival := g.best(main, r.is)
		if rival == "" || rival == e.Label {
			row = append(row, none)
			continue
		}
		row = append(row, Ratio(stats.Paired(g.values(e.Label, main.Name), g.values(rival, main.Name)).Median))
	}
	return row
}

func (t Table) withoutEmpty() Table {
	for i := len(t.Head) - 1; i >= 0; i-- {
		if slices.ContainsFunc(t.Rows, func(r []string) bool { return r[i] != none }) {
			continue
		}
		t.Head = slices.Delete(t.Head, i, i+1)
		for j, r := range t.Rows {
			t.Rows[j] = slices.Delete(r, i, i+1)
		}
	}
	return t
}

// Number formats a figure with about three significant digits.
func Number(x float64) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return none
	case x == 0:
		return "0"
	case math.Abs(x) >= 99.95:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case math.Abs(x) >= 9.995:
		return strconv.FormatFloat(x, 'f', 1, 64)
	default:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
}

// Ratio formats a ratio.
func Ratio(x float64) string {
	if math.IsNaN(x) {
		return none
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// Interval formats the interval of a ratio.
func Interval(r stats.Ratio) string {
	if r.Rounds == 0 {
		return none
	}
	return Ratio(r.Low) + "–" + Ratio(r.High)
}

// String returns the table in Markdown.
func (t Table) String() string {
	rows := append([][]string{t.Head}, t.Rows...)
	widths := make([]int, len(t.Head))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	b.WriteString("### " + t.Title + "\n\n")
	for n, row := range rows {
		for i, cell := range row {
			width := widths[i]
			if i == 1 {
				width = -width
			}
			fmt.Fprintf(&b, "| %*s ", width, cell)
		}
		b.WriteString("|\n")
		if n > 0 {
			continue
		}
		for i, width := range widths {
			end := ":"
			if i == 1 {
				end = "-"
			}
			b.WriteString("|" + strings.Repeat("-", width+1) + end)
		}
		b.WriteString("|\n")
	}
	return b.String()
}
