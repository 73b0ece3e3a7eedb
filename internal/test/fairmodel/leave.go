package fairmodel

import "slices"

// Reenter enters a hold of the owner again: 1, or nil when it has none. It differs
// from Redisson on purpose: it has a target, refuses, and never shortens.
func (m *Lock) Reenter(c Call) any {
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
func (m *Lock) Release(c Call) any {
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
func (m *Lock) ReleaseShared(c Call) any {
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
func (m *Lock) Force(c Call) any {
	m.prune(c.Now)
	if m.IsFree() {
		return int64(0)
	}
	clear(m.Counts)
	m.tellHead()
	return int64(1)
}

// AcquireFailed takes an owner out of the queue, as Redisson does: it wakes no waiter.
func (m *Lock) AcquireFailed(c Call) {
	if i := slices.Index(m.Queue, c.Owner); i >= 0 {
		for _, behind := range m.Queue[i+1:] {
			m.Deadlines[behind] -= float64(c.Wait)
		}
	}
	delete(m.Deadlines, c.Owner)
	m.Queue = slices.DeleteFunc(m.Queue, func(owner string) bool { return owner == c.Owner })
}

// GiveUp is AcquireFailed, and differs from it on purpose: several may leave in one
// call, one after the other, and when all have left it tells those in front of a free
// lock. It returns nil.
func (m *Lock) GiveUp(c Call) any {
	m.AcquireFailed(c)
	for _, l := range c.More {
		m.AcquireFailed(Call{Owner: l.Owner, Wait: l.Wait})
	}
	if m.IsFree() {
		m.tellFront(c.Now)
	}
	return nil
}

// tellFront wakes the waiters that the next attempt can find in front.
func (m *Lock) tellFront(now int64) {
	for _, owner := range m.Queue {
		m.notify(owner)
		if deadline, has := m.Deadlines[owner]; !has || deadline > float64(now) {
			return
		}
	}
}
