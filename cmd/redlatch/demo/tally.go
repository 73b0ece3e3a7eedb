package demo

import (
	"fmt"
	"slices"
	"time"
)

// state is what a worker is doing, as far as is known.
type state string

const (
	starting state = "starting"
	idle     state = "thinks"
	waits    state = "waits"
	holds    state = "HOLDS"
	dead     state = "KILLED"
	ended    state = "ended"
	broke    state = "FAILED"
)

// contender is one worker in the books.
type contender struct {
	id     int
	pid    int
	state  state
	since  time.Time // of state
	owner  string    // of the last acquisition
	rounds int64     // reported as released
	waits  []time.Duration
	text   string // why it failed

	client  string // what the owners of a crew begin with
	waiting int    // how many of a crew wait
}

// tally keeps the books of a run. It is for one goroutine.
type tally struct {
	lease   time.Duration
	began   time.Time
	workers []*contender // worker id at index id-1
	holder  *contender   // who is inside, nil if nobody is known to be
	last    *contender   // who was inside last

	acquisitions int64
	handOvers    int64
	waits        []time.Duration // without those for the dead worker's lease
	met          meetings

	victim   *contender
	killedAt time.Time
	heir     *contender
	heirAt   time.Time

	news []string // what happened, for people
}

func newTally(began time.Time, lease time.Duration, n int) *tally {
	t := &tally{began: began, lease: lease}
	for id := 1; id <= n; id++ {
		t.workers = append(t.workers, &contender{id: id, state: starting, since: began})
	}
	return t
}

// say adds to the news.
func (t *tally) say(at time.Time, format string, args ...any) {
	t.news = append(t.news, fmt.Sprintf("%6.2f s  ", at.Sub(t.began).Seconds())+fmt.Sprintf(format, args...))
}

// apply enters what a worker reported.
func (t *tally) apply(id int, e *event) {
	c := t.workers[id-1]
	switch e.Kind {
	case ready:
		c.become(idle, e.At)
	case waiting:
		c.become(waits, e.At)
	case acquired:
		t.acquired(c, e)
	case released:
		c.rounds++
		c.become(idle, e.At)
		if t.holder == c {
			t.holder = nil
		}
	case lost:
		t.met.excuse(e.Owner)
		t.say(e.At, "worker %d lost the lock before it had finished, and wrote nothing", c.id)
	case found:
		t.met.find(e.Found)
	case failed:
		c.text = e.Text
		c.become(broke, e.At)
	case gone:
		c.left(e)
	case stalled: // what follows is the caller's to decide
	}
}

// acquired enters that c is inside.
func (t *tally) acquired(c *contender, e *event) {
	t.acquisitions++
	c.owner = e.Owner
	c.become(holds, e.At)
	if t.last != nil && t.last != c {
		t.handOvers++
	}
	if t.victim != nil && t.heir == nil && c != t.victim && e.At.After(t.killedAt) {
		t.heir, t.heirAt = c, e.At
		t.say(e.At, "worker %d has the lock, %s after the kill", c.id, seconds(t.takeOver()))
	}
	if !t.spansKill(e) {
		t.waits = append(t.waits, e.Wait)
		c.waits = append(c.waits, e.Wait)
	}
	t.holder, t.last = c, c
}

// spansKill reports whether the wait that ended with e was, at least partly, one
// for the dead worker's lease to run out.
func (t *tally) spansKill(e *event) bool {
	if t.victim == nil || e.At.Before(t.killedAt) {
		return false
	}
	return t.heir == nil || e.At.Add(-e.Wait).Before(t.heirAt)
}

// killed enters that the worker was killed while it was inside.
func (t *tally) killed(id int, at time.Time) {
	c := t.workers[id-1]
	t.victim, t.killedAt = c, at
	t.met.excuse(c.owner)
	c.become(dead, at)
	if t.holder == c {
		t.holder = nil
	}
	t.say(at, "SIGKILL to worker %d, which holds the lock and has read the counter", id)
}

// left enters that a process is gone.
func (c *contender) left(e *event) {
	switch {
	case c.state == dead:
	case e.Text != "" && c.state != broke:
		c.text = e.Text
		c.become(broke, e.At)
	case c.state != broke:
		c.become(ended, e.At)
	}
}

func (c *contender) become(s state, at time.Time) { c.state, c.since = s, at }

// takeOver is the time from the kill to the next one inside.
func (t *tally) takeOver() time.Duration { return t.heirAt.Sub(t.killedAt) }

// violations counts how often two were inside.
func (t *tally) violations() int { return t.met.count() }

// failure returns why a worker could not go on, "" while all are well.
func (t *tally) failure() string {
	for _, c := range t.workers {
		if c.state == broke {
			return fmt.Sprintf("worker %d: %s", c.id, c.text)
		}
	}
	return ""
}

// readyAll reports whether all workers are connected.
func (t *tally) readyAll() bool {
	return !slices.ContainsFunc(t.workers, func(c *contender) bool { return c.state == starting })
}

// audit compares what the workers reported with what is on the server. It
// returns what is wrong.
func (t *tally) audit(counter int64, journal map[int]int64) []string {
	var wrong []string
	var sum int64
	for _, c := range t.workers {
		wrote := journal[c.id]
		sum += wrote
		// The dead one may have written a round that it could not report.
		if wrote != c.rounds && (c != t.victim || wrote != c.rounds+1) {
			wrong = append(wrong, fmt.Sprintf("worker %d reported %d rounds, its journal has %d", c.id, c.rounds, wrote))
		}
	}
	if counter != sum {
		wrong = append(wrong, fmt.Sprintf("the counter is %d, the workers wrote %d rounds: %d were overwritten",
			counter, sum, sum-counter))
	}
	if n := t.violations(); n > 0 {
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
