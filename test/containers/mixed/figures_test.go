package mixed

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// figures are times by what they are of. For one goroutine.
type figures struct {
	lines []string // in the order in which they came
	times map[string][]time.Duration
}

// add notes a time of a line.
func (f *figures) add(line string, d time.Duration) {
	if f.times == nil {
		f.times = map[string][]time.Duration{}
	}
	if f.times[line] == nil {
		f.lines = append(f.lines, line)
	}
	f.times[line] = append(f.times[line], d)
}

// rows returns the distribution of each line, in milliseconds, with names of the columns first.
func (f *figures) rows(what string) [][]string {
	rows := [][]string{{what, "times", "p50", "p90", "p99", "max"}}
	for _, line := range f.lines {
		all := slices.Sorted(slices.Values(f.times[line]))
		rows = append(rows, []string{
			line, strconv.Itoa(len(all)), share(all, 50), share(all, 90), share(all, 99), share(all, 100),
		})
	}
	return rows
}

// String lays out the rows.
func (f *figures) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, row := range f.rows("") {
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t")) // to memory
	}
	_ = w.Flush() // to memory
	return b.String()
}

// markdown returns the rows as a table of docs/topologies.md.
func (f *figures) markdown(what string) string {
	rows := slices.Insert(f.rows(what), 1, []string{"---", "---:", "---:", "---:", "---:", "---:"})
	var b strings.Builder
	for _, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	return b.String()
}

// share returns what so many percent of sorted times do not exceed.
func share(sorted []time.Duration, percent int) string {
	d := sorted[(len(sorted)*percent+99)/100-1]
	return strconv.FormatFloat(d.Seconds()*1000, 'f', 1, 64)
}
