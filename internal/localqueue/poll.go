package localqueue

import "time"

// The first waiter of a queue polls every so often: see acquire.AwaitTurn. The queue has one timer
// for that, and wakes its first waiter: a timer for each would take as much memory as all else
// that a waiter has.

// startPolls starts the timer unless it runs, mu held.
func (q *Queue) startPolls() {
	switch {
	case q.polls:
		return
	case q.poll == nil:
		q.poll = time.AfterFunc(q.queues.every, q.wakeToPoll)
	default:
		q.poll.Reset(q.queues.every)
	}
	q.polls = true
}

// stopPolls stops the timer of a queue that is empty, mu held.
func (q *Queue) stopPolls() {
	if q.polls {
		q.poll.Stop()
		q.polls = false
	}
}

// wakeToPoll is what the timer calls. It may be late, after stopPolls and a new start: then a poll
// is early.
func (q *Queue) wakeToPoll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.polls = q.first != nil; q.polls {
		q.first.signal()
		q.poll.Reset(q.queues.every)
	}
}

// signal wakes a waiter. A signal that it has not received yet is enough: it looks whether it has
// the turn.
func (w *Waiter) signal() {
	select {
	case w.Ready <- struct{}{}:
	default:
	}
}

// HasTurn reports whether a waiter that was woken has the turn: else a poll is due.
func (q *Queue) HasTurn(w *Waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !w.queued
}
