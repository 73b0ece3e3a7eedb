package localqueue

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/transport"
)

// Queue is the callers in a process that want one lock. Only the caller with the turn sends calls
// about the lock, until its hold ends. It passes the turn on, exactly once, as soon as the release
// was sent, so that the next attempt follows directly, or together with the lock: see
// [Queue.PassLock].
//
// Get one from [Queues.Join]. A caller gets the turn immediately, or a [Waiter].
type Queue struct {
	id     lockID
	queues *Queues
	refs   int // guarded by queues.mu

	mu          sync.Mutex // guards the fields below; held briefly
	busy        bool       // a caller has the turn
	first, last *Waiter
	sub         transport.Subscription // kept while a caller wants the lock
	state       acquire.QueueState
	ahead       int // turns here without as many of others
	aheadSince  time.Time
	others      int   // number of other processes, if known
	theirs      int   // their turns, modulo others
	owed        Yield // not done yet
	contenders  contenders
	pace        time.Duration // of an undelayed turn
	poll        *time.Timer   // nil until a caller has waited
	polls       bool          // poll is running
}

// Waiter is a caller that waits for its turn.
type Waiter struct {
	// Ready receives for the turn, and for each poll before.
	Ready chan struct{}
	// Yield, valid after Ready, is how to let other processes go first.
	Yield Yield
	// Passed, valid after Ready, is true if the turn came with the lock.
	Passed bool
	// Transfer, valid after Ready, is the lock itself, nil if it was freed.
	Transfer *acquire.Transfer

	prev, next *Waiter
	queued     bool
	asks       bool
}

type lockID struct{ kind, key string }

// Queues are a client's queues by lock. All methods are safe for concurrent use.
type Queues struct {
	self      uuid.UUID
	every     time.Duration // poll interval of first waiters
	transfers sync.Pool     // of *acquire.Transfer
	callers   sync.Pool     // of *caller

	mu   sync.Mutex // guards byID and the queues' refs
	byID map[lockID]*Queue
	free sync.Pool
}

// NewQueues returns the queues of the client self, whose first waiters poll at the interval every.
func NewQueues(self uuid.UUID, every time.Duration) *Queues {
	return &Queues{self: self, every: every, byID: map[lockID]*Queue{}}
}

// Join returns the queue of a lock. The caller leaves it by Pass, PassLock or Quit.
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

// TryEnter takes the turn if it is free. Otherwise it leaves the queue, and reports whether the
// lock is certainly held, because another caller in this process waits for it.
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

// Enter takes the turn and returns nil, or returns a waiter at the end of the queue.
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

// Quit removes a waiter. If its turn has come, it passes it on.
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

// remove removes a waiter, mu held.
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

// Pass passes the turn to the next waiter, if any, and leaves the queue. Held means that the lock
// is being freed.
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

// Granted says that the caller with the turn holds the lock, as owner. It closes the subscription
// if no caller waits.
func (q *Queue) Granted(owner codec.Owner) {
	q.mu.Lock()
	q.state = acquire.QueueState{Known: true, Held: true, Holder: owner}
	var idle transport.Subscription
	if q.first == nil {
		idle, q.sub = q.sub, nil
	}
	q.mu.Unlock()
	if idle != nil {
		idle.Close()
	}
}

// Refused says that another process had a turn: holder had the lock, with ttl left.
func (q *Queue) Refused(holder codec.Owner, ttl time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state = acquire.QueueState{Known: true, Holder: holder, TTL: ttl}
	if holder.Client() == q.contenders.self {
		return // a turn of this process
	}
	q.contenders.met(holder, time.Now())
	if q.theirs++; q.theirs >= q.others {
		q.theirs, q.ahead = 0, max(0, q.ahead-1)
	}
}

// Away records why Redis did not answer.
func (q *Queue) Away(err error) {
	q.mu.Lock()
	q.state.Away = err
	q.mu.Unlock()
}

// State returns the queue's knowledge of the lock.
func (q *Queue) State() acquire.QueueState {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state
}

// IsNext reports whether w is the first waiter.
func (q *Queue) IsNext(w *Waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.first == w
}

// Asks says whether w makes attempts while it waits: if so, it cannot take the lock over.
func (q *Queue) Asks(w *Waiter, asks bool) {
	q.mu.Lock()
	w.asks = asks
	q.mu.Unlock()
}

// Subscription returns the queue's subscription, nil if there is none.
func (q *Queue) Subscription() transport.Subscription {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sub
}

// Keep stores sub for later callers, or removes a broken one if sub is nil. Only the caller with
// the turn may call it.
func (q *Queue) Keep(sub transport.Subscription) {
	q.mu.Lock()
	q.sub = sub
	q.mu.Unlock()
}

// The first waiter polls at an interval: see acquire.AwaitTurn. Queues share one timer among their
// waiters, to save memory.

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

// stopPolls stops the timer, mu held.
func (q *Queue) stopPolls() {
	if q.polls {
		q.poll.Stop()
		q.polls = false
	}
}

// wakeToPoll is called by the timer. If that is late, a poll is early.
func (q *Queue) wakeToPoll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.polls = q.first != nil; q.polls {
		acquire.Signal(q.first.Ready)
		q.poll.Reset(q.queues.every)
	}
}

// HasTurn reports whether a woken waiter has the turn; otherwise a poll is due.
func (q *Queue) HasTurn(w *Waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !w.queued
}

// Transfer implements acquire.Turn.
func (q *Queue) Transfer(owner any) *acquire.Transfer {
	q.mu.Lock()
	alone := q.first == nil
	q.mu.Unlock()
	if alone {
		return nil
	}
	t := q.queues.Transfer(owner)
	if !q.PassLock(t) {
		t.Free()
		return nil
	}
	return t
}

// Transfer returns a transfer of owner's lock.
func (qs *Queues) Transfer(owner any) *acquire.Transfer {
	return acquire.NewTransfer(&qs.transfers, owner)
}

// PassLock is Pass with a lock that the next waiter takes over. It returns false, without effect,
// if the lock must be freed: no caller waits, or the next one makes attempts, or other processes
// are next, or one may be of another kind and would wait too long for a message.
func (q *Queue) PassLock(t *acquire.Transfer) bool {
	q.mu.Lock()
	now := time.Now()
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

// PassUnused passes on a turn with its unused transfer, if any, or else lets the holder free the
// lock.
func (q *Queue) PassUnused(t *acquire.Transfer) {
	if t != nil {
		if q.PassLock(t) {
			return
		}
		t.Settle(transport.ErrNotSent)
	}
	q.Pass(false)
}
