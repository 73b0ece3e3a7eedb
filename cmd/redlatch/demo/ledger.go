package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// claim is one visit to the critical section under the fair lock, as its worker
// reported it. The server numbered it and read the queue in one moment, while the
// lock was held.
type claim struct {
	number int64
	job    int64 // 0 when none was left
	owner  string
	queue  []string // who was queued then, the next one first
}

// entry is one acquisition of the fair lock.
type entry struct {
	at   time.Time
	wait time.Duration
}

// ledger keeps the books of a run under the fair lock. It is for one goroutine.
type ledger struct {
	began  time.Time
	crews  []*contender // process id at index id-1
	holder *contender   // whose worker is inside, nil if nobody is known to be
	last   *contender   // whose worker was inside last

	claims    []claim
	entries   []entry
	handOvers int64
	met       meetings

	victim   *contender
	killedAt time.Time
	heir     *contender // who got in first after the kill
	heirAt   time.Time
	places   int       // that the victim has left in the queue
	clearAt  time.Time // when the last of them was gone; zero before

	news []string // what happened, for people
}

func newLedger(began time.Time, n int) *ledger {
	l := &ledger{began: began}
	for id := 1; id <= n; id++ {
		l.crews = append(l.crews, &contender{id: id, state: starting, since: began})
	}
	return l
}

// say adds to the news.
func (l *ledger) say(at time.Time, format string, args ...any) {
	l.news = append(l.news, fmt.Sprintf("%6.2f s  ", at.Sub(l.began).Seconds())+fmt.Sprintf(format, args...))
}

// apply enters what a process reported.
func (l *ledger) apply(id int, e *event) {
	c := l.crews[id-1]
	switch e.Kind {
	case ready:
		c.client = e.Owner
		c.become(idle, e.At)
	case waiting:
		c.waiting++
	case acquired:
		l.entered(c, e)
	case released:
		l.claims = append(l.claims, claim{e.Visit, e.Job, e.Owner, e.Queue})
		if e.Job > 0 {
			c.rounds++
		}
		l.free(c, e.Owner)
	case lost:
		l.met.excuse(e.Owner)
		l.say(e.At, "a worker of process %d lost the lock before it had finished, and wrote nothing", c.id)
		l.free(c, e.Owner)
	case found:
		l.met.find(e.Found)
	case failed:
		c.text = e.Text
		c.become(broke, e.At)
	case gone:
		c.left(e)
	case stalled: // what follows is the caller's to decide
	}
	l.restate(c, e.At)
}

// entered enters that a worker of c is inside.
func (l *ledger) entered(c *contender, e *event) {
	c.waiting--
	if len(l.entries) > 0 {
		l.handOvers++
	}
	if l.victim != nil && l.heir == nil && c != l.victim && e.At.After(l.killedAt) {
		l.heir, l.heirAt = c, e.At
		l.say(e.At, "a worker of process %d has the lock, %s after the kill", c.id, seconds(e.At.Sub(l.killedAt)))
	}
	l.entries = append(l.entries, entry{e.At, e.Wait})
	c.waits = append(c.waits, e.Wait)
	c.owner = e.Owner
	l.holder, l.last = c, c
}

// free enters that owner is not inside any more.
func (l *ledger) free(c *contender, owner string) {
	if l.holder == c && c.owner == owner {
		l.holder = nil
	}
}

// restate says what a process is doing: the most that one of its workers does.
func (l *ledger) restate(c *contender, at time.Time) {
	next := idle
	switch {
	case slices.Contains([]state{starting, dead, ended, broke}, c.state):
		return
	case l.holder == c:
		next = holds
	case c.waiting > 0:
		next = waits
	}
	if c.state != next {
		c.become(next, at)
	}
}

// killed enters that a process was killed while its worker was inside as owner.
func (l *ledger) killed(id int, owner string, at time.Time) {
	c := l.crews[id-1]
	l.victim, l.killedAt = c, at
	l.met.excuse(owner)
	c.become(dead, at)
	l.free(c, owner)
	l.say(at, "SIGKILL to process %d: one worker holds the lock, others are queued", id)
}

// saw enters the queue as it was at some moment.
func (l *ledger) saw(line []string, at time.Time) {
	if l.victim == nil {
		return
	}
	n := l.deadIn(line)
	l.places = max(l.places, n)
	if n == 0 && l.heir != nil && l.clearAt.IsZero() {
		l.clearAt = at
		if l.places > 0 {
			l.say(at, "the dead have left the queue, %s after the kill", seconds(at.Sub(l.killedAt)))
		}
	}
}

// deadIn counts the places in the queue that belong to the victim.
func (l *ledger) deadIn(line []string) int {
	if l.victim == nil {
		return 0
	}
	return placesOf(l.victim.client, line)
}

// crewOf returns the process that an owner belongs to, nil if that is unknown.
func (l *ledger) crewOf(owner string) *contender {
	for _, c := range l.crews {
		if c.client != "" && strings.HasPrefix(owner, c.client+":") {
			return c
		}
	}
	return nil
}

// jobs counts the jobs that were reported as done.
func (l *ledger) jobs() int64 {
	var n int64
	for _, c := range l.crews {
		n += c.rounds
	}
	return n
}

// failure returns why a process could not go on, "" while all are well.
func (l *ledger) failure() string {
	for _, c := range l.crews {
		if c.state == broke {
			return fmt.Sprintf("process %d: %s", c.id, c.text)
		}
	}
	return ""
}

// readyAll reports whether all processes are connected.
func (l *ledger) readyAll() bool {
	return !slices.ContainsFunc(l.crews, func(c *contender) bool { return c.state == starting })
}

// allGone reports whether all processes have ended.
func (l *ledger) allGone() bool {
	return !slices.ContainsFunc(l.crews, func(c *contender) bool { return c.state != ended && c.state != dead })
}

// holderName is whose worker is inside, for people.
func (l *ledger) holderName() string {
	switch {
	case l.holder != nil:
		return fmt.Sprint(l.holder.id)
	case l.victim != nil && l.heir == nil:
		return fmt.Sprintf("dead:%d", l.victim.id)
	}
	return "none"
}
