package luasrc

import (
	"math"
	"slices"
	"strconv"
)

// keepCall is what a call that looks after a queue is given, and what only the
// server can tell of it.
type keepCall struct {
	fairCall
	keep, fair int64
	alive      string // the first, where it is known to live
	window     int
	mine       []own
	dead       []sighting
	// remains is the deadline that somebody who is queued still has after an
	// eviction, to find out what the lock had left.
	remains *sighting
}

// sighting is an owner and the deadline that it was seen with.
type sighting struct {
	owner    string
	deadline float64
	has      bool   // it has a deadline
	text     string // what is sent for it
	misread  bool   // text is not how the server writes the deadline
}

// standing is a place that a heartbeat looks after: how it was, what its owner will
// take off when it acquires, and how it is left.
type standing struct {
	owner     string
	old, wait float64
	deadline  float64
	first     bool
}

// heartbeat puts deadlines off, in three rounds: who stands where, with which wait,
// and until when.
func (m *fairModel) heartbeat(c keepCall) any {
	line := m.standings(c)
	for i := range line {
		s := &line[i]
		if i > 0 && line[i-1].deadline > line[i-1].old {
			s.deadline = max(s.old, line[i-1].deadline+s.wait)
		}
		var before float64
		for _, b := range line[:i] {
			before += b.wait
		}
		switch {
		case c.isMine(s.owner):
			s.deadline = max(s.deadline, float64(c.now+c.keep)+before)
		case s.first && s.owner == c.alive && !m.isFree():
			s.deadline = max(s.deadline, float64(c.now+c.fair))
		}
	}
	for _, s := range line {
		m.deadlines[s.owner] = s.deadline
	}
	return []any{m.leftNow(), m.front(c.window), m.missing(c), int64(len(m.queue))}
}

// standings are the first places of all who have a deadline.
func (m *fairModel) standings(c keepCall) []standing {
	var line []standing
	for i, owner := range m.queue {
		old, has := m.deadlines[owner]
		if !has || slices.Index(m.queue, owner) != i {
			continue
		}
		s := standing{owner: owner, old: old, deadline: old, first: i == 0, wait: float64(c.fair)}
		if n := len(line); n > 0 {
			s.wait = min(max(old-line[n-1].old, 0), float64(c.fair))
		}
		for _, o := range c.mine {
			if o.owner == owner {
				s.wait = float64(o.wait)
			}
		}
		line = append(line, s)
	}
	return line
}

func (c keepCall) isMine(owner string) bool {
	return slices.ContainsFunc(c.mine, func(o own) bool { return o.owner == owner })
}

// leftNow is what PTTL says of the lock, about.
func (m *fairModel) leftNow() any {
	if m.isFree() {
		return int64(-2)
	}
	return about(m.pttl)
}

func (m *fairModel) front(window int) []any {
	front := []any{}
	for _, owner := range m.queue[:min(window, len(m.queue))] {
		text := ""
		if deadline, has := m.deadlines[owner]; has {
			text = strconv.FormatFloat(deadline, 'f', -1, 64)
		}
		front = append(front, owner, text)
	}
	return front
}

func (m *fairModel) missing(c keepCall) []any {
	missing := []any{}
	for _, o := range c.mine {
		_, has := m.deadlines[o.owner]
		if (!has || !slices.Contains(m.queue, o.owner)) && !slices.Contains(missing, any(o.owner)) {
			missing = append(missing, o.owner)
		}
	}
	return missing
}

// evict takes out the dead, and then moves the others.
func (m *fairModel) evict(c keepCall) any {
	evicted := []any{}
	var late []float64
	for _, d := range c.dead {
		head, _ := m.head()
		deadline, has := m.deadlines[head]
		if head != d.owner || has != d.has || deadline != d.deadline || d.misread {
			break
		}
		m.queue = m.queue[1:]
		delete(m.deadlines, head)
		evicted = append(evicted, head)
		if has {
			late = append(late, deadline)
		}
	}
	fall := m.fall(c, late)
	for owner := range m.deadlines {
		m.deadlines[owner] -= fall
	}
	if len(evicted) == 0 || !m.isFree() {
		return evicted
	}
	for _, owner := range m.queue {
		m.tell(owner)
		if deadline, has := m.deadlines[owner]; !has || deadline > float64(c.now) {
			break
		}
	}
	return evicted
}

// fall is what the evicted take off the deadlines of the others. It depends on what
// the lock had left: one that can be is taken for it.
func (m *fairModel) fall(c keepCall, late []float64) float64 {
	soonest := math.Inf(1) // of those that can wait for their turn
	for _, deadline := range m.deadlines {
		if deadline > float64(c.now) {
			soonest = min(soonest, deadline)
		}
	}
	with := func(left int64) float64 {
		var sum float64
		due := float64(c.now + max(0, left) + c.keep)
		for _, deadline := range late {
			sum += max(0, deadline-sum-due)
		}
		return min(sum, max(0, soonest-due))
	}
	if m.isFree() || m.pttl < 0 {
		return with(0)
	}
	least, most := with(m.pttl), with(m.pttl-passing)
	if c.remains != nil {
		return min(max(m.deadlines[c.remains.owner]-c.remains.deadline, least), most)
	}
	return least
}

func (m *fairModel) nudge(c keepCall) any {
	if head, ok := m.head(); !ok || head != c.owner || !m.isFree() {
		return int64(0)
	}
	m.tell(c.owner)
	return int64(1)
}
