package demo

import (
	"fmt"
	"time"
)

// progress is the line that plain output gets once a second.
func (t *tally) progress(now time.Time) string {
	at := now.Sub(t.began)
	var waiting []string
	for _, c := range t.workers {
		if c.state == waits {
			waiting = append(waiting, fmt.Sprint(c.id))
		}
	}
	return fmt.Sprintf("%6.2f s  holder %-6s  waiting %-8s rounds %-5d hand-overs %-5d wait p50 %s, p99 %s",
		at.Seconds(), t.holderName(), join(waiting), t.rounds(), t.handOvers,
		millis(percentile(t.waits, 50)), millis(percentile(t.waits, 99)))
}

// holderName is who is inside, for people.
func (t *tally) holderName() string {
	switch {
	case t.holder != nil:
		return fmt.Sprint(t.holder.id)
	case t.victim != nil && t.heir == nil:
		return fmt.Sprintf("dead:%d", t.victim.id)
	}
	return "none"
}

// rounds counts the rounds that were reported.
func (t *tally) rounds() int64 {
	var n int64
	for _, c := range t.workers {
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

// summary tells how the run went.
func (t *tally) summary(r *result) []string {
	lines := []string{
		"",
		fmt.Sprintf("%d processes took one lock %d times in %.1f s.", len(t.workers), t.acquisitions, r.took.Seconds()),
		"",
		row("counter", "%d, %s", r.counter, t.counterVerdict(r.counter)),
		row("two inside", "%s", never(t.violations())),
		row("hand-overs", "%d from one process to another, %.0f a second", t.handOvers, float64(t.handOvers)/r.took.Seconds()),
		row("waits", "p50 %s, p99 %s", millis(percentile(t.waits, 50)), millis(percentile(t.waits, 99))),
	}
	lines = append(lines, t.killStory()...)
	lines = append(lines, "")
	if len(r.wrong) == 0 {
		lines = append(lines, "OK: no round was lost, and nobody was ever inside with somebody else.")
	}
	return lines
}

func row(name, format string, args ...any) string {
	return fmt.Sprintf("  %-12s", name) + fmt.Sprintf(format, args...)
}

func (t *tally) counterVerdict(counter int64) string {
	if n := t.rounds(); counter < n {
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

// killStory tells of the kill and what came of it.
func (t *tally) killStory() []string {
	if t.victim == nil {
		return nil
	}
	lines := []string{row("kill", "worker %d at %.1f s, holding the lock, between its GET and its SET",
		t.victim.id, t.killedAt.Sub(t.began).Seconds())}
	if t.heir == nil {
		return lines
	}
	return append(lines, row("take-over", "worker %d, %s after the kill (a dead holder's lease: %s)",
		t.heir.id, seconds(t.takeOver()), short(t.lease)))
}
