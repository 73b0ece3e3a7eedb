package luasrc

import (
	"maps"
	"slices"
	"strconv"

	"github.com/redlatch/redlatch/codec"
)

// fairModel is a fair lock in plain Go: what Redisson's scripts do, step by step,
// and our differences, each marked as such.
type fairModel struct {
	counts    map[string]int64 // the lock: owner -> count; empty when it is free
	pttl      int64            // what it has left, at most; -1 when it never expires
	queue     []string
	deadlines map[string]float64
	latches   map[string]string
	told      []string // whom the last call has woken, in order
}

func newFairModel() *fairModel {
	return &fairModel{counts: map[string]int64{}, deadlines: map[string]float64{}, latches: map[string]string{}}
}

// fairCall is what a call is given, and what it was answered.
type fairCall struct {
	now, wait, lease, target int64
	owner, latch             string
	more                     []leaver // who gives up in the same call
	// reply of the server: only it knows what the lock had left at that moment.
	reply any
}

func (m *fairModel) isFree() bool { return len(m.counts) == 0 }

func (m *fairModel) head() (string, bool) {
	if len(m.queue) == 0 {
		return "", false
	}
	return m.queue[0], true
}

func (m *fairModel) prune(now int64) {
	for {
		head, ok := m.head()
		deadline, has := m.deadlines[head]
		if !ok || !has || deadline > float64(now) {
			return
		}
		delete(m.deadlines, head)
		m.queue = m.queue[1:]
	}
}

func (m *fairModel) tell(owner string) { m.told = append(m.told, owner) }

func (m *fairModel) tellHead() {
	if head, ok := m.head(); ok {
		m.tell(head)
	}
}

// enter takes a free lock for who may have it, or enters it again.
func (m *fairModel) enter(c fairCall) bool {
	head, queued := m.head()
	switch {
	case m.isFree() && (!queued || head == c.owner):
		if queued {
			m.queue = m.queue[1:]
		}
		delete(m.deadlines, c.owner)
		for owner := range m.deadlines {
			m.deadlines[owner] -= float64(c.wait)
		}
		m.counts[c.owner] = 1
	case m.counts[c.owner] > 0:
		m.counts[c.owner]++
	default:
		return false
	}
	m.pttl = c.lease
	return true
}

func (m *fairModel) try(c fairCall) any {
	m.prune(c.now)
	if m.enter(c) {
		return nil
	}
	return int64(1)
}

func (m *fairModel) acquire(c fairCall) any {
	m.prune(c.now)
	if m.enter(c) {
		return nil
	}
	left := m.left(c.reply)
	if _, queued := m.deadlines[c.owner]; queued {
		return max(0, left)
	}
	ttl := float64(left)
	if n := len(m.queue); n > 0 && m.queue[n-1] != c.owner {
		if deadline, has := m.deadlines[m.queue[n-1]]; has {
			ttl = deadline - float64(c.now)
		}
	}
	m.deadlines[c.owner] = ttl + float64(c.wait) + float64(c.now)
	m.queue = append(m.queue, c.owner)
	return int64(ttl)
}

// left is what PTTL says of the lock. A reply that can be that is taken for it.
func (m *fairModel) left(reply any) int64 {
	if m.isFree() {
		return -2
	}
	if ms, ok := reply.(int64); ok && about(m.pttl).covers(ms) {
		return ms
	}
	return m.pttl
}

// reenter differs on purpose: it has a target, refuses, and never shortens.
func (m *fairModel) reenter(c fairCall) any {
	m.prune(c.now)
	if m.counts[c.owner] == 0 {
		return nil
	}
	if c.target == 0 {
		m.counts[c.owner]++
	} else {
		m.counts[c.owner] = max(m.counts[c.owner], c.target)
	}
	if m.pttl >= 0 {
		m.pttl = max(m.pttl, c.lease)
	}
	return int64(1)
}

// release differs on purpose: it has a target and no latch, and answers 2 for a
// lock that nobody held.
func (m *fairModel) release(c fairCall) any {
	m.prune(c.now)
	count := m.counts[c.owner]
	switch {
	case m.isFree():
		m.tellHead()
		return int64(2)
	case count == 0:
		return nil
	case c.target > 0:
		if count > c.target {
			m.counts[c.owner], m.pttl = c.target, c.lease
		}
		return int64(0)
	}
	clear(m.counts)
	m.tellHead()
	return int64(1)
}

// releaseShared differs on purpose: it answers 2 for a lock that nobody held.
func (m *fairModel) releaseShared(c fairCall) any {
	if outcome, done := m.latches[c.latch]; done {
		return int64(outcome[0] - '0')
	}
	m.prune(c.now)
	if !m.isFree() && m.counts[c.owner] == 0 {
		return nil
	}
	outcome := "1"
	switch {
	case m.isFree():
		outcome = "2"
	case m.counts[c.owner] > 1:
		m.counts[c.owner]--
		m.pttl, outcome = c.lease, "0"
	}
	if outcome != "0" {
		clear(m.counts)
		m.tellHead()
	}
	m.latches[c.latch] = outcome
	return int64(outcome[0] - '0')
}

func (m *fairModel) force(c fairCall) any {
	m.prune(c.now)
	if m.isFree() {
		return int64(0)
	}
	clear(m.counts)
	m.tellHead()
	return int64(1)
}

// leaver is one of those who give up, with its wait.
type leaver struct {
	owner string
	wait  int64
}

func (m *fairModel) leave(l leaver) {
	if i := slices.Index(m.queue, l.owner); i >= 0 {
		for _, behind := range m.queue[i+1:] {
			m.deadlines[behind] -= float64(l.wait)
		}
	}
	delete(m.deadlines, l.owner)
	m.queue = slices.DeleteFunc(m.queue, func(owner string) bool { return owner == l.owner })
}

// giveUp differs on purpose: several may leave in one call, one after the other, and
// when all have left it tells those in front of a free lock.
func (m *fairModel) giveUp(c fairCall) any {
	m.leave(leaver{c.owner, c.wait})
	for _, l := range c.more {
		m.leave(l)
	}
	if !m.isFree() {
		return nil
	}
	for _, owner := range m.queue {
		m.tell(owner)
		if deadline, has := m.deadlines[owner]; !has || deadline > float64(c.now) {
			break
		}
	}
	return nil
}

// state is all that must be on the server under the name l.
func (m *fairModel) state(l string) map[string]any {
	all := map[string]any{}
	if !m.isFree() {
		counts := map[string]string{}
		for owner, count := range m.counts {
			counts[owner] = strconv.FormatInt(count, 10)
		}
		all[l] = held{counts, m.pttl}
	}
	if len(m.queue) > 0 {
		all[codec.QueueKey(l)] = queue(slices.Clone(m.queue))
	}
	if len(m.deadlines) > 0 {
		all[codec.TimeoutKey(l)] = timeouts(maps.Clone(m.deadlines))
	}
	for id, outcome := range m.latches {
		all[codec.LatchKey(l, id)] = held{map[string]string{"": outcome}, 16000}
	}
	return all
}
