package localqueue

import (
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/transport"
)

// Transfer is part of acquire.Turn.
func (q *Queue) Transfer(owner any) *acquire.Transfer {
	if !q.HasNext() {
		return nil
	}
	t := q.queues.Transfer(owner)
	if !q.PassLock(t) {
		t.Free()
		return nil
	}
	return t
}

// Transfer returns a transfer of the lock that owner holds.
func (qs *Queues) Transfer(owner any) *acquire.Transfer {
	return acquire.NewTransfer(&qs.transfers, owner)
}

// PassLock is Pass with a lock that is still held: the next waiter takes it over. It returns
// false, and the turn stays where it is, when the lock must be freed instead: no caller
// waits, or the next one is asking Redis, or it is the turn of other processes, or some of
// them may be of another kind, which would wait too long for a message.
func (q *Queue) PassLock(t *acquire.Transfer) bool {
	q.mu.Lock()
	now := time.Now() // once: a lock that is transferred comes without a yield
	w := q.first
	if w == nil || w.asks || q.due(now) || !q.contenders.allRedlatch(q.others, now) {
		q.mu.Unlock()
		return false
	}
	q.remove(w)
	w.Passed, w.Yield, w.Transfer = true, q.countTurn(now), t
	q.state.Held = false
	q.mu.Unlock()
	w.signal()
	q.put()
	return true
}

// PassUnused passes on a turn whose transfer, if that is not nil, was not used: both to the
// next waiter, or the turn alone, and then the lock's holder frees it.
func (q *Queue) PassUnused(t *acquire.Transfer) {
	if t != nil {
		if q.PassLock(t) {
			return
		}
		t.Settle(transport.ErrNotSent)
	}
	q.Pass(false)
}
