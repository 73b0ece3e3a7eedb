package localqueue

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/transport"
)

// Queue has the callers of one process that want one lock. The caller that has the turn is
// the only one that talks to Redis about the lock: first to acquire it, then while it holds
// it. The others wait and cost nothing. The turn goes to the next waiter as soon as the
// release is on its way, so that the next attempt travels right behind it, or the lock
// itself goes with it, see [Queue.PassLock].
//
// Get one from [Queues.Join]. A caller takes the turn at once, or gets a [Waiter] and waits
// for it. A caller that has the turn passes it on exactly once.
type Queue struct {
	id     lockID
	queues *Queues
	refs   int // guarded by queues.mu

	mu          sync.Mutex // guards what follows; held for a few instructions only
	busy        bool       // a caller has the turn
	first, last *Waiter
	sub         transport.Subscription // kept while a caller wants the lock
	state       acquire.QueueState
	ahead       int // turns here that others have not had as many turns for
	aheadSince  time.Time
	others      int   // how many there are, as far as is known
	theirs      int   // turns that they had, fewer than there are of them
	owed        Yield // what no caller has done yet
	contenders  contenders
	pace        time.Duration // what a turn takes here when nothing delays it
	poll        *time.Timer   // nil until a caller has waited
	polls       bool          // poll runs
}

// Waiter is a caller that waits for its turn.
type Waiter struct {
	// Ready receives when the turn has come, and for each poll that is due before.
	Ready chan struct{}
	// Yield, to be read after Ready, is how to let other processes go first.
	Yield Yield
	// Passed, to be read after Ready, is true when the turn came with the lock.
	Passed bool
	// Transfer, to be read after Ready, is the lock itself if it was not freed; nil if it
	// was.
	Transfer *acquire.Transfer

	prev, next *Waiter
	queued     bool
	asks       bool
}

type lockID struct{ kind, key string }

// Queues are the queues of a client, by lock. All methods are safe for concurrent use.
type Queues struct {
	self      uuid.UUID
	every     time.Duration // the first waiter of each queue polls
	transfers sync.Pool     // of *acquire.Transfer
	callers   sync.Pool     // of *caller

	mu   sync.Mutex // guards byID and the refs of its queues
	byID map[lockID]*Queue
	free sync.Pool
}

// NewQueues returns the queues of the client called self, whose first waiters poll every so
// often.
func NewQueues(self uuid.UUID, every time.Duration) *Queues {
	return &Queues{self: self, every: every, byID: map[lockID]*Queue{}}
}

// Join returns the queue for a lock, which must be left with Pass, PassLock or Quit.
func (qs *Queues) Join(kind, key string) *Queue {
	id := lockID{kind, key}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byID[id]
	if q == nil {
		q, _ = qs.free.Get().(*Queue)
		if q == nil {
			q = &Queue{queues: qs, contenders: contenders{self: qs.self}}
		}
		q.id = id
		qs.byID[id] = q
	}
	q.refs++
	return q
}

// put gives up one reference.
func (q *Queue) put() {
	q.queues.mu.Lock()
	defer q.queues.mu.Unlock()
	if q.refs--; q.refs == 0 {
		delete(q.queues.byID, q.id)
		q.state, q.ahead, q.others, q.theirs, q.pace = acquire.QueueState{}, 0, 0, 0, 0
		q.contenders.forget()
		q.queues.free.Put(q)
	}
}

// TryEnter takes the turn if it is free. Otherwise it leaves the queue, and reports whether
// it is certain that the lock is held: then another caller of this process waits for it,
// too. It returns what the queue knows.
func (q *Queue) TryEnter() (has, refused bool, state acquire.QueueState) {
	q.mu.Lock()
	has, state = !q.busy, q.state
	refused = q.busy && state.Known && state.Away == nil && (q.first != nil || !state.Held)
	q.busy = true
	q.mu.Unlock()
	if !has {
		q.put()
	}
	return has, refused, state
}

// Enter takes the turn if it is free, and returns nil; else it returns a waiter at the end
// of the queue.
func (q *Queue) Enter() *Waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.busy {
		q.busy = true
		return nil
	}
	w := &Waiter{Ready: make(chan struct{}, 1), prev: q.last, queued: true}
	if q.last != nil {
		q.last.next = w
	} else {
		q.first = w
	}
	q.last = w
	q.startPolls()
	return w
}

// Quit takes a waiter out of the queue. If its turn has come meanwhile, it is passed on.
func (q *Queue) Quit(w *Waiter) {
	q.mu.Lock()
	queued := w.queued
	if queued {
		q.remove(w)
	}
	q.mu.Unlock()
	if queued {
		q.put()
		return
	}
	q.PassUnused(w.Transfer)
}

// remove takes a waiter out, mu held.
func (q *Queue) remove(w *Waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.last = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
}

// Pass gives the turn to the next waiter, if there is one, and leaves the queue. Held says
// that the lock was held and is being freed.
func (q *Queue) Pass(held bool) {
	q.mu.Lock()
	w := q.first
	var idle transport.Subscription
	if w != nil {
		q.remove(w)
		if held {
			w.Passed = true
			if y := q.countTurn(time.Now()); y.Turns > 0 {
				q.owed = y
			}
		}
		w.Yield = q.owed
	} else {
		q.busy, q.ahead = false, 0
		idle, q.sub = q.sub, nil
		q.state, q.owed = acquire.QueueState{}, Yield{}
		q.stopPolls()
	}
	q.state.Held = false
	q.mu.Unlock()
	if w != nil {
		acquire.Signal(w.Ready)
	}
	if idle != nil {
		idle.Close()
	}
	q.put()
}

// Granted says that the caller that has the turn holds the lock, as owner.
func (q *Queue) Granted(owner codec.Owner) {
	q.mu.Lock()
	q.state = acquire.QueueState{Known: true, Held: true, Holder: owner}
	q.mu.Unlock()
}

// Refused says that an attempt found the lock held by holder, with ttl left: another process
// has a turn.
func (q *Queue) Refused(holder codec.Owner, ttl time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state = acquire.QueueState{Known: true, Holder: holder, TTL: ttl}
	if holder.Client() == q.contenders.self {
		return // it was a turn of this process
	}
	q.contenders.met(holder, time.Now())
	if q.theirs++; q.theirs >= q.others {
		q.theirs, q.ahead = 0, max(0, q.ahead-1)
	}
}

// Away says why Redis did not answer.
func (q *Queue) Away(err error) {
	q.mu.Lock()
	q.state.Away = err
	q.mu.Unlock()
}

// State returns what the queue knows.
func (q *Queue) State() acquire.QueueState {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state
}

// HasNext reports whether a caller waits for the turn.
func (q *Queue) HasNext() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.first != nil
}

// IsNext reports whether w is the first waiter.
func (q *Queue) IsNext(w *Waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.first == w
}

// Asks says whether w, while it waits for its turn, asks Redis about the lock: then it
// cannot take the lock over.
func (q *Queue) Asks(w *Waiter, asks bool) {
	q.mu.Lock()
	w.asks = asks
	q.mu.Unlock()
}

// Subscription returns the queue's subscription, nil when it has none.
func (q *Queue) Subscription() transport.Subscription {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sub
}

// Keep stores sub for the callers that get the turn later. Only the caller that has the turn
// may call it, and only when the queue has no subscription. Nil removes a broken one.
func (q *Queue) Keep(sub transport.Subscription) {
	q.mu.Lock()
	q.sub = sub
	q.mu.Unlock()
}

// CloseIdle closes the subscription if no caller waits.
func (q *Queue) CloseIdle() {
	q.mu.Lock()
	var idle transport.Subscription
	if q.first == nil {
		idle, q.sub = q.sub, nil
	}
	q.mu.Unlock()
	if idle != nil {
		idle.Close()
	}
}

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
		acquire.Signal(q.first.Ready)
		q.poll.Reset(q.queues.every)
	}
}

// HasTurn reports whether a waiter that was woken has the turn: else a poll is due.
func (q *Queue) HasTurn(w *Waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !w.queued
}

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
	acquire.Signal(w.Ready)
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
