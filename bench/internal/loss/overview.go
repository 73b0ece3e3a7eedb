package loss

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/bench/internal/report"
	"github.com/redlatch/redlatch/bench/internal/stats"
)

// Overview returns the tables that sum the others up, of outcomes that Merge has made: all ways in which
// the lock stays, each way and lease of those, and each of those in which Redis forgets the lock.
func Overview(outcomes []Outcome) []report.Table {
	stays, forgotten := parted(outcomes)
	return []report.Table{
		worst(stays),
		grid("How long before another client could acquire the holder was told: least / middle ms", stays, Outcome.inTime),
		grid("How late a holder was told that Redis had forgotten the lock: middle / most ms", forgotten, Outcome.howLate),
	}
}

// parted returns the outcomes of ways in which the lock stays, and of those in which Redis forgets it.
func parted(outcomes []Outcome) (stays, forgotten []Outcome) {
	forgets := map[string]bool{}
	for _, w := range Ways() {
		forgets[w.Name] = w.Forgets
	}
	for _, o := range outcomes {
		if forgets[o.Way] {
			forgotten = append(forgotten, o)
		} else {
			stays = append(stays, o)
		}
	}
	return stays, forgotten
}

// teller names what told the holder.
func (o Outcome) teller() string { return o.Client + ", " + o.Tells }

// seconds is the lease.
func (o Outcome) seconds() string { return strconv.FormatFloat(float64(o.Lease)/1000, 'f', -1, 64) }

// inTime is a cell: the least, the middle, and how many were not in time.
func (o Outcome) inTime() string {
	text := millis(stats.Quantile(o.Before, 0)) + " / " + millis(stats.Quantile(o.Before, 0.5))
	var not []string
	if n := o.Late(); n > 0 {
		not = append(not, fmt.Sprintf("%d late", n))
	}
	if n := o.Unclear(); n > 0 {
		not = append(not, fmt.Sprintf("%d unclear", n))
	}
	if not == nil {
		return text
	}
	return text + " (" + strings.Join(not, ", ") + ")"
}

// howLate is a cell: the middle and the most.
func (o Outcome) howLate() string {
	return millis(-stats.Quantile(o.Before, 0.5)) + " / " + millis(-stats.Quantile(o.Before, 0))
}

// grid has a row for each way and lease, and a column for each teller.
func grid(title string, outcomes []Outcome, cell func(Outcome) string) report.Table {
	tellers := each(outcomes, Outcome.teller)
	t := report.Table{Title: title, Head: append([]string{"way", "lease s"}, tellers...)}
	for _, w := range Ways() {
		for _, lease := range each(outcomes, Outcome.seconds) {
			row := append([]string{"`" + w.Name + "`", lease}, make([]string, len(tellers))...)
			found := false
			for _, o := range outcomes {
				if o.Way == w.Name && o.seconds() == lease {
					row[2+slices.Index(tellers, o.teller())], found = cell(o), true
				}
			}
			if found {
				t.Rows = append(t.Rows, row)
			}
		}
	}
	return t
}

// worst has a row for each teller: of all trials, and the worst way for each lease.
func worst(outcomes []Outcome) report.Table {
	t := report.Table{Title: "All ways in which the lock stays", Head: []string{"told by", "trials", "too late"}}
	for _, lease := range each(outcomes, Outcome.seconds) {
		t.Head = append(t.Head, "lease "+lease+" s, the worst way: least / middle ms")
	}
	for _, teller := range each(outcomes, Outcome.teller) {
		trials, late := 0, 0
		var ways []string
		for _, lease := range each(outcomes, Outcome.seconds) {
			var least, middle []float64
			for _, o := range outcomes {
				if o.teller() == teller && o.seconds() == lease {
					trials, late = trials+len(o.Before), late+o.Late()
					least, middle = append(least, stats.Quantile(o.Before, 0)), append(middle, stats.Quantile(o.Before, 0.5))
				}
			}
			if least == nil {
				ways = append(ways, "")
				continue
			}
			ways = append(ways, millis(slices.Min(least))+" / "+millis(slices.Min(middle)))
		}
		t.Rows = append(t.Rows, slices.Concat([]string{teller, strconv.Itoa(trials), strconv.Itoa(late)}, ways))
	}
	return t
}

// each returns what is said of the outcomes, once each, in their order.
func each(outcomes []Outcome, of func(Outcome) string) []string {
	var all []string
	for _, o := range outcomes {
		if said := of(o); !slices.Contains(all, said) {
			all = append(all, said)
		}
	}
	return all
}
