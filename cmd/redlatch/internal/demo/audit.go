package demo

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

type process struct {
	id     int
	proc   *os.Process    // nil before the start
	orders io.WriteCloser // nil before the start

	client  string // prefix of its owners; "" until it has connected
	waiting int    // number of workers that are waiting
	rounds  int64
	failure string // why it exited, or "" for success
}

type finished struct {
	round int64
	owner string
	queue []string
}

// audit is not safe for concurrent use.
type audit struct {
	began     time.Time
	processes []*process
	last      *process // the last holder

	acquisitions, handOvers int64
	rounds                  []finished
	waits                   []time.Duration // except those that the dead holder caused
	queue                   []string        // as last read
	markers                 []string        // found on entering, or another visit's on leaving
	excused                 map[string]bool // visits that may leave a marker

	victim      *process
	killedAt    time.Time
	successor   *process // the first holder after the victim was killed
	successorAt time.Time
	places      int       // number of places in the queue left by the victim
	recovered   time.Time // when there was a successor and all dead waiters were gone

	messages []string
}

const (
	processes = 3
	workers   = 8 // per process
)

var title = fmt.Sprintf("%d processes with %d workers each", processes, workers)

func newAudit(began time.Time) *audit {
	a := &audit{began: began, excused: map[string]bool{}}
	for id := 1; id <= processes; id++ {
		a.processes = append(a.processes, &process{id: id})
	}
	return a
}

func (a *audit) logf(at time.Time, format string, args ...any) {
	a.messages = append(a.messages, fmt.Sprintf("%6.2f s  ", at.Sub(a.began).Seconds())+fmt.Sprintf(format, args...))
}

func (a *audit) apply(p *process, e *event) {
	switch e.Kind {
	case ready:
		p.client = e.Visit
	case waiting:
		p.waiting++
	case acquired:
		a.acquired(p, e)
	case found:
		a.markers = append(a.markers, e.Found)
	case released:
		p.rounds++
		owner, _, _ := strings.Cut(e.Visit, "#")
		a.rounds = append(a.rounds, finished{e.Round, owner, e.Queue})
	case lost:
		a.excused[e.Visit] = true
		a.logf(e.At, "process %d lost the lock before it finished", p.id)
	case gone:
		if p != a.victim {
			p.failure = cmp.Or(p.failure, e.Text)
		}
	case stalled: // the caller kills it
	}
}

func (a *audit) acquired(p *process, e *event) {
	a.acquisitions++
	p.waiting--
	if a.victim == nil || !a.recovered.IsZero() && e.At.Add(-e.Wait).After(a.recovered) {
		a.waits = append(a.waits, e.Wait)
	}
	if a.last != nil && a.last != p {
		a.handOvers++
	}
	if a.victim != nil && a.successor == nil && p != a.victim && e.At.After(a.killedAt) {
		a.successor, a.successorAt = p, e.At
		a.logf(e.At, "process %d acquired the lock %s after the kill", p.id, brief(e.At.Sub(a.killedAt)))
	}
	a.last = p
}

func (a *audit) killed(p *process, visit string, at time.Time) {
	a.victim, a.killedAt = p, at
	a.excused[visit] = true
	a.logf(at, "SIGKILL to process %d, which holds the lock and has read the counter", p.id)
}

func (a *audit) sawQueue(queue []string, at time.Time) {
	a.queue = queue
	n := a.deadInQueue()
	a.places = max(a.places, n)
	if n > 0 || a.successor == nil || !a.recovered.IsZero() {
		return
	}
	a.recovered = at
	if a.places > 0 {
		a.logf(at, "the dead waiters left the queue %s after the kill", brief(at.Sub(a.killedAt)))
	}
}

func (a *audit) deadInQueue() (n int) {
	for _, owner := range a.queue {
		if a.victim != nil && strings.HasPrefix(owner, a.victim.client+":") {
			n++
		}
	}
	return n
}

func (a *audit) over(now time.Time, planned time.Duration) bool {
	ran := now.Sub(a.began)
	if a.recovered.IsZero() {
		return ran >= planned+overrun
	}
	return ran >= planned && now.Sub(a.recovered) >= atLeastAfter
}

func (a *audit) failure() string {
	for _, p := range a.processes {
		if p.failure != "" {
			return fmt.Sprintf("process %d: %s", p.id, p.failure)
		}
	}
	return ""
}

func (a *audit) violations() (n int) {
	for _, visit := range a.markers {
		if !a.excused[visit] {
			n++
		}
	}
	return n
}

// inversions returns the number of rounds that were out of order, and the number of rounds that can be judged.
func (a *audit) inversions() (inverted, judged int) {
	rounds := slices.SortedFunc(slices.Values(a.rounds), func(a, b finished) int { return cmp.Compare(a.round, b.round) })
	turn := make(map[string]int64, len(rounds)) // the last round of each owner
	for _, r := range rounds {
		turn[r.owner] = r.round
	}
	for i := 1; i < len(rounds); i++ {
		before := rounds[i-1]
		next := slices.IndexFunc(before.queue, func(owner string) bool { return turn[owner] > before.round })
		if next < 0 {
			continue
		}
		judged++
		if before.queue[next] != rounds[i].owner {
			inverted++
		}
	}
	return inverted, judged
}

// check does not require recovery if the run was cut short.
func (a *audit) check(counter int64, journal []string, cut bool) (wrong []string) {
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	wrote, counts := map[int]int64{}, map[int64]bool{}
	for _, line := range journal {
		var id int
		var n int64
		if _, err := fmt.Sscanf(line, "%d %d", &id, &n); err != nil {
			add("the journal has %q", line)
		}
		wrote[id]++
		counts[n] = true
	}
	for _, p := range a.processes {
		// The victim may have written a round without reporting it.
		if n := wrote[p.id]; n != p.rounds && (p != a.victim || n != p.rounds+1) {
			add("process %d reported %d rounds, its journal has %d", p.id, p.rounds, n)
		}
	}
	if n := int64(len(journal)); counter != n {
		add("the counter is %d, the workers wrote %d rounds: %d were overwritten", counter, n, n-counter)
	}
	if n := len(journal) - len(counts); n > 0 {
		add("%d rounds have duplicate numbers", n)
	}
	if n := a.violations(); n > 0 {
		add("two workers held the lock concurrently, seen %d times", n)
	}
	if n, _ := a.inversions(); n > 0 {
		add("%d rounds were out of order", n)
	}
	switch {
	case cut, !a.recovered.IsZero():
	case a.successor == nil:
		add("no worker acquired the lock within %v of the kill", overrun)
	default:
		add("dead waiters were still queued %v after the kill", overrun)
	}
	return wrong
}

func (a *audit) progress(now time.Time) string {
	var ids []string
	for _, p := range a.processes {
		if p.waiting > 0 && p != a.victim {
			ids = append(ids, fmt.Sprint(p.id))
		}
	}
	waiting := strings.Join(ids, " ")
	if n := a.deadInQueue(); n > 0 {
		waiting += fmt.Sprintf(" (%d dead)", n)
	}
	holder := "none"
	switch {
	case a.victim != nil && a.successor == nil:
		holder = fmt.Sprintf("dead:%d", a.victim.id)
	case a.last != nil:
		holder = fmt.Sprint(a.last.id)
	}
	return fmt.Sprintf("%6.2f s  holder %-6s  waiting %-8s rounds %-5d hand-overs %-5d wait %s",
		now.Sub(a.began).Seconds(), holder, waiting, len(a.rounds), a.handOvers, a.percentiles())
}

func (a *audit) summary(counter int64, took time.Duration, wrong []string) []string {
	lines := []string{"", fmt.Sprintf("%s took one lock %d times in %.1f s.", title, a.acquisitions, took.Seconds()), ""}
	row := func(name, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("  %-12s", name)+fmt.Sprintf(format, args...))
	}
	counted, two := "equal to the finished rounds", "never"
	if n := len(a.rounds); counter < int64(n) {
		counted = fmt.Sprintf("but %d rounds were finished", n)
	}
	if n := a.violations(); n > 0 {
		two = fmt.Sprintf("seen %d times", n)
	}
	row("counter", "%d, %s", counter, counted)
	row("two inside", "%s", two)
	inverted, judged := a.inversions()
	row("inversions", "%d in %d rounds with queued workers, by the server's list", inverted, judged)
	row("hand-overs", "%d from one process to another, %.0f a second", a.handOvers, float64(a.handOvers)/took.Seconds())
	row("waits", "%s", a.percentiles())
	if a.victim != nil {
		row("kill", "process %d at %.1f s, holding the lock, between its GET and its SET", a.victim.id, a.killedAt.Sub(a.began).Seconds())
	}
	if a.successor != nil {
		row("take-over", "process %d, %s after the kill (a dead holder's lease: %v)", a.successor.id,
			brief(a.successorAt.Sub(a.killedAt)), lease)
	}
	if a.places > 0 && !a.recovered.IsZero() {
		row("dead", "%d places in the queue, the last evicted %s after the kill", a.places, brief(a.recovered.Sub(a.killedAt)))
	}
	lines = append(lines, "")
	for _, w := range wrong {
		lines = append(lines, "WRONG: "+w+".")
	}
	if len(wrong) == 0 {
		lines = append(lines, "OK: no lost rounds, no overtaken workers, no two holders at the same time.")
	}
	return lines
}

func (a *audit) percentiles() string {
	if len(a.waits) == 0 {
		return "p50 -, p99 -"
	}
	sorted := slices.Sorted(slices.Values(a.waits))
	last := len(sorted) - 1
	return fmt.Sprintf("p50 %s, p99 %s", brief(sorted[last*50/100]), brief(sorted[last*99/100]))
}

func brief(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
