package fairsim

import (
	"fmt"
	"strings"
	"time"
)

// Row is one line of the table that the documentation shows.
type Row struct {
	// What says what was run.
	What string
	Result
}

// head is what stands above the figures.
var head = []string{
	"fleet, holds up to", "acquisitions", "live waiters pruned, per thousand", "live waiters evicted",
	"lock free while live waiters queue", "dead places", "longest that one blocked a free lock",
}

// Table writes rows as a table in Markdown.
func Table(rows []Row) string {
	var b strings.Builder
	line(&b, head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range rows {
		line(&b, []string{
			r.What,
			fmt.Sprint(r.Granted),
			figure(r.PerThousand(r.Pruned())),
			fmt.Sprint(r.EvictedRedlatch + r.EvictedRedisson),
			figure(100*r.IdleShare()) + " %",
			fmt.Sprint(r.EvictedDead + r.PrunedDead),
			(time.Duration(r.LongestBlock) * time.Millisecond).Round(time.Second).String(),
		})
	}
	return b.String()
}

func line(b *strings.Builder, cells []string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// figure formats a number with two significant digits.
func figure(f float64) string {
	switch {
	case f == 0:
		return "0"
	case f < 1:
		return fmt.Sprintf("%.2f", f)
	}
	return fmt.Sprintf("%.1f", f)
}
