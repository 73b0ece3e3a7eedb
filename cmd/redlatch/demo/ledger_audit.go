package demo

import (
	"fmt"
	"slices"
	"time"
)

// harvest is what the server has at the end.
type harvest struct {
	took time.Duration
	jobs int             // how many there were
	done map[int64]int64 // how often each was done
	left []int64         // those that are still on the list
	cut  bool            // the run was cut short
}

// sorted returns the claims in the order that the server gave them.
func (l *ledger) sorted() []claim {
	claims := slices.Clone(l.claims)
	slices.SortFunc(claims, func(a, b claim) int { return int(a.number - b.number) })
	return claims
}

// inversions counts the visits that were somebody else's turn, and all visits that
// could be judged: those that came when somebody was queued.
//
// While the lock is held nobody can leave the queue by getting it, and whoever
// comes stands behind those who are there. So after a visit whose queue was not
// empty, the first of it must come, whoever that is: only those are passed over who
// never got in later on, because they have died or given up.
func (l *ledger) inversions() (inverted, judged int) {
	claims := l.sorted()
	turn := make(map[string]int64, len(claims)) // of each owner; an owner comes once
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

// audit compares what the processes reported with what is on the server. It returns
// what is wrong.
func (l *ledger) audit(h *harvest) []string {
	wrong := h.audit()
	claims := l.sorted()
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
		if h.done[job] != times {
			wrong = append(wrong, fmt.Sprintf("job %d was reported %d times, and done %d times", job, times, h.done[job]))
		}
	}
	if n := l.met.count(); n > 0 {
		wrong = append(wrong, fmt.Sprintf("two were inside, seen %d times", n))
	}
	if n, _ := l.inversions(); n > 0 {
		wrong = append(wrong, fmt.Sprintf("%d visits were somebody else's turn", n))
	}
	return append(wrong, l.unfinished(h)...)
}

// audit finds jobs that were lost or done twice.
func (h *harvest) audit() []string {
	var lostOnes, twice int
	for job := int64(1); job <= int64(h.jobs); job++ {
		onList := slices.Contains(h.left, job)
		switch times := h.done[job]; {
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
func (l *ledger) unfinished(h *harvest) []string {
	var wrong []string
	switch {
	case h.cut:
		return nil
	case l.victim == nil:
		wrong = append(wrong, "no process was killed")
	case l.heir == nil:
		wrong = append(wrong, "nobody got the lock after the kill")
	}
	if n := len(h.left); n > 0 {
		wrong = append(wrong, fmt.Sprintf("%d jobs are left after %v", n, deadline))
	}
	return wrong
}

// ordinaryWaits returns the waits without those that were, at least partly, for the
// dead.
func (l *ledger) ordinaryWaits() []time.Duration {
	var waits []time.Duration
	for _, e := range l.entries {
		if !l.spansDead(e) {
			waits = append(waits, e.wait)
		}
	}
	return waits
}

// spansDead reports whether a wait was, at least partly, one for the dead.
func (l *ledger) spansDead(e entry) bool {
	if l.victim == nil || e.at.Before(l.killedAt) {
		return false
	}
	return l.clearAt.IsZero() || e.at.Add(-e.wait).Before(l.clearAt)
}

// longestWait returns the longest wait of those that span the kill.
func (l *ledger) longestWait() time.Duration {
	var longest time.Duration
	for _, e := range l.entries {
		if l.spansDead(e) {
			longest = max(longest, e.wait)
		}
	}
	return longest
}

// longestStall returns the longest time without anybody getting in, from the kill
// on.
func (l *ledger) longestStall() time.Duration {
	at := []time.Time{l.killedAt}
	for _, e := range l.entries {
		if e.at.After(l.killedAt) {
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
func (l *ledger) pace() float64 {
	n, first, last := 0, time.Time{}, time.Time{}
	for _, e := range l.entries {
		if l.victim != nil && e.at.After(l.killedAt) {
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

// summary tells how the run went.
func (l *ledger) summary(h *harvest) []string {
	inverted, judged := l.inversions()
	waits := l.ordinaryWaits()
	lines := []string{
		"",
		fmt.Sprintf("%d processes with %d workers each claimed %d jobs in %.1f s.", len(l.crews), handsOf, l.jobs(), h.took.Seconds()),
		"",
		row("jobs", "%d, %s", len(h.done), h.verdict()),
		row("two inside", "%s", never(l.met.count())),
		row("inversions", "%d in the %d turns with others queued, by the server's list", inverted, judged),
		row("waits", "p50 %s, p99 %s", millis(percentile(waits, 50)), millis(percentile(waits, 99))),
		row("hand-overs", "%d from one worker to another, %.0f a second until the kill", l.handOvers, l.pace()),
	}
	return append(append(lines, l.killStory()...), "")
}

func (h *harvest) verdict() string {
	switch {
	case len(h.audit()) > 0:
		return "but not each of them once"
	case len(h.left) > 0:
		return fmt.Sprintf("each of them once, and %d are left", len(h.left))
	}
	return "each of them once"
}

// killStory tells of the kill and what came of it.
func (l *ledger) killStory() []string {
	if l.victim == nil {
		return nil
	}
	lines := []string{
		row("kill", "process %d at %.1f s, holding the lock, %d places in the queue", l.victim.id,
			l.killedAt.Sub(l.began).Seconds(), l.places),
	}
	if l.heir == nil {
		return lines
	}
	return append(lines,
		row("stall", "%s at most after the kill; nobody waited longer than %s", seconds(l.longestStall()), seconds(l.longestWait())),
		row("", "the dead one's lease of %s, then its places: each until its", short(lease)),
		row("", "deadline, or until the others have missed its listener for %s", short(grace)))
}
