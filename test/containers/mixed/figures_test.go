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

// String lays out a table with the distribution of each line, in milliseconds.
func (f *figures) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "\ttimes\tp50\tp90\tp99\tmax") // to memory
	for _, line := range f.lines {
		all := slices.Sorted(slices.Values(f.times[line]))
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", line, len(all), // to memory
			share(all, 50), share(all, 90), share(all, 99), share(all, 100))
	}
	_ = w.Flush() // to memory
	return b.String()
}

// markdown returns the same as a table of docs/topologies.md, the lines headed by what.
func (f *figures) markdown(what string) string {
	var b strings.Builder
	b.WriteString("| " + what + " | times | p50 | p90 | p99 | max |\n|---|---:|---:|---:|---:|---:|\n")
	for _, line := range f.lines {
		all := slices.Sorted(slices.Values(f.times[line]))
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s |\n", line, len(all),
			share(all, 50), share(all, 90), share(all, 99), share(all, 100))
	}
	return b.String()
}

// share returns what so many percent of sorted times do not exceed.
func share(sorted []time.Duration, percent int) string {
	d := sorted[(len(sorted)*percent+99)/100-1]
	return strconv.FormatFloat(d.Seconds()*1000, 'f', 1, 64)
}
