package luasrc

import (
	"math"
	"slices"
	"strconv"
)

// queueCall is what a call that looks after a queue is given, and what only the
// server can tell of it. Times are in milliseconds.
type queueCall struct {
	fairCall
	keep, fair int64
	window     int
	mine       []own
	others     []other
	dead       []seenEntry
	// remains is the deadline that a queued owner still has after an
	// eviction, to find out what the lock had left.
	remains *seenEntry
}

// seenEntry is an owner and the deadline that it was seen with.
type seenEntry struct {
	owner    string
	deadline float64
	has      bool   // it has a deadline
	text     string // what is sent for it
}

// Heartbeat is this library's own. It puts off the deadlines of its caller's waiters
// so far that those before them can take theirs off, and keeps the others behind
// those that moved. Like all of the model, it returns the script's reply.
func (m *fairModel) Heartbeat(c queueCall) any {
	mine := make(map[string]int64, len(c.mine))
	for _, w := range c.mine {
		mine[w.owner] = w.wait
	}
	m.putOff(c, mine)
	var left any = fairCall{}.left(m)
	if !m.IsFree() {
		left = about(m.PTTL)
	}
	front, missing := []any{}, []any{}
	for _, owner := range m.Queue[:min(c.window, len(m.Queue))] {
		front = append(front, owner, m.score(owner))
	}
	for _, w := range c.mine {
		if _, left := mine[w.owner]; left {
			missing = append(missing, w.owner)
			delete(mine, w.owner)
		}
	}
	return []any{left, front, missing, int64(len(m.Queue))}
}

// putOff moves the deadlines, and leaves in mine those that it has not found.
func (m *fairModel) putOff(b queueCall, mine map[string]int64) {
	var ahead, before, after float64 // of the one in front: its deadline, old and new
	var seen []string
	others := make(map[string]other, len(b.others))
	for _, o := range b.others {
		others[o.owner] = o
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
			w = float64(b.fair)
		default:
			w = max(0, min(float64(b.fair), old-before))
		}
		o, known := others[owner]
		if known && !own {
			w = max(float64(b.fair), float64(o.wait))
		}
		if len(seen) > 0 && after > before {
			deadline = max(deadline, after+w)
		}
		switch {
		case own:
			deadline = max(deadline, float64(b.Now+b.keep)+ahead)
			delete(mine, owner)
		case place > 0 && o.lives:
			deadline = max(deadline, float64(b.Now+b.keep)+ahead)
		case o.lives && !m.IsFree():
			deadline = max(deadline, float64(b.Now+b.fair))
		}
		m.Deadlines[owner] = deadline
		seen = append(seen, owner)
		ahead, before, after = ahead+w, old, deadline
	}
}

// score is a deadline as Redis writes it, "" when there is none.
func (m *fairModel) score(owner string) string {
	deadline, has := m.Deadlines[owner]
	if !has {
		return ""
	}
	return strconv.FormatFloat(deadline, 'f', -1, 64)
}

// Evict is this library's own. It removes dead waiters from the front of the queue, as long
// as they are those that were seen, and returns their owners.
func (m *fairModel) Evict(c queueCall) any {
	evicted := []any{}
	var late []float64
	for _, dead := range c.dead {
		head, ok := m.head()
		if !ok || head != dead.owner || m.score(head) != dead.text {
			break
		}
		if deadline, has := m.Deadlines[head]; has {
			late = append(late, deadline)
		}
		delete(m.Deadlines, head)
		m.Queue = m.Queue[1:]
		evicted = append(evicted, head)
	}
	fall := m.fall(c, late)
	for owner := range m.Deadlines {
		m.Deadlines[owner] -= fall
	}
	if len(evicted) > 0 && m.IsFree() {
		m.tellFront(c.Now)
	}
	return evicted
}

// fall is by how much the eviction of dead waiters reduces the deadlines of the others:
// what theirs were beyond the lease and what a heartbeat keeps, but no more than leaves
// that to the others. It depends on what the lock had left: what the server can have taken
// for that is taken for it.
func (m *fairModel) fall(c queueCall, late []float64) float64 {
	soonest := math.Inf(1) // of those that can wait for their turn
	for _, deadline := range m.Deadlines {
		if deadline > float64(c.Now) {
			soonest = min(soonest, deadline)
		}
	}
	with := func(left int64) float64 {
		var sum float64
		due := float64(c.Now + max(0, left) + c.keep)
		for _, deadline := range late {
			sum += max(0, deadline-sum-due)
		}
		return min(sum, max(0, soonest-due))
	}
	if m.IsFree() || m.PTTL < 0 {
		return with(0)
	}
	least, most := with(m.PTTL), with(m.PTTL-passing)
	if c.remains != nil {
		return min(max(m.Deadlines[c.remains.owner]-c.remains.deadline, least), most)
	}
	return least
}

// Nudge is this library's own. It tells the first in the queue of a free lock once
// more, if that is the owner: 1, or 0.
func (m *fairModel) Nudge(c queueCall) any {
	if head, ok := m.head(); !ok || head != c.Owner || !m.IsFree() {
		return int64(0)
	}
	m.notify(c.Owner)
	return int64(1)
}
