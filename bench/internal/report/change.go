package report

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/bench/internal/run"
	"github.com/redlatch/redlatch/bench/internal/stats"
	"github.com/redlatch/redlatch/bench/internal/work"
)

// Change compares one figure between two builds.
type Change struct {
	// What identifies the measurement, and Figure is the column.
	What       []string
	Figure     run.Figure
	Tree, Base float64
	Ratio      stats.Ratio
	Failed     bool
}

// Better reports whether the figure improved.
func (c Change) Better() bool { return c.Ratio.Moved() && (c.Ratio.Median > 1) == c.Figure.More }

// Worse reports whether the figure got worse.
func (c Change) Worse() bool { return c.Ratio.Moved() && !c.Better() }

// Changes compares the samples of the entrants "tree" and "base".
func Changes(c run.Case, who string, samples []run.Sample) []Change {
	var changes []Change
	for _, level := range c.Levels {
		g := group(nil, samples, level)
		failed := slices.ContainsFunc(samples, func(s run.Sample) bool { return s.Level == level && s.Error != "" })
		for _, f := range c.Figures {
			tree, base := g.values("tree", f.Name), g.values("base", f.Name)
			changes = append(changes, Change{
				What:   []string{who, c.Title, strconv.Itoa(level)},
				Figure: f, Failed: failed,
				Tree: stats.Median(tree), Base: stats.Median(base), Ratio: stats.Paired(tree, base),
			})
		}
	}
	return changes
}

// ChangeTable returns the changes as a table.
func ChangeTable(changes []Change) Table {
	t := Table{
		Title: "The working tree against the base, pair by pair",
		Head:  []string{"size", "what", "figure", "tree", "base", "ratio", "95 %", ""},
	}
	for _, c := range changes {
		verdict := ""
		switch {
		case c.Failed:
			verdict = "FAILED"
		case c.Worse():
			verdict = "WORSE"
		case c.Better():
			verdict = "better"
		}
		t.Rows = append(t.Rows, []string{
			c.What[2], c.What[0] + ", " + c.What[1], c.Figure.Title, Number(c.Tree), Number(c.Base),
			Ratio(c.Ratio.Median), Interval(c.Ratio), verdict,
		})
	}
	return t
}

// Verdict says how many figures changed beyond their interval.
func Verdict(changes []Change) string {
	moved := 0
	for _, c := range changes {
		if !c.Failed && c.Ratio.Moved() {
			moved++
		}
	}
	return fmt.Sprintf("%d of %d figures changed beyond their interval; one in twenty does by chance, more on a busy machine.\n",
		moved, len(changes))
}

// Least returns an error if a rate is less than share times the base's rate. A share of 0 disables the check.
func Least(changes []Change, share float64) error {
	if share == 0 {
		return nil
	}
	var below []error
	rates := 0
	for _, c := range changes {
		if c.Figure.Name != work.Rate {
			continue
		}
		rates++
		if c.Failed || !(c.Ratio.Median >= share) { // true for NaN
			below = append(below, fmt.Errorf("%s: %s of the base's rate; the minimum is %.2f",
				strings.Join(c.What, ", "), Ratio(c.Ratio.Median), share))
		}
	}
	if rates == 0 {
		return errors.New("no rates to compare")
	}
	return errors.Join(below...)
}
