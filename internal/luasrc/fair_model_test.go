package luasrc

import (
	"math"
	"slices"
	"strconv"

	"github.com/redlatch/redlatch/internal/reply"
)

// fairModel is a fair lock in plain Go: the effects of Redisson's scripts, and of Redlatch's where they
// differ on purpose, each marked as such. Tests may change its fields between two calls, as time and
// other programs do.
type fairModel struct {
	Counts    map[string]int64   // the lock: owner -> count; empty if it is free
	PTTL      int64              // at most, in milliseconds; -1 without expiry; time does not pass
	Queue     []string           // the waiting owners, the next one first
	Deadlines map[string]float64 // waiting owner -> deadline, milliseconds since 1970
	Latches   map[string]string  // the id of a request -> its reply

	Notified []string // the waiters notified so far, in order
}

func newFairModel() *fairModel {
	return &fairModel{Counts: map[string]int64{}, Deadlines: map[string]float64{}, Latches: map[string]string{}}
}

// fairCall has the arguments of a script. Times are in milliseconds, Now since 1970 by the caller's clock.
type fairCall struct {
	Owner       string
	Now         int64
	Wait, Lease int64
	Target      int64
	Latch       string   // the id of a shared release
	More        []waiter // that leave in the same call

	// Of heartbeats and evictions.
	Keep, Fair int64
	Window     int
	Mine       []waiter
	Others     []reply.Other
	Dead       []reply.Place

	// Left returns the remaining time of a held lock on the server, of which the model knows the most;
	// remains is a deadline on the server after an eviction.
	Left    func(most int64) int64
	remains *deadline
}

type waiter struct {
	owner string
	wait  int64
}

type deadline struct {
	owner string
	at    float64
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

func (m *fairModel) IsFree() bool { return len(m.Counts) == 0 }

func (m *fairModel) head() (string, bool) {
	if len(m.Queue) == 0 {
		return "", false
	}
	return m.Queue[0], true
}

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
	if m.PTTL = c.Lease; c.Lease <= 0 {
		clear(m.Counts)
	}
	return true
}

func (m *fairModel) Try(c fairCall) any {
	m.prune(c.Now)
	if m.enter(c) {
		return nil
	}
	return int64(1)
}

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

// Reenter returns 1, or nil without a hold. Unlike Redisson's it has a target, refuses, and
// never shortens.
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

// Release returns nil if another owner holds the lock, 1 if it is free now, 0 if it is still held. Unlike
// Redisson's it has a target and no latch, and returns 2 for a lock that was free.
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

func (m *fairModel) Force(c fairCall) any {
	m.prune(c.Now)
	if m.IsFree() {
		return int64(0)
	}
	clear(m.Counts)
	m.tellHead()
	return int64(1)
}

func (m *fairModel) leave(c fairCall) {
	if i := slices.Index(m.Queue, c.Owner); i >= 0 {
		for _, behind := range m.Queue[i+1:] {
			m.Deadlines[behind] -= float64(c.Wait)
		}
	}
	delete(m.Deadlines, c.Owner)
	m.Queue = slices.DeleteFunc(m.Queue, func(owner string) bool { return owner == c.Owner })
}

// GiveUp removes owners from the queue. Unlike Redisson's it takes several, and then notifies the waiters
// in front of a free lock.
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

func (m *fairModel) tellFront(now int64) {
	for _, owner := range m.Queue {
		m.notify(owner)
		if deadline, has := m.Deadlines[owner]; !has || deadline > float64(now) {
			return
		}
	}
}

// Heartbeat raises the deadlines of its caller's waiters above the waits of all waiters before them, and
// keeps the others behind those that moved. Redisson has none.
func (m *fairModel) Heartbeat(c fairCall) any {
	mine := make(map[string]int64, len(c.Mine))
	for _, w := range c.Mine {
		mine[w.owner] = w.wait
	}
	m.putOff(c, mine)
	var left any = fairCall{}.left(m)
	if !m.IsFree() {
		left = about(m.PTTL)
	}
	front, missing := []any{}, []any{}
	for _, owner := range m.Queue[:min(c.Window, len(m.Queue))] {
		front = append(front, owner, m.score(owner))
	}
	for _, w := range c.Mine {
		if _, left := mine[w.owner]; left {
			missing = append(missing, w.owner)
			delete(mine, w.owner)
		}
	}
	return []any{left, front, missing, int64(len(m.Queue))}
}

func (m *fairModel) putOff(b fairCall, mine map[string]int64) {
	most := float64(b.Fair) // the longest assumed wait
	for _, wait := range mine {
		most = max(most, float64(wait))
	}
	var ahead, before, after float64 // old and new deadline of the waiter in front
	seen := map[string]bool{}
	others := make(map[string]reply.Other, len(b.Others))
	for _, o := range b.Others {
		others[o.Owner] = o
	}
	for place, owner := range m.Queue {
		old, has := m.Deadlines[owner]
		if !has || seen[owner] {
			continue
		}
		wait, own := mine[owner]
		w := float64(wait)
		deadline := old
		switch {
		case own:
		case len(seen) == 0:
			w = most
		default:
			w = max(0, min(most, old-before))
		}
		o, known := others[owner]
		if known && !own {
			w = max(float64(b.Fair), float64(o.Wait))
		}
		if len(seen) > 0 && after > before {
			deadline = max(deadline, after+w)
		}
		switch {
		case own:
			deadline = max(deadline, float64(b.Now+b.Keep)+ahead)
			delete(mine, owner)
		case place > 0 && o.Living:
			deadline = max(deadline, float64(b.Now+b.Keep)+ahead)
		case o.Living && !m.IsFree():
			deadline = max(deadline, float64(b.Now+b.Fair))
		}
		m.Deadlines[owner] = deadline
		seen[owner] = true
		ahead, before, after = ahead+w, old, deadline
	}
}

func (m *fairModel) score(owner string) string {
	deadline, has := m.Deadlines[owner]
	if !has {
		return ""
	}
	return strconv.FormatFloat(deadline, 'f', -1, 64)
}

// Evict removes dead waiters from the front of the queue while their deadlines match.
func (m *fairModel) Evict(c fairCall) any {
	evicted := []any{}
	var late []float64
	for _, dead := range c.Dead {
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
	fall := m.fall(c, late)
	for owner := range m.Deadlines {
		m.Deadlines[owner] -= fall
	}
	if len(evicted) > 0 && m.IsFree() {
		m.tellFront(c.Now)
	}
	return evicted
}

// fall returns by how much the eviction of dead waiters lowers the other deadlines: by their part beyond
// the lease and the heartbeat's keep, but each remaining waiter keeps at least that much. It depends on
// the lock's remaining time (see remains).
func (m *fairModel) fall(c fairCall, late []float64) float64 {
	soonest := math.Inf(1) // of waiters that can reach their turn
	for _, deadline := range m.Deadlines {
		if deadline > float64(c.Now) {
			soonest = min(soonest, deadline)
		}
	}
	with := func(left int64) float64 {
		var sum float64
		due := float64(c.Now + max(0, left) + c.Keep)
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
		return min(max(m.Deadlines[c.remains.owner]-c.remains.at, least), most)
	}
	return least
}

func (m *fairModel) Nudge(c fairCall) any {
	if head, ok := m.head(); !ok || head != c.Owner || !m.IsFree() {
		return int64(0)
	}
	m.notify(c.Owner)
	return int64(1)
}
