package luasrc

import "slices"

// fairModel is a fair lock in plain Go: what Redisson's scripts do with the lock, its queue
// and its deadlines, step by step, and what this library's scripts do where they differ on
// purpose, each marked as such. Its fields may be changed between two calls, as other
// programs and time do.
type fairModel struct {
	// Counts is the lock: owner -> count; empty when it is free.
	Counts map[string]int64
	// PTTL is how many milliseconds the lock has left, at most; -1 when it never expires.
	// It means nothing while the lock is free. Time does not pass here: the model's user
	// sets it.
	PTTL int64
	// Queue is the owners that wait, the next one first.
	Queue []string
	// Deadlines is waiting owner -> the time from which it counts as dead,
	// milliseconds since 1970.
	Deadlines map[string]float64
	// Latches is what was done, by request: id -> outcome.
	Latches map[string]string

	// Notified are the waiters that the calls have woken, in order, until it is emptied.
	Notified []string
}

// newFairModel returns a lock that is free and has no queue.
func newFairModel() *fairModel {
	return &fairModel{Counts: map[string]int64{}, Deadlines: map[string]float64{}, Latches: map[string]string{}}
}

// fairCall is what a script is given. Times are in milliseconds, Now since 1970 by the
// caller's clock.
type fairCall struct {
	// Now is the time, by the caller's clock.
	Now int64
	// Wait is that of the owner, and Lease that of its hold.
	Wait, Lease int64
	// Target is the count to arrive at, and Latch the id of a shared release.
	Target int64
	Latch  string
	// Owner is the caller.
	Owner string
	// More are the waiters that give up in the same call.
	More []leaver
	// Left returns what a held lock has left by the server, of which the model knows only
	// the most that it can be. Nil: that is it.
	Left func(most int64) int64
}

func (c fairCall) left(m *fairModel) int64 {
	switch {
	case m.IsFree():
		return -2
	case c.Left != nil:
		return c.Left(m.PTTL)
	}
	return m.PTTL
}

// IsFree reports whether the lock has no holder.
func (m *fairModel) IsFree() bool { return len(m.Counts) == 0 }

func (m *fairModel) head() (string, bool) {
	if len(m.Queue) == 0 {
		return "", false
	}
	return m.Queue[0], true
}

// prune removes overdue waiters in front, which every script of Redisson does first.
func (m *fairModel) prune(now int64) {
	for {
		head, ok := m.head()
		deadline, has := m.Deadlines[head]
		if !ok || !has || deadline > float64(now) {
			return
		}
		delete(m.Deadlines, head)
		m.Queue = m.Queue[1:]
	}
}

func (m *fairModel) notify(owner string) { m.Notified = append(m.Notified, owner) }

func (m *fairModel) tellHead() {
	if head, ok := m.head(); ok {
		m.notify(head)
	}
}

// enter takes a free lock for an owner that may have it, or enters it again.
func (m *fairModel) enter(c fairCall) bool {
	head, queued := m.head()
	switch {
	case m.IsFree() && (!queued || head == c.Owner):
		if queued {
			m.Queue = m.Queue[1:]
		}
		delete(m.Deadlines, c.Owner)
		for owner := range m.Deadlines {
			m.Deadlines[owner] -= float64(c.Wait)
		}
		m.Counts[c.Owner] = 1
	case m.Counts[c.Owner] > 0:
		m.Counts[c.Owner]++
	default:
		return false
	}
	m.PTTL = c.Lease
	return true
}

// Try takes the lock, or enters it again, and never queues: nil, or 1.
func (m *fairModel) Try(c fairCall) any {
	m.prune(c.Now)
	if m.enter(c) {
		return nil
	}
	return int64(1)
}

// Acquire is Try that queues a refused owner. It returns nil, or the milliseconds to wait:
// what the lock has left, or for an owner that was queued behind others now, the time until
// the deadline of the last of them.
func (m *fairModel) Acquire(c fairCall) any {
	m.prune(c.Now)
	if m.enter(c) {
		return nil
	}
	left := c.left(m)
	if _, queued := m.Deadlines[c.Owner]; queued {
		return max(0, left)
	}
	ttl := float64(left)
	if n := len(m.Queue); n > 0 && m.Queue[n-1] != c.Owner {
		if deadline, has := m.Deadlines[m.Queue[n-1]]; has {
			ttl = deadline - float64(c.Now)
		}
	}
	m.Deadlines[c.Owner] = ttl + float64(c.Wait) + float64(c.Now)
	m.Queue = append(m.Queue, c.Owner)
	return int64(ttl)
}

// Reenter enters a hold of the owner again: 1, or nil when it has none. It differs
// from Redisson on purpose: it has a target, refuses, and never shortens.
func (m *fairModel) Reenter(c fairCall) any {
	m.prune(c.Now)
	if m.Counts[c.Owner] == 0 {
		return nil
	}
	if c.Target == 0 {
		m.Counts[c.Owner]++
	} else {
		m.Counts[c.Owner] = max(m.Counts[c.Owner], c.Target)
	}
	if m.PTTL >= 0 {
		m.PTTL = max(m.PTTL, c.Lease)
	}
	return int64(1)
}

// Release lowers the owner's count to the target, 0 to free the lock: nil when another
// holds it, 1 when it is free now, 0 when it is held still. It differs from Redisson on
// purpose: it has a target and no latch, and answers 2 for a lock that was free.
func (m *fairModel) Release(c fairCall) any {
	m.prune(c.Now)
	count := m.Counts[c.Owner]
	switch {
	case m.IsFree():
		m.tellHead()
		return int64(2)
	case count == 0:
		return nil
	case c.Target > 0:
		if count > c.Target {
			m.Counts[c.Owner], m.PTTL = c.Target, c.Lease
		}
		return int64(0)
	}
	clear(m.Counts)
	m.tellHead()
	return int64(1)
}

// ReleaseShared lowers the count by one, once for each latch, with the answers of Release.
// It differs from Redisson on purpose: it answers 2 for a lock that was free.
func (m *fairModel) ReleaseShared(c fairCall) any {
	if outcome, done := m.Latches[c.Latch]; done {
		return int64(outcome[0] - '0')
	}
	m.prune(c.Now)
	if !m.IsFree() && m.Counts[c.Owner] == 0 {
		return nil
	}
	outcome := "1"
	switch {
	case m.IsFree():
		outcome = "2"
	case m.Counts[c.Owner] > 1:
		m.Counts[c.Owner]--
		m.PTTL, outcome = c.Lease, "0"
	}
	if outcome != "0" {
		clear(m.Counts)
		m.tellHead()
	}
	m.Latches[c.Latch] = outcome
	return int64(outcome[0] - '0')
}

// Force frees the lock of any holder: 1, or 0 when it was free.
func (m *fairModel) Force(c fairCall) any {
	m.prune(c.Now)
	if m.IsFree() {
		return int64(0)
	}
	clear(m.Counts)
	m.tellHead()
	return int64(1)
}

// leave takes an owner out of the queue, as Redisson does: it wakes no waiter.
func (m *fairModel) leave(c fairCall) {
	if i := slices.Index(m.Queue, c.Owner); i >= 0 {
		for _, behind := range m.Queue[i+1:] {
			m.Deadlines[behind] -= float64(c.Wait)
		}
	}
	delete(m.Deadlines, c.Owner)
	m.Queue = slices.DeleteFunc(m.Queue, func(owner string) bool { return owner == c.Owner })
}

// GiveUp takes owners out of the queue. It differs from Redisson on purpose: several may
// leave in one call, one after the other, and when all have left it tells those in front of
// a free lock. It returns nil.
func (m *fairModel) GiveUp(c fairCall) any {
	m.leave(c)
	for _, l := range c.More {
		m.leave(fairCall{Owner: l.owner, Wait: l.wait})
	}
	if m.IsFree() {
		m.tellFront(c.Now)
	}
	return nil
}

// tellFront wakes the waiters that the next attempt can find in front.
func (m *fairModel) tellFront(now int64) {
	for _, owner := range m.Queue {
		m.notify(owner)
		if deadline, has := m.Deadlines[owner]; !has || deadline > float64(now) {
			return
		}
	}
}
