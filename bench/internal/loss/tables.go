package loss

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/bench/internal/report"
	"github.com/redlatch/redlatch/bench/internal/stats"
)

// Merge combines the outcomes of all rounds and sorts them by lease and client.
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

// Late counts the holds that were still valid after another client could have acquired the lock.
func (o Outcome) Late() int {
	late := 0
	for i, us := range o.Before {
		if us+o.Gap[i] < 0 {
			late++
		}
	}
	return late
}

// Unclear counts the holders that may be late, or only seem so because the sampler did not run in
// time.
func (o Outcome) Unclear() int {
	unclear := -o.Late()
	for _, us := range o.Before {
		if us < 0 {
			unclear++
		}
	}
	return unclear
}

func millis(us float64) string { return strconv.FormatFloat(us/1000, 'f', 0, 64) }

// Notes returns the totals as sentences. A hold with several signals counts once.
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
	text := fmt.Sprintf("%d holds. Each hold was checked every %.2f ms (median), %.2f ms (p99), "+
		"%.2f ms (maximum).", holds, ms(gaps, 0.5), ms(gaps, 0.99), ms(gaps, 1))
	if len(rivals) > 0 {
		text += fmt.Sprintf(" Polling every %v, rivals found %d keys free between %.1f ms and %.1f ms after the expiry "+
			"in the server's append-only file (median %.1f ms).", rivalEvery, len(rivals),
			ms(rivals, 0), ms(rivals, 1), ms(rivals, 0.5))
	}
	return text + fmt.Sprintf(" Keys released early by notified holders: %d.\n", givenBack)
}

// Tables returns the tables for merged outcomes.
func Tables(outcomes []Outcome) []report.Table {
	stays, forgotten := parted(outcomes)
	return []report.Table{
		worst(stays),
		grid("Time from notification until another client could acquire: minimum / median ms", stays, Outcome.inTime),
		grid("Time from losing the key to notification: median / maximum ms", forgotten, Outcome.howLate),
	}
}

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

func (o Outcome) teller() string { return o.Client + ", " + o.Tells }

func (o Outcome) seconds() string { return strconv.FormatFloat(float64(o.Lease)/1000, 'f', -1, 64) }

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

func (o Outcome) howLate() string {
	return millis(-stats.Quantile(o.Before, 0.5)) + " / " + millis(-stats.Quantile(o.Before, 0))
}

func grid(title string, outcomes []Outcome, cell func(Outcome) string) report.Table {
	tellers := each(outcomes, Outcome.teller)
	t := report.Table{Title: title, Head: append([]string{"failure", "lease s"}, tellers...)}
	for _, w := range Ways() {
		here := slices.DeleteFunc(slices.Clone(outcomes), func(o Outcome) bool { return o.Way != w.Name })
		for _, lease := range each(here, Outcome.seconds) {
			row := append([]string{"`" + w.Name + "`", lease}, make([]string, len(tellers))...)
			for _, o := range only(here, Outcome.seconds, lease) {
				row[2+slices.Index(tellers, o.teller())] = cell(o)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

func worst(outcomes []Outcome) report.Table {
	t := report.Table{
		Title: "All failures in which the server keeps the lock",
		Head:  []string{"signal", "trials", "too late"},
	}
	leases := each(outcomes, Outcome.seconds)
	for _, lease := range leases {
		t.Head = append(t.Head, "lease "+lease+" s, worst failure: minimum / median ms")
	}
	for _, teller := range each(outcomes, Outcome.teller) {
		own := only(outcomes, Outcome.teller, teller)
		trials, late := 0, 0
		for _, o := range own {
			trials, late = trials+len(o.Before), late+o.Late()
		}
		row := []string{teller, strconv.Itoa(trials), strconv.Itoa(late)}
		for _, lease := range leases {
			row = append(row, worstWay(only(own, Outcome.seconds, lease)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func worstWay(outcomes []Outcome) string {
	if len(outcomes) == 0 {
		return ""
	}
	least, middle := math.Inf(1), math.Inf(1)
	for _, o := range outcomes {
		least, middle = min(least, stats.Quantile(o.Before, 0)), min(middle, stats.Quantile(o.Before, 0.5))
	}
	return millis(least) + " / " + millis(middle)
}

func only(outcomes []Outcome, of func(Outcome) string, said string) []Outcome {
	return slices.DeleteFunc(slices.Clone(outcomes), func(o Outcome) bool { return of(o) != said })
}

func each(outcomes []Outcome, of func(Outcome) string) []string {
	var all []string
	for _, o := range outcomes {
		if said := of(o); !slices.Contains(all, said) {
			all = append(all, said)
		}
	}
	return all
}
