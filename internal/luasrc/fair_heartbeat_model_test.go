package luasrc

import (
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/test/fairmodel"
)

// queueCall is what a call that looks after a queue is given, and what only the
// server can tell of it.
type queueCall struct {
	fairmodel.Call
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

// modelHeartbeat is a heartbeat on the model, in the form of the script's reply.
func modelHeartbeat(m *fairmodel.Lock, c queueCall) any {
	b := fairmodel.Beat{Now: c.Now, Keep: c.keep, Fair: c.fair, Window: c.window}
	for _, o := range c.others {
		b.Others = append(b.Others, reply.Other{Owner: o.owner, Wait: o.wait, Living: o.lives})
	}
	for _, o := range c.mine {
		b.Ours = append(b.Ours, fairmodel.Waiter{Owner: o.owner, Wait: o.wait})
	}
	answer := m.Heartbeat(b)
	var left any = answer.Left
	if !m.IsFree() {
		left = about(answer.Left)
	}
	front, missing := []any{}, []any{}
	for _, p := range answer.Front {
		front = append(front, p.Owner, p.Deadline)
	}
	for _, owner := range answer.Missing {
		missing = append(missing, owner)
	}
	return []any{left, front, missing, answer.Length}
}

// modelEvict is an eviction on the model, in the form of the script's reply. What it
// takes off depends on what the lock had left: one that can be is taken for it.
func modelEvict(m *fairmodel.Lock, c queueCall) any {
	e := fairmodel.Eviction{Now: c.Now, Keep: c.keep}
	for _, d := range c.dead {
		e.Dead = append(e.Dead, reply.Place{Owner: d.owner, Deadline: d.text})
	}
	e.Fall = func(with func(left int64) float64) float64 {
		if m.PTTL < 0 {
			return with(0)
		}
		least, most := with(m.PTTL), with(m.PTTL-passing)
		if c.remains != nil {
			return min(max(m.Deadlines[c.remains.owner]-c.remains.deadline, least), most)
		}
		return least
	}
	evicted := []any{}
	for _, owner := range m.Evict(e) {
		evicted = append(evicted, owner)
	}
	return evicted
}

func modelNudge(m *fairmodel.Lock, c queueCall) any {
	if m.Nudge(c.Owner) {
		return int64(1)
	}
	return int64(0)
}
