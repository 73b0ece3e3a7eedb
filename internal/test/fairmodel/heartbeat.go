package fairmodel

import (
	"math"
	"slices"
	"strconv"

	"github.com/redlatch/redlatch/internal/reply"
)

// Waiter is an owner that waits, and the wait in milliseconds with which it was
// queued.
type Waiter struct {
	// Owner is the waiter.
	Owner string
	// Wait is what its deadline was put off by, and what it will take off.
	Wait int64
}

// Beat is what a heartbeat is given. Times are in milliseconds.
type Beat struct {
	// Now is the time, since 1970, by the caller's clock.
	Now int64
	// Keep is how long those of the caller shall not be dead.
	Keep int64
	// Fair is the wait of callers that set none.
	Fair int64
	// Others is what is known of those that are not ours. Each counts as one that
	// takes the fair wait off, if not more.
	Others []reply.Other
	// Window is how many of the first in the queue to answer.
	Window int
	// Ours is the caller's waiters.
	Ours []Waiter
}

// Heartbeat is this library's own. It puts off the deadlines of its caller's waiters
// so far that those before them can take theirs off, and keeps the others behind
// those that moved. It returns what the script replies.
func (m *Lock) Heartbeat(b Beat) reply.Beat {
	mine := make(map[string]int64, len(b.Ours))
	for _, w := range b.Ours {
		mine[w.Owner] = w.Wait
	}
	m.putOff(b, mine)
	answer := reply.Beat{Left: Call{}.left(m), Length: int64(len(m.Queue))}
	for _, owner := range m.Queue[:min(b.Window, len(m.Queue))] {
		answer.Front = append(answer.Front, reply.Place{Owner: owner, Deadline: m.score(owner)})
	}
	for _, w := range b.Ours {
		if _, left := mine[w.Owner]; left {
			answer.Missing = append(answer.Missing, w.Owner)
			delete(mine, w.Owner)
		}
	}
	return answer
}

// putOff moves the deadlines, and leaves in mine those that it has not found.
func (m *Lock) putOff(b Beat, mine map[string]int64) {
	var ahead, before, after float64 // of the one in front: its deadline, old and new
	var seen []string
	others := make(map[string]reply.Other, len(b.Others))
	for _, o := range b.Others {
		others[o.Owner] = o
	}
	for place, owner := range m.Queue {
		old, has := m.Deadlines[owner]
		if !has || slices.Contains(seen, owner) {
			continue
		}
		wait, own := mine[owner]
		w := float64(wait)
		deadline := old
		switch {
		case own:
		case len(seen) == 0:
			w = float64(b.Fair)
		default:
			w = max(0, min(float64(b.Fair), old-before))
		}
		other, known := others[owner]
		if known && !own {
			w = max(float64(b.Fair), float64(other.Wait))
		}
		if len(seen) > 0 && after > before {
			deadline = max(deadline, after+w)
		}
		switch {
		case own:
			deadline = max(deadline, float64(b.Now+b.Keep)+ahead)
			delete(mine, owner)
		case place > 0 && other.Living:
			deadline = max(deadline, float64(b.Now+b.Keep)+ahead)
		case other.Living && !m.IsFree():
			deadline = max(deadline, float64(b.Now+b.Fair))
		}
		m.Deadlines[owner] = deadline
		seen = append(seen, owner)
		ahead, before, after = ahead+w, old, deadline
	}
}

// score is a deadline as Redis writes it, "" when there is none.
func (m *Lock) score(owner string) string {
	deadline, has := m.Deadlines[owner]
	if !has {
		return ""
	}
	return strconv.FormatFloat(deadline, 'f', -1, 64)
}

// Eviction is what an eviction is given. Times are in milliseconds.
type Eviction struct {
	// Now is the time, since 1970, by the caller's clock.
	Now int64
	// Keep is as in [Beat].
	Keep int64
	// Dead are the dead waiters, in the order of the queue, and how each was seen.
	Dead []reply.Place
	// Fall returns by how much the deadlines of the others are reduced, which depends on
	// what the server knows that the lock had left. Nil: what the model has.
	Fall func(with func(left int64) float64) float64
}

// Evict is this library's own. It removes dead waiters from the front of the queue, as long
// as they are those that were seen, and returns their owners.
func (m *Lock) Evict(e Eviction) []string {
	var evicted []string
	var late []float64
	for _, dead := range e.Dead {
		head, ok := m.head()
		if !ok || head != dead.Owner || m.score(head) != dead.Deadline {
			break
		}
		if deadline, has := m.Deadlines[head]; has {
			late = append(late, deadline)
		}
		delete(m.Deadlines, head)
		m.Queue = m.Queue[1:]
		evicted = append(evicted, head)
	}
	fall := m.fall(e, late)
	for owner := range m.Deadlines {
		m.Deadlines[owner] -= fall
	}
	if len(evicted) > 0 && m.IsFree() {
		m.tellFront(e.Now)
	}
	return evicted
}

// fall is by how much the eviction of dead waiters reduces the deadlines of the others:
// what theirs were beyond the lease and what a heartbeat keeps, but no more than leaves
// that to the others.
func (m *Lock) fall(e Eviction, late []float64) float64 {
	soonest := math.Inf(1) // of those that can wait for their turn
	for _, deadline := range m.Deadlines {
		if deadline > float64(e.Now) {
			soonest = min(soonest, deadline)
		}
	}
	with := func(left int64) float64 {
		var sum float64
		due := float64(e.Now + max(0, left) + e.Keep)
		for _, deadline := range late {
			sum += max(0, deadline-sum-due)
		}
		return min(sum, max(0, soonest-due))
	}
	switch {
	case m.IsFree():
		return with(0)
	case e.Fall != nil:
		return e.Fall(with)
	}
	return with(m.PTTL)
}

// Nudge is this library's own. It tells the first in the queue of a free lock once
// more, if that is the owner, and reports whether it did.
func (m *Lock) Nudge(owner string) bool {
	if head, ok := m.head(); !ok || head != owner || !m.IsFree() {
		return false
	}
	m.notify(owner)
	return true
}
