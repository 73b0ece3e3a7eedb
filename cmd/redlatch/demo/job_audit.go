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
	job    int64    // 0 when none was left
	owner  string   // as in queue
	queue  []string // the owners queued then, the next one first
}

// acquisition is one acquisition of the fair lock.
type acquisition struct {
	at   time.Time
	wait time.Duration
}

// jobAudit records what the workers of a run under the fair lock report, to check it at the
// end. It is for one goroutine.
type jobAudit struct {
	began     time.Time
	processes []*workerState // process id at index id-1
	holder    *workerState   // the process that has the lock, nil if none is known
	last      *workerState   // the process that had the lock last

	claims       []claim
	acquisitions []acquisition
	handOvers    int64
	collisions   collisions
	inside       map[string]bool // owners of the visits so far, each with its number
	repeated     int             // visits that had the owner and number of another

	victim      *workerState
	killedAt    time.Time
	successor   *workerState // the first with the lock after the kill
	successorAt time.Time
	places      int       // that the victim has left in the queue
	deadGoneAt  time.Time // when the last of them was gone; zero before

	messages []string // what happened, for people
}

func newJobAudit(began time.Time, n int) *jobAudit {
	a := &jobAudit{began: began, inside: map[string]bool{}}
	for id := 1; id <= n; id++ {
		a.processes = append(a.processes, &workerState{id: id, activity: starting, since: began})
	}
	return a
}

// logf adds a message.
func (a *jobAudit) logf(at time.Time, format string, args ...any) {
	a.messages = append(a.messages, fmt.Sprintf("%6.2f s  ", at.Sub(a.began).Seconds())+fmt.Sprintf(format, args...))
}

// apply enters what a process reported.
func (a *jobAudit) apply(id int, e *event) {
	c := a.processes[id-1]
	switch e.Kind {
	case ready:
		c.client = e.Owner
		c.setActivity(idle, e.At)
	case waiting:
		c.waiting++
	case acquired:
		a.entered(c, e)
	case released:
		a.claims = append(a.claims, claim{e.Visit, e.Job, queuedAs(e.Owner), e.Queue})
		if e.Job > 0 {
			c.rounds++
		}
		a.free(c, e.Owner)
	case lost:
		a.collisions.excuse(e.Owner)
		a.logf(e.At, "a worker of process %d lost the lock before it had finished, and wrote nothing", c.id)
		a.free(c, e.Owner)
	case found:
		a.collisions.add(e.Found)
	case failed:
		c.text = e.Text
		c.setActivity(broke, e.At)
	case gone:
		c.exited(e)
	case stalled: // what follows is the caller's to decide
	}
	a.updateActivity(c, e.At)
}

// entered enters that a worker of c is inside.
func (a *jobAudit) entered(c *workerState, e *event) {
	c.waiting--
	if a.inside[e.Owner] {
		a.repeated++
	}
	a.inside[e.Owner] = true
	if len(a.acquisitions) > 0 {
		a.handOvers++
	}
	if a.victim != nil && a.successor == nil && c != a.victim && e.At.After(a.killedAt) {
		a.successor, a.successorAt = c, e.At
		a.logf(e.At, "a worker of process %d has the lock, %s after the kill", c.id, seconds(e.At.Sub(a.killedAt)))
	}
	a.acquisitions = append(a.acquisitions, acquisition{e.At, e.Wait})
	c.waits = append(c.waits, e.Wait)
	c.owner = e.Owner
	a.holder, a.last = c, c
}

// free enters that owner is not inside any more.
func (a *jobAudit) free(c *workerState, owner string) {
	if a.holder == c && c.owner == owner {
		a.holder = nil
	}
}

// updateActivity sets what a process is doing: the most that one of its workers does.
func (a *jobAudit) updateActivity(c *workerState, at time.Time) {
	next := idle
	switch {
	case slices.Contains([]activity{starting, dead, ended, broke}, c.activity):
		return
	case a.holder == c:
		next = holds
	case c.waiting > 0:
		next = waits
	}
	if c.activity != next {
		c.setActivity(next, at)
	}
}

// killed enters that a process was killed while its worker was inside as owner.
func (a *jobAudit) killed(id int, owner string, at time.Time) {
	c := a.processes[id-1]
	a.victim, a.killedAt = c, at
	a.collisions.excuse(owner)
	c.setActivity(dead, at)
	a.free(c, owner)
	a.logf(at, "SIGKILL to process %d: one worker holds the lock, others are queued", id)
}

// sawQueue enters the queue as it was at some moment.
func (a *jobAudit) sawQueue(queue []string, at time.Time) {
	if a.victim == nil {
		return
	}
	n := a.deadIn(queue)
	a.places = max(a.places, n)
	if n == 0 && a.successor != nil && a.deadGoneAt.IsZero() {
		a.deadGoneAt = at
		if a.places > 0 {
			a.logf(at, "the dead waiters left the queue, %s after the kill", seconds(at.Sub(a.killedAt)))
		}
	}
}

// deadIn counts the places in the queue that belong to the victim.
func (a *jobAudit) deadIn(queue []string) int {
	if a.victim == nil {
		return 0
	}
	return placesOf(a.victim.client, queue)
}

// processOf returns the process that an owner belongs to, nil if that is unknown.
func (a *jobAudit) processOf(owner string) *workerState {
	for _, c := range a.processes {
		if c.client != "" && strings.HasPrefix(owner, c.client+":") {
			return c
		}
	}
	return nil
}

// jobs counts the jobs that were reported as done.
func (a *jobAudit) jobs() int64 {
	var n int64
	for _, c := range a.processes {
		n += c.rounds
	}
	return n
}

// failure returns why a process could not go on, "" while all are well.
func (a *jobAudit) failure() string {
	for _, c := range a.processes {
		if c.activity == broke {
			return fmt.Sprintf("process %d: %s", c.id, c.text)
		}
	}
	return ""
}

// readyAll reports whether all processes are connected.
func (a *jobAudit) readyAll() bool {
	return !slices.ContainsFunc(a.processes, func(c *workerState) bool { return c.activity == starting })
}

// allGone reports whether all processes have ended.
func (a *jobAudit) allGone() bool {
	return !slices.ContainsFunc(a.processes, func(c *workerState) bool { return c.activity != ended && c.activity != dead })
}

// holderName is the process that has the lock, for the output.
func (a *jobAudit) holderName() string {
	switch {
	case a.holder != nil:
		return fmt.Sprint(a.holder.id)
	case a.victim != nil && a.successor == nil:
		return fmt.Sprintf("dead:%d", a.victim.id)
	}
	return "none"
}
