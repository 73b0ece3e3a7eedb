package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// titles name the demo, the server and the lock.
func (a *audit) titles(where, lock string) []string {
	return []string{
		"redlatch demo: " + a.contenders() + ", one " + a.kind,
		"server  " + where,
		fmt.Sprintf("lock    %s, leases of %v, renewed", lock, lease),
	}
}

// contenders are the processes and their workers.
func (a *audit) contenders() string {
	if a.workers == 1 {
		return fmt.Sprintf("%d processes", len(a.processes))
	}
	return fmt.Sprintf("%d processes with %d workers each", len(a.processes), a.workers)
}

// progress is the line that is printed once a second.
func (a *audit) progress(now time.Time) string {
	var ids []string
	for _, p := range a.processes {
		if p.waiting > 0 {
			ids = append(ids, fmt.Sprint(p.id))
		}
	}
	waiting := strings.Join(ids, " ")
	if n := a.deadInQueue(); n > 0 {
		waiting += fmt.Sprintf(" (%d dead)", n)
	}
	holder := "none"
	switch {
	case a.holder != nil:
		holder = fmt.Sprint(a.holder.id)
	case a.victim != nil && a.successor == nil:
		holder = fmt.Sprintf("dead:%d", a.victim.id)
	}
	return fmt.Sprintf("%6.2f s  holder %-6s  waiting %-8s rounds %-5d hand-overs %-5d wait %s",
		now.Sub(a.began).Seconds(), holder, waiting, len(a.rounds), a.handOvers, a.percentiles())
}

// summary returns the result of the run, line by line.
func (a *audit) summary(counter int64, took time.Duration, wrong []string) []string {
	lines := []string{"", fmt.Sprintf("%s took one lock %d times in %.1f s.", a.contenders(), a.acquisitions, took.Seconds()), ""}
	row := func(name, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("  %-12s", name)+fmt.Sprintf(format, args...))
	}
	rounds, counted := int64(len(a.rounds)), "as many as rounds were finished"
	if counter < rounds {
		counted = fmt.Sprintf("but %d rounds were finished", rounds)
	}
	row("counter", "%d, %s", counter, counted)
	two := "never"
	if n := a.violations(); n > 0 {
		two = fmt.Sprintf("seen %d times", n)
	}
	row("two inside", "%s", two)
	if inverted, judged := a.inversions(); a.fair {
		row("inversions", "%d in the %d turns with others queued, by the server's list", inverted, judged)
	}
	row("hand-overs", "%d from one process to another, %.0f a second", a.handOvers, float64(a.handOvers)/took.Seconds())
	row("waits", "%s", a.percentiles())
	if a.victim != nil {
		row("kill", "%s %d at %.1f s, holding the lock, between its GET and its SET", a.noun, a.victim.id,
			a.killedAt.Sub(a.began).Seconds())
	}
	if a.successor != nil {
		row("take-over", "%s %d, %s after the kill (a dead holder's lease: %v)", a.noun, a.successor.id,
			brief(a.successorAt.Sub(a.killedAt)), lease)
	}
	if a.places > 0 && !a.recovered.IsZero() {
		row("dead", "%d places in the queue, the last one evicted %s after the kill", a.places, brief(a.recovered.Sub(a.killedAt)))
	}
	lines = append(lines, "")
	for _, w := range wrong {
		lines = append(lines, "WRONG: "+w+".")
	}
	switch {
	case len(wrong) > 0:
	case a.fair:
		lines = append(lines, "OK: no round was lost, no worker was overtaken, no two held the lock at once.")
	default:
		lines = append(lines, "OK: no round was lost, and no two workers held the lock at once.")
	}
	return lines
}

// percentiles shows the median and the 99th percentile of the waits.
func (a *audit) percentiles() string {
	if len(a.waits) == 0 {
		return "p50 -, p99 -"
	}
	sorted := slices.Sorted(slices.Values(a.waits))
	last := len(sorted) - 1
	return fmt.Sprintf("p50 %s, p99 %s", brief(sorted[last*50/100]), brief(sorted[last*99/100]))
}

// brief shows a time in milliseconds, or in hundredths of a second.
func brief(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
