package demo

import (
	"fmt"
	"slices"
	"time"
)

// jobTotals is what the server has at the end.
type jobTotals struct {
	took time.Duration
	jobs int             // how many there were
	done map[int64]int64 // how often each was done
	left []int64         // those that are still on the list
	cut  bool            // the run was cut short
}

// sorted returns the claims in the order that the server gave them.
func (a *jobAudit) sorted() []claim {
	claims := slices.Clone(a.claims)
	slices.SortFunc(claims, func(a, b claim) int { return int(a.number - b.number) })
	return claims
}

// inversions counts the visits that came out of turn, and all visits that could be judged:
// those for which the queue was not empty.
//
// While the lock is held no owner can leave the queue by acquiring it, and new owners are
// appended. So after a visit whose queue was not empty, the first owner in it must come.
// Owners that never acquire later, because they died or gave up, are passed over.
func (a *jobAudit) inversions() (inverted, judged int) {
	claims := a.sorted()
	turn := make(map[string]int64, len(claims)) // the last of each owner: one that is queued has yet to come
	for i := range claims {
		turn[claims[i].owner] = claims[i].number
	}
	for i := 1; i < len(claims); i++ {
		before := &claims[i-1]
		first := slices.IndexFunc(before.queue, func(owner string) bool { return turn[owner] > before.number })
		if first < 0 {
			continue
		}
		judged++
		if before.queue[first] != claims[i].owner {
			inverted++
		}
	}
	return inverted, judged
}

// check compares what the processes reported with what is on the server. It returns
// what is wrong.
func (a *jobAudit) check(totals *jobTotals) []string {
	wrong := totals.check()
	claims := a.sorted()
	reported := map[int64]int64{}
	last := int64(0)
	for i := range claims {
		c := &claims[i]
		if c.number != int64(i+1) {
			wrong = append(wrong, fmt.Sprintf("visit %d was never reported, or twice", i+1))
			break
		}
		if c.job > 0 {
			reported[c.job]++
		}
		if c.job > 0 && c.job <= last {
			wrong = append(wrong, fmt.Sprintf("job %d was claimed after job %d", c.job, last))
		}
		last = max(last, c.job)
	}
	for job, times := range reported {
		if totals.done[job] != times {
			wrong = append(wrong, fmt.Sprintf("job %d was reported %d times, and done %d times", job, times, totals.done[job]))
		}
	}
	if n := a.collisions.count(); n > 0 {
		wrong = append(wrong, fmt.Sprintf("two were inside, seen %d times", n))
	}
	if a.repeated > 0 {
		wrong = append(wrong, fmt.Sprintf("%d visits could not be told from others", a.repeated))
	}
	if n, _ := a.inversions(); n > 0 {
		wrong = append(wrong, fmt.Sprintf("%d visits were out of turn", n))
	}
	return append(wrong, a.unfinished(totals)...)
}

// check finds jobs that were lost or done twice.
func (totals *jobTotals) check() []string {
	var lostOnes, twice int
	for job := int64(1); job <= int64(totals.jobs); job++ {
		onList := slices.Contains(totals.left, job)
		switch times := totals.done[job]; {
		case times > 1 || times == 1 && onList:
			twice++
		case times == 0 && !onList:
			lostOnes++
		}
	}
	var wrong []string
	if lostOnes > 0 {
		wrong = append(wrong, fmt.Sprintf("%d jobs were lost", lostOnes))
	}
	if twice > 0 {
		wrong = append(wrong, fmt.Sprintf("%d jobs were done more than once", twice))
	}
	return wrong
}

// unfinished finds what did not happen in a run that was not cut short.
func (a *jobAudit) unfinished(totals *jobTotals) []string {
	var wrong []string
	switch {
	case totals.cut:
		return nil
	case a.victim == nil:
		wrong = append(wrong, "no process was killed")
	case a.successor == nil:
		wrong = append(wrong, "no worker got the lock after the kill")
	}
	if n := len(totals.left); n > 0 {
		wrong = append(wrong, fmt.Sprintf("%d jobs are left after %v", n, deadline))
	}
	return wrong
}

// ordinaryWaits returns the waits without those that were, at least partly, for dead
// workers.
func (a *jobAudit) ordinaryWaits() []time.Duration {
	var waits []time.Duration
	for _, e := range a.acquisitions {
		if !a.spansDead(e) {
			waits = append(waits, e.wait)
		}
	}
	return waits
}

// spansDead reports whether a wait was, at least partly, one for dead workers.
func (a *jobAudit) spansDead(e acquisition) bool {
	if a.victim == nil || e.at.Before(a.killedAt) {
		return false
	}
	return a.deadGoneAt.IsZero() || e.at.Add(-e.wait).Before(a.deadGoneAt)
}

// longestWait returns the longest wait of those that span the kill.
func (a *jobAudit) longestWait() time.Duration {
	var longest time.Duration
	for _, e := range a.acquisitions {
		if a.spansDead(e) {
			longest = max(longest, e.wait)
		}
	}
	return longest
}

// longestStall returns the longest time without an acquisition, from the kill on.
func (a *jobAudit) longestStall() time.Duration {
	at := []time.Time{a.killedAt}
	for _, e := range a.acquisitions {
		if e.at.After(a.killedAt) {
			at = append(at, e.at)
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	var longest time.Duration
	for i := 1; i < len(at); i++ {
		longest = max(longest, at[i].Sub(at[i-1]))
	}
	return longest
}

// pace returns the hand-overs per second from the first acquisition to the kill, or
// to the last one.
func (a *jobAudit) pace() float64 {
	n, first, last := 0, time.Time{}, time.Time{}
	for _, e := range a.acquisitions {
		if a.victim != nil && e.at.After(a.killedAt) {
			continue
		}
		n++
		if first.IsZero() || e.at.Before(first) {
			first = e.at
		}
		if e.at.After(last) {
			last = e.at
		}
	}
	if n < 2 || !last.After(first) {
		return 0
	}
	return float64(n-1) / last.Sub(first).Seconds()
}

// summary returns the result of the run, line by line.
func (a *jobAudit) summary(totals *jobTotals) []string {
	inverted, judged := a.inversions()
	waits := a.ordinaryWaits()
	lines := []string{
		"",
		fmt.Sprintf("%d processes with %d workers each claimed %d jobs in %.1f s.", len(a.processes), workersEach, a.jobs(), totals.took.Seconds()),
		"",
		row("jobs", "%d, %s", len(totals.done), totals.result()),
		row("two inside", "%s", never(a.collisions.count())),
		row("inversions", "%d in the %d turns with others queued, by the server's list", inverted, judged),
		row("waits", "p50 %s, p99 %s", millis(percentile(waits, 50)), millis(percentile(waits, 99))),
		row("hand-overs", "%d from one worker to another, %.0f a second until the kill", a.handOvers, a.pace()),
	}
	return append(append(lines, a.killLines()...), "")
}

func (totals *jobTotals) result() string {
	switch {
	case len(totals.check()) > 0:
		return "but not each of them once"
	case len(totals.left) > 0:
		return fmt.Sprintf("each of them once, and %d are left", len(totals.left))
	}
	return "each of them once"
}

// killLines reports the kill and its effects.
func (a *jobAudit) killLines() []string {
	if a.victim == nil {
		return nil
	}
	lines := []string{
		row("kill", "process %d at %.1f s, holding the lock, %d places in the queue", a.victim.id,
			a.killedAt.Sub(a.began).Seconds(), a.places),
	}
	if a.successor == nil {
		return lines
	}
	return append(lines,
		row("stall", "%s at most after the kill; longest wait %s", seconds(a.longestStall()), seconds(a.longestWait())),
		row("", "the dead holder's lease (%s), then its places in the queue: each", short(lease)),
		row("", "until its deadline, or until its channel had no listener for %s", short(grace)))
}
