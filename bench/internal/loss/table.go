package loss

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/redlatch/redlatch/bench/internal/report"
	"github.com/redlatch/redlatch/bench/internal/stats"
)

// Merge makes one outcome of those of all rounds that belong together, in the order of
// leases and clients.
func Merge(outcomes []Outcome) []Outcome {
	var all []Outcome
	for _, o := range outcomes {
		i := slices.IndexFunc(all, func(x Outcome) bool {
			return x.Client == o.Client && x.Tells == o.Tells && x.Way == o.Way && x.Lease == o.Lease
		})
		if i < 0 {
			o.Before, o.Gap, o.Rival = slices.Clone(o.Before), slices.Clone(o.Gap), slices.Clone(o.Rival)
			all = append(all, o)
			continue
		}
		x := &all[i]
		x.Before, x.Gap, x.Rival = append(x.Before, o.Before...), append(x.Gap, o.Gap...), append(x.Rival, o.Rival...)
		x.Never += o.Never
		x.GivenBack += o.GivenBack
	}
	slices.SortStableFunc(all, func(a, b Outcome) int { return cmp.Compare(a.Lease, b.Lease) })
	return all
}

// Late returns how many holders learned of the loss too late: a look that began when
// another client could already acquire still found the hold valid.
func (o Outcome) Late() int {
	late := 0
	for i, us := range o.Before {
		if us+o.Gap[i] < 0 {
			late++
		}
	}
	return late
}

// Unclear returns how many holders may have learnt of the loss too late: the sampler was kept
// from looking at the moment that counted.
func (o Outcome) Unclear() int {
	unclear := -o.Late()
	for _, us := range o.Before {
		if us < 0 {
			unclear++
		}
	}
	return unclear
}

// Tables returns a table for each way that has outcomes, which Merge has made.
func Tables(outcomes []Outcome) []report.Table {
	var tables []report.Table
	for _, w := range Ways() {
		t := report.Table{Title: w.Title, Head: []string{
			"lease s", "told by", "trials", "late", "unclear", "never", "min ms", "p1 ms", "p50 ms", "p99 ms", "max ms", "resolution ms",
		}}
		if w.Forgets {
			t.Title += ": how late"
			t.Head = []string{"lease s", "told by", "trials", "never", "min ms", "p50 ms", "p99 ms", "max ms", "resolution ms"}
		}
		for _, o := range outcomes {
			if o.Way == w.Name {
				t.Rows = append(t.Rows, o.row(w))
			}
		}
		if len(t.Rows) > 0 {
			tables = append(tables, t)
		}
	}
	return tables
}

// row is an outcome as its table has it.
func (o Outcome) row(w Way) []string {
	row := []string{o.seconds(), o.teller(), strconv.Itoa(len(o.Before))}
	figures, quantiles := o.Before, []float64{0, 0.01, 0.5, 0.99, 1}
	if w.Forgets {
		quantiles = []float64{0, 0.5, 0.99, 1}
		figures = make([]float64, len(o.Before))
		for i, us := range o.Before {
			figures[i] = -us
		}
	} else {
		row = append(row, strconv.Itoa(o.Late()), strconv.Itoa(o.Unclear()))
	}
	row = append(row, strconv.Itoa(o.Never))
	for _, q := range quantiles {
		row = append(row, millis(stats.Quantile(figures, q)))
	}
	return append(row, strconv.FormatFloat(stats.Quantile(o.Gap, 1)/1000, 'f', 2, 64))
}

func millis(us float64) string { return strconv.FormatFloat(us/1000, 'f', 0, 64) }

// Notes returns sentences for which the tables have no column. A hold whose client reports
// a loss in several ways counts once.
func Notes(outcomes []Outcome) string {
	var gaps, rivals []float64
	holds, givenBack := 0, 0
	seen := map[string]bool{}
	for _, o := range outcomes {
		gaps = append(gaps, o.Gap...)
		cell := fmt.Sprint(o.Client, o.Way, o.Lease)
		if seen[cell] {
			continue
		}
		seen[cell] = true
		holds += len(o.Before)
		rivals = append(rivals, o.Rival...)
		givenBack += o.GivenBack
	}
	ms := func(values []float64, q float64) float64 { return stats.Quantile(values, q) / 1000 }
	text := fmt.Sprintf("%d holds. Between two looks at a hold there were %.2f ms in the middle, %.2f ms at p99, "+
		"%.2f ms at most.", holds, ms(gaps, 0.5), ms(gaps, 0.99), ms(gaps, 1))
	if len(rivals) > 0 {
		text += fmt.Sprintf(" Rivals, who ask every %v, found %d keys free between %.1f ms and %.1f ms after the expiry "+
			"that the server had written down, in the middle %.1f ms.", rivalEvery, len(rivals),
			ms(rivals, 0), ms(rivals, 1), ms(rivals, 0.5))
	}
	return text + fmt.Sprintf(" Keys that were free early, because holders that had been told gave them back: %d.\n", givenBack)
}
