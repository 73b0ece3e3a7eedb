package localqueue

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// Transfer is a lock on its way from its holder to the next waiter, which takes it over in
// one step: the lock is not free in between. It comes with the turn. Get one from
// [Queues.Transfer]; the caller that has it in the end settles it once, and does not use it
// after.
type Transfer struct {
	// Owner is the lock's owner until it is taken over, its text boxed.
	Owner any

	queues  *Queues
	kind    Kind       // set by the caller that takes the lock over
	settled chan error // room for one
	timer   *time.Timer
}

// Transfer returns a transfer of the lock that owner holds. It goes back with Wait, or Free.
func (qs *Queues) Transfer(owner any) *Transfer {
	t, ok := qs.transfers.Get().(*Transfer)
	if !ok {
		t = &Transfer{queues: qs, settled: make(chan error, 1), timer: time.NewTimer(time.Hour)}
		t.timer.Stop()
	}
	t.Owner = owner
	return t
}

// Settle tells the holder the outcome: nil when the lock has been taken over; ErrLost when
// the holder did not hold it; ErrNotSent when nothing has happened; other errors leave it
// open.
func (t *Transfer) Settle(outcome error) { t.settled <- outcome }

// Wait returns what Settle was given, within bound. After that the outcome is not known, and
// the error wraps ErrUncertain.
func (t *Transfer) Wait(bound time.Duration) error {
	t.timer.Reset(bound)
	select {
	case err := <-t.settled:
		t.timer.Stop()
		t.Free()
		return err
	case <-t.timer.C:
		// It may be settled later: it is not used again.
		return fmt.Errorf("%w: no reply within %v", transport.ErrUncertain, bound.Round(time.Millisecond))
	}
}

// Free gives back a transfer that no other caller has.
func (t *Transfer) Free() {
	t.Owner, t.kind = nil, nil
	t.queues.transfers.Put(t)
}

// PassLock is Pass with a lock that is still held: the next waiter takes it over. It returns
// false, and the turn stays where it is, when the lock must be freed instead: no caller
// waits, or the next one is asking Redis, or it is the turn of other processes, or some of
// them may be of another kind, which would wait too long for a message.
func (q *Queue) PassLock(t *Transfer) bool {
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
func (q *Queue) PassUnused(t *Transfer) {
	if t != nil {
		if q.PassLock(t) {
			return
		}
		t.Settle(transport.ErrNotSent)
	}
	q.Pass(false)
}
