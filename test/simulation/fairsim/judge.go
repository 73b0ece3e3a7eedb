package fairsim

import (
	"fmt"

	"github.com/redlatch/redlatch/internal/fairqueue/liveness"
)

// waiter is one acquisition of a worker. Only the judge sees those of all processes.
type waiter struct {
	owner string
	of    *process
	wait  int64
	live  bool // a live caller waits for this

	// onMessage receives messages while there is a subscription, and that it works from now on.
	onMessage func(works bool)

	waits bool  // has been queued, and waits still
	holds bool  // believes to hold the lock
	since int64 // when it was queued first
	heard int64 // since when it has had a subscription
}

// place is a place in the queue.
type place struct {
	waiter  *waiter // the waiter that has it, or had it
	seq     int64   // in the order of queueing
	diedAt  int64   // 0: it is alive
	adopted bool    // a dead one's, used by another acquisition of the same thread
}

// How a place is lost.
const (
	pruned  = "pruned"
	evicted = "evicted"
)

// judge knows which processes are alive, counts, and records what must not be.
type judge struct {
	sim       *Sim
	places    map[string]*place
	seq       int64
	waiting   int // how many live waiters there are
	holder    *waiter
	head      string // of the queue
	headSince int64
	last      int64 // until when idle has been counted

	lately, before int   // how long the queue was at most, lately and before that
	rotated        int64 // when lately began

	Result
}

// fault records something that must not be. A few are enough.
func (j *judge) fault(format string, args ...any) {
	j.Faults++
	if len(j.FirstFaults) < 10 {
		at := float64(j.sim.now-began) / 3_600_000
		j.FirstFaults = append(j.FirstFaults, fmt.Sprintf("%.4f h: ", at)+fmt.Sprintf(format, args...))
	}
}

// account counts the time since it was last called. It is called before anything
// changes that matters for it.
func (j *judge) account() {
	v := j.sim.server
	now, from := j.sim.now, j.last
	j.last = now
	if j.waiting == 0 {
		return
	}
	if !v.lock.IsFree() {
		from = max(from, v.expires)
	}
	if now > from {
		j.Idle += now - from
	}
}

// refused takes in that the waiter is in the queue now, and reports whether it was
// queued just now.
func (j *judge) refused(w *waiter) bool {
	j.wait(w)
	p := j.places[w.owner]
	switch {
	case p == nil:
		j.seq++
		j.places[w.owner] = &place{waiter: w, seq: j.seq}
		j.checkDeadlines()
		return true
	case p.waiter != w:
		p.waiter, p.adopted, p.diedAt = w, true, 0
	}
	return false
}

// front records the first in the queue after each script.
func (j *judge) front() {
	head := ""
	if q := j.sim.server.lock.Queue; len(q) > 0 {
		head = q[0]
	}
	if head != j.head {
		j.head, j.headSince = head, j.sim.now
	}
}

// wait counts a waiter as waiting.
func (j *judge) wait(w *waiter) {
	if !w.waits && w.live {
		j.account()
		w.waits, w.since = true, j.sim.now
		j.waiting++
	}
}

// rest counts a waiter as waiting no more.
func (j *judge) rest(w *waiter) {
	if w.waits {
		j.account()
		w.waits = false
		j.waiting--
	}
}

// granted takes in that the server has given the lock to a waiter.
func (j *judge) granted(w *waiter) {
	j.Granted++
	p := j.places[w.owner]
	if p != nil {
		for _, other := range j.places {
			if other.seq < p.seq && other.diedAt == 0 && !other.adopted && other.waiter.live {
				j.fault("%s was passed by %s", other.waiter.owner, w.owner)
			}
		}
		delete(j.places, w.owner)
		j.checkWoken(w)
	} else if len(j.places) > 0 && j.sim.server.lock.Counts[w.owner] == 1 { // not entered again after a lost reply
		j.fault("%s came in from outside of the queue", w.owner)
	}
	if w.waits {
		j.Longest = max(j.Longest, j.sim.now-w.since)
	}
	j.rest(w)
}

// checkWoken compares for how long a live head let a free lock lie with what is promised:
// that it is woken within a period and some seconds, if nothing hindered it, and a process
// of ours could see it.
func (j *judge) checkWoken(w *waiter) {
	v := j.sim.server
	from := max(v.freeSince, j.headSince, w.of.troubled, w.heard)
	for _, q := range j.sim.processes {
		if q.heartbeat == nil || !q.calm() {
			continue
		}
		slept := j.sim.now - max(from, q.heartbeat.calmSince)
		if slept > period.Milliseconds()+5000 {
			j.fault("%s slept for %d ms while it could have the lock", w.owner, slept)
			return
		}
	}
}

// believes records that a waiter knows that it holds the lock.
func (j *judge) believes(w *waiter) {
	if j.holder != nil {
		j.fault("%s holds the lock, and %s too", j.holder.owner, w.owner)
	}
	w.holds, j.holder = true, w
}

// expired takes in that a lease is over. A holder that could not renew it for so long
// has lost the lock, which no lock with leases can prevent.
func (j *judge) expired() {
	if j.holder != nil {
		j.holder, j.holder.holds = nil, false
		j.Lost++
	}
}

// ends records that a waiter waits or holds no more. A place that it has is a dead one's
// from now on.
func (j *judge) ends(w *waiter) {
	j.rest(w)
	w.live = false
	if w.holds {
		w.holds = false
		if j.holder == w {
			j.holder = nil
		}
	}
	if p := j.places[w.owner]; p != nil && p.waiter == w && p.diedAt == 0 {
		p.diedAt = j.sim.now
		j.Dead++
	}
}

// left takes in that the owner was taken out of the queue at its own wish.
func (j *judge) left(owner string) {
	delete(j.places, owner)
}

// removed takes in that an owner's place was taken from it.
func (j *judge) removed(owner, how string) {
	p := j.places[owner]
	if p == nil {
		j.fault("%s was %s without being queued", owner, how)
		return
	}
	delete(j.places, owner)
	switch {
	case p.diedAt != 0:
		j.checkPromise(p, how)
	case p.adopted:
		j.Adopted++
	default:
		j.count(p, how)
	}
}

// count counts a live waiter that lost its place.
func (j *judge) count(p *place, how string) {
	if how == evicted {
		j.fault("%s was evicted alive", p.waiter.owner)
	}
	native := p.waiter.of.redlatch
	switch {
	case how == pruned && native:
		j.PrunedRedlatch++
	case how == pruned && j.sim.kept():
		j.PrunedRedisson++
	case how == pruned:
		j.PrunedUnkept++
	case native:
		j.EvictedRedlatch++
	default:
		j.EvictedRedisson++
	}
}

// checkPromise holds the removal of a dead place against what is promised: that it
// comes within its grace, a period and two seconds from when the lock is free, if a
// process of ours could look at it for so long.
func (j *judge) checkPromise(p *place, how string) {
	if how == evicted {
		j.EvictedDead++
	} else {
		j.PrunedDead++
	}
	v := j.sim.server
	if !v.lock.IsFree() || p.waiter.owner != j.head {
		return // not in the way, or not for a moment
	}
	from := max(p.diedAt, v.freeSince, j.headSince)
	j.LongestBlock = max(j.LongestBlock, j.sim.now-from)
	for _, q := range j.sim.processes {
		k := q.heartbeat
		if k == nil || !q.calm() {
			continue
		}
		allowed := grace + period
		if !p.waiter.of.redlatch {
			allowed = liveness.RedissonGrace(grace) + period
		}
		if late := j.sim.now - max(from, k.calmSince) - allowed.Milliseconds(); late > 2000 {
			j.fault("%s blocked the free lock for %d ms too long", p.waiter.owner, late)
		}
	}
}

const (
	// memory is for how long the judge knows how long the queue was: what was put off
	// for those that were in it then comes to nothing in that time.
	memory = 2 * 3_600_000
	// slack is how many waits a deadline may be too far. A heartbeat must reckon with the
	// fair wait where a waiter in front takes less off in the end. That must not add up.
	slack = 8
)

// most returns how many were queued at most in that time.
func (j *judge) most(n int) int64 {
	if j.sim.now-j.rotated > memory {
		j.rotated, j.before, j.lately = j.sim.now, j.lately, 0
	}
	j.lately = max(j.lately, n)
	return int64(max(j.lately, j.before))
}

// checkDeadlines holds every deadline against its bound: for n in the queue, n + 1
// waits from the end of the longest lease. By how much that is exceeded is counted;
// that it comes back, is checked.
func (j *judge) checkDeadlines() {
	v := j.sim.server
	n := len(v.lock.Queue)
	longest := j.sim.cfg.Load.Hold.Milliseconds() + lease + 100 // clocks differ
	wait := max(fairWait, j.sim.cfg.Load.Wait.Milliseconds())
	strict := float64(j.sim.now + longest + int64(n+1)*wait)
	bound := float64(j.sim.now + longest + (j.most(n)+1+slack)*wait)
	for i, owner := range v.lock.Queue {
		deadline := v.lock.Deadlines[owner]
		j.Over = max(j.Over, int64(deadline-strict))
		if deadline > bound && j.sim.cfg.Fleet.Redlatch > 0 {
			j.fault("the deadline of %s, %d in the queue, is %.0f ms too far", owner, i+1, deadline-bound)
		}
	}
}
