package demo

import (
	"fmt"
	"time"
)

// progress is the line that plain output gets once a second.
func (a *counterAudit) progress(now time.Time) string {
	at := now.Sub(a.began)
	var waiting []string
	for _, c := range a.workers {
		if c.activity == waits {
			waiting = append(waiting, fmt.Sprint(c.id))
		}
	}
	return fmt.Sprintf("%6.2f s  holder %-6s  waiting %-8s rounds %-5d hand-overs %-5d wait p50 %s, p99 %s",
		at.Seconds(), a.holderName(), join(waiting), a.rounds(), a.handOvers,
		millis(percentile(a.waits, 50)), millis(percentile(a.waits, 99)))
}

// holderName is the worker with the lock, for the output.
func (a *counterAudit) holderName() string {
	switch {
	case a.holder != nil:
		return fmt.Sprint(a.holder.id)
	case a.victim != nil && a.successor == nil:
		return fmt.Sprintf("dead:%d", a.victim.id)
	}
	return "none"
}

// rounds counts the rounds that were reported.
func (a *counterAudit) rounds() int64 {
	var n int64
	for _, c := range a.workers {
		n += c.rounds
	}
	return n
}

// result is what the demo found out.
type result struct {
	took    time.Duration
	counter int64
	wrong   []string
}

// summary returns the result of the run, line by line.
func (a *counterAudit) summary(r *result) []string {
	lines := []string{
		"",
		fmt.Sprintf("%d processes took one lock %d times in %.1f s.", len(a.workers), a.acquisitions, r.took.Seconds()),
		"",
		row("counter", "%d, %s", r.counter, a.counterResult(r.counter)),
		row("two inside", "%s", never(a.violations())),
		row("hand-overs", "%d from one process to another, %.0f a second", a.handOvers, float64(a.handOvers)/r.took.Seconds()),
		row("waits", "p50 %s, p99 %s", millis(percentile(a.waits, 50)), millis(percentile(a.waits, 99))),
	}
	lines = append(lines, a.killLines()...)
	lines = append(lines, "")
	if len(r.wrong) == 0 {
		lines = append(lines, "OK: no round was lost, and no two workers held the lock at once.")
	}
	return lines
}

func row(name, format string, args ...any) string {
	return fmt.Sprintf("  %-12s", name) + fmt.Sprintf(format, args...)
}

func (a *counterAudit) counterResult(counter int64) string {
	if n := a.rounds(); counter < n {
		return fmt.Sprintf("but %d rounds were finished", n)
	}
	return "as many as rounds were finished"
}

func never(n int) string {
	if n == 0 {
		return "never"
	}
	return fmt.Sprintf("seen %d times", n)
}

// killLines reports the kill and the take-over.
func (a *counterAudit) killLines() []string {
	if a.victim == nil {
		return nil
	}
	lines := []string{row("kill", "worker %d at %.1f s, holding the lock, between its GET and its SET",
		a.victim.id, a.killedAt.Sub(a.began).Seconds())}
	if a.successor == nil {
		return lines
	}
	return append(lines, row("take-over", "worker %d, %s after the kill (a dead holder's lease: %s)",
		a.successor.id, seconds(a.takeOver()), short(a.lease)))
}
