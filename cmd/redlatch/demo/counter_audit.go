package demo

import (
	"fmt"
	"slices"
	"time"
)

// activity is what a worker is doing, as far as is known.
type activity string

const (
	starting activity = "starting"
	idle     activity = "thinks"
	waits    activity = "waits"
	holds    activity = "HOLDS"
	dead     activity = "KILLED"
	ended    activity = "ended"
	broke    activity = "FAILED"
)

// workerState is what the audit knows of one worker, or of one process of workers.
type workerState struct {
	id       int
	pid      int
	activity activity
	since    time.Time // of state
	owner    string    // of the last acquisition
	rounds   int64     // reported as released
	waits    []time.Duration
	text     string // why it failed

	client  string // what the owners of the process begin with
	waiting int    // how many workers of the process wait
}

// counterAudit records what the workers of a run report, to check it at the end. It is for
// one goroutine.
type counterAudit struct {
	lease   time.Duration
	began   time.Time
	workers []*workerState // worker id at index id-1
	holder  *workerState   // the worker with the lock, nil if none is known
	last    *workerState   // the worker that had the lock last

	acquisitions int64
	handOvers    int64
	waits        []time.Duration // without waits for the dead worker's lease
	collisions   collisions

	victim      *workerState
	killedAt    time.Time
	successor   *workerState
	successorAt time.Time

	messages []string // what happened, for people
}

func newCounterAudit(began time.Time, lease time.Duration, n int) *counterAudit {
	a := &counterAudit{began: began, lease: lease}
	for id := 1; id <= n; id++ {
		a.workers = append(a.workers, &workerState{id: id, activity: starting, since: began})
	}
	return a
}

// logf adds a message.
func (a *counterAudit) logf(at time.Time, format string, args ...any) {
	a.messages = append(a.messages, fmt.Sprintf("%6.2f s  ", at.Sub(a.began).Seconds())+fmt.Sprintf(format, args...))
}

// apply enters what a worker reported.
func (a *counterAudit) apply(id int, e *event) {
	c := a.workers[id-1]
	switch e.Kind {
	case ready:
		c.setActivity(idle, e.At)
	case waiting:
		c.setActivity(waits, e.At)
	case acquired:
		a.acquired(c, e)
	case released:
		c.rounds++
		c.setActivity(idle, e.At)
		if a.holder == c {
			a.holder = nil
		}
	case lost:
		a.collisions.excuse(e.Owner)
		a.logf(e.At, "worker %d lost the lock before it had finished, and wrote nothing", c.id)
	case found:
		a.collisions.add(e.Found)
	case failed:
		c.text = e.Text
		c.setActivity(broke, e.At)
	case gone:
		c.exited(e)
	case stalled: // what follows is the caller's to decide
	}
}

// acquired enters that c is inside.
func (a *counterAudit) acquired(c *workerState, e *event) {
	a.acquisitions++
	c.owner = e.Owner
	c.setActivity(holds, e.At)
	if a.last != nil && a.last != c {
		a.handOvers++
	}
	if a.victim != nil && a.successor == nil && c != a.victim && e.At.After(a.killedAt) {
		a.successor, a.successorAt = c, e.At
		a.logf(e.At, "worker %d has the lock, %s after the kill", c.id, seconds(a.takeOver()))
	}
	if !a.spansKill(e) {
		a.waits = append(a.waits, e.Wait)
		c.waits = append(c.waits, e.Wait)
	}
	a.holder, a.last = c, c
}

// spansKill reports whether the wait that ended with e was, at least partly, one
// for the dead worker's lease to run out.
func (a *counterAudit) spansKill(e *event) bool {
	if a.victim == nil || e.At.Before(a.killedAt) {
		return false
	}
	return a.successor == nil || e.At.Add(-e.Wait).Before(a.successorAt)
}

// killed enters that the worker was killed while it was inside.
func (a *counterAudit) killed(id int, at time.Time) {
	c := a.workers[id-1]
	a.victim, a.killedAt = c, at
	a.collisions.excuse(c.owner)
	c.setActivity(dead, at)
	if a.holder == c {
		a.holder = nil
	}
	a.logf(at, "SIGKILL to worker %d, which holds the lock and has read the counter", id)
}

// exited enters that a process is gone.
func (c *workerState) exited(e *event) {
	switch {
	case c.activity == dead:
	case e.Text != "" && c.activity != broke:
		c.text = e.Text
		c.setActivity(broke, e.At)
	case c.activity != broke:
		c.setActivity(ended, e.At)
	}
}

func (c *workerState) setActivity(s activity, at time.Time) { c.activity, c.since = s, at }

// takeOver is the time from the kill to the next one inside.
func (a *counterAudit) takeOver() time.Duration { return a.successorAt.Sub(a.killedAt) }

// violations counts how often two were inside.
func (a *counterAudit) violations() int { return a.collisions.count() }

// failure returns why a worker could not go on, "" while all are well.
func (a *counterAudit) failure() string {
	for _, c := range a.workers {
		if c.activity == broke {
			return fmt.Sprintf("worker %d: %s", c.id, c.text)
		}
	}
	return ""
}

// readyAll reports whether all workers are connected.
func (a *counterAudit) readyAll() bool {
	return !slices.ContainsFunc(a.workers, func(c *workerState) bool { return c.activity == starting })
}

// check compares what the workers reported with what is on the server. It
// returns what is wrong.
func (a *counterAudit) check(counter int64, journal map[int]int64) []string {
	var wrong []string
	var sum int64
	for _, c := range a.workers {
		wrote := journal[c.id]
		sum += wrote
		// The killed worker may have written a round that it could not report.
		if wrote != c.rounds && (c != a.victim || wrote != c.rounds+1) {
			wrong = append(wrong, fmt.Sprintf("worker %d reported %d rounds, its journal has %d", c.id, c.rounds, wrote))
		}
	}
	if counter != sum {
		wrong = append(wrong, fmt.Sprintf("the counter is %d, the workers wrote %d rounds: %d were overwritten",
			counter, sum, sum-counter))
	}
	if n := a.violations(); n > 0 {
		wrong = append(wrong, fmt.Sprintf("two were inside, seen %d times", n))
	}
	return wrong
}

// percentile returns the p-th percentile of waits, 0 of none.
func percentile(waits []time.Duration, p int) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(waits))
	return sorted[(len(sorted)-1)*p/100]
}

// seconds shows a time of some seconds.
func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// short shows a time that is mostly whole seconds.
func short(d time.Duration) string { return fmt.Sprintf("%g s", d.Seconds()) }

// millis shows a time that is mostly below a second.
func millis(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}
