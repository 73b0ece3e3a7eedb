package fairmodel

import (
	"slices"
	"strconv"

	"github.com/redlatch/redlatch/codec"
)

// Waiter is an owner that waits, and the wait in milliseconds with which it was
// queued.
type Waiter struct {
	Owner string
	Wait  int64
}

// Beat is what a heartbeat is given. Times are in milliseconds.
type Beat struct {
	Now, Keep, Fair int64
	AliveHead       string // who is known to live if it is the first; "": nobody
	// Living is others that are known to live, and to be kept like ours as long as
	// they are not the first. The script has no such argument: it is here to be tried
	// in a simulation.
	Living map[string]bool
	Window int // how many of the first in the queue to answer
	Ours   []Waiter
	// Left is as in [Call].
	Left func(most int64) int64
}

// Heartbeat is this library's own. It puts off the deadlines of its caller's waiters
// so far that those before them can take theirs off, and keeps the others behind
// those that moved. It returns what the script replies.
func (m *Lock) Heartbeat(b Beat) codec.Beat {
	mine := make(map[string]int64, len(b.Ours))
	for _, w := range b.Ours {
		mine[w.Owner] = w.Wait
	}
	m.putOff(b, mine)
	answer := codec.Beat{Left: Call{Left: b.Left}.left(m), Length: int64(len(m.Queue))}
	for _, owner := range m.Queue[:min(b.Window, len(m.Queue))] {
		answer.Front = append(answer.Front, codec.Place{Owner: owner, Deadline: m.score(owner)})
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
		if len(seen) > 0 && after > before {
			deadline = max(deadline, after+w)
		}
		switch {
		case own:
			deadline = max(deadline, float64(b.Now+b.Keep)+ahead)
			delete(mine, owner)
		case place == 0 && owner == b.AliveHead && !m.IsFree():
			deadline = max(deadline, float64(b.Now+b.Fair))
		case place > 0 && b.Living[owner]:
			deadline = max(deadline, float64(b.Now+b.Keep)+ahead)
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
	Now, Keep int64
	Dead      []codec.Place
	// Left is as in [Call].
	Left func(most int64) int64
}

// Evict is this library's own. It removes the dead from the front of the queue, as
// long as they are those that were seen, and returns their owners.
func (m *Lock) Evict(e Eviction) []string {
	var evicted []string
	shift, left := 0.0, float64(max(0, Call{Left: e.Left}.left(m)))
	for _, dead := range e.Dead {
		head, ok := m.head()
		if !ok || head != dead.Owner || m.score(head) != dead.Deadline {
			break
		}
		if deadline, has := m.Deadlines[head]; has {
			shift += max(0, deadline-shift-float64(e.Now)-left-float64(e.Keep))
		}
		delete(m.Deadlines, head)
		m.Queue = m.Queue[1:]
		evicted = append(evicted, head)
	}
	for owner := range m.Deadlines {
		m.Deadlines[owner] -= shift
	}
	if len(evicted) > 0 && m.IsFree() {
		m.tellFront(e.Now)
	}
	return evicted
}

// Nudge is this library's own. It tells the first in the queue of a free lock once
// more, if that is the owner, and reports whether it did.
func (m *Lock) Nudge(owner string) bool {
	if head, ok := m.head(); !ok || head != owner || !m.IsFree() {
		return false
	}
	m.tell(owner)
	return true
}
