package localqueue

import (
	"container/list"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/transport"
)

// queue holds the callers in one process that want the same lock. Only the caller with the turn sends calls about the
// lock, until its hold ends. That caller passes the turn on, exactly once, either as soon as its release has been sent
// or together with the lock; see passLock.
type queue struct {
	id     lockID
	queues *queues
	refs   int // guarded by queues.mu

	mu         sync.Mutex             // guards the fields below, and fields of the callers; held briefly
	busy       bool                   // a caller has the turn
	waiting    list.List              // of *caller
	sub        transport.Subscription // kept while a caller wants the lock
	state      acquire.QueueState
	ahead      int // turns here without as many of others
	aheadSince time.Time
	others     int   // number of other processes, if known
	theirs     int   // their turns, modulo others
	owed       yield // not done yet by the callers with the turn
	contenders contenders
	pace       time.Duration // of an undelayed turn
	poll       *time.Timer   // nil until a caller has waited
	polls      bool          // poll is running
}

type lockID struct{ kind, key string }

// queues are a client's queues by lock. They are safe for concurrent use.
type queues struct {
	self      uuid.UUID
	every     time.Duration // poll interval
	transfers sync.Pool     // of *acquire.Transfer
	callers   sync.Pool     // of *caller

	mu   sync.Mutex // guards byID and the queues' refs
	byID map[lockID]*queue
	free sync.Pool
}

func newQueues(self uuid.UUID, every time.Duration) *queues {
	return &queues{self: self, every: every, byID: map[lockID]*queue{}}
}

// join returns a lock's queue. Pass, passLock or quit leaves it.
func (qs *queues) join(kind, key string) *queue {
	id := lockID{kind, key}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byID[id]
	if q == nil {
		q, _ = qs.free.Get().(*queue)
		if q == nil {
			q = &queue{queues: qs, contenders: contenders{self: qs.self}}
		}
		q.id = id
		qs.byID[id] = q
	}
	q.refs++
	return q
}

func (q *queue) put() {
	q.queues.mu.Lock()
	defer q.queues.mu.Unlock()
	if q.refs--; q.refs == 0 {
		delete(q.queues.byID, q.id)
		q.state, q.ahead, q.others, q.theirs, q.pace = acquire.QueueState{}, 0, 0, 0, 0
		q.contenders.forget()
		q.queues.free.Put(q)
	}
}

// tryEnter takes the turn if it is free. Otherwise it leaves the queue, and reports whether the lock is certainly held:
// another caller here is waiting for it.
func (q *queue) tryEnter(c *caller) (refused bool, state acquire.QueueState) {
	q.mu.Lock()
	state, c.turn = q.state, !q.busy
	refused = q.busy && state.Known && state.Away == nil && (q.waiting.Len() > 0 || !state.Held)
	q.busy = true
	q.mu.Unlock()
	if c.turn {
		c.queue = q
	} else {
		q.put()
	}
	return refused, state
}

// enter takes the turn and returns true, or queues c.
func (q *queue) enter(c *caller) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	c.queue, c.turn = q, !q.busy
	if c.turn {
		q.busy = true
		return true
	}
	c.ready, c.place = make(chan struct{}, 1), q.waiting.PushBack(c)
	q.startPolls()
	return false
}

// quit removes a waiting caller, and passes on its turn if it has come.
func (q *queue) quit(c *caller) {
	c.queue = nil
	q.mu.Lock()
	waits := c.place != nil
	if waits {
		q.waiting.Remove(c.place)
	}
	q.mu.Unlock()
	if waits {
		q.put()
		return
	}
	q.passUnused(c.transfer)
}

// first returns the first waiting caller, or nil if there is none. The caller must hold q.mu.
func (q *queue) first() *caller {
	if front := q.waiting.Front(); front != nil {
		c, _ := front.Value.(*caller)
		return c
	}
	return nil
}

// next gives the turn to the first waiting caller. The caller must hold q.mu.
func (q *queue) next(c *caller) {
	q.waiting.Remove(c.place)
	c.place = nil
	acquire.Signal(c.ready)
}

// Pass passes the turn and leaves the queue. Held means that the lock is being freed.
func (q *queue) Pass(held bool) {
	q.mu.Lock()
	var idle transport.Subscription
	if c := q.first(); c != nil {
		if c.passed = held; held {
			if y := q.countTurn(time.Now()); y.turns > 0 {
				q.owed = y
			}
		}
		q.next(c)
	} else {
		q.busy, q.ahead = false, 0
		idle, q.sub = q.sub, nil
		q.state, q.owed = acquire.QueueState{}, yield{}
		q.stopPolls()
	}
	q.state.Held = false
	q.mu.Unlock()
	if idle != nil {
		idle.Close()
	}
	q.put()
}

// granted records that the caller with the turn holds the lock. It closes the subscription if no caller is waiting.
func (q *queue) granted(owner codec.Owner) {
	q.mu.Lock()
	q.state = acquire.QueueState{Known: true, Held: true, Holder: owner}
	var idle transport.Subscription
	if q.waiting.Len() == 0 {
		idle, q.sub = q.sub, nil
	}
	q.mu.Unlock()
	if idle != nil {
		idle.Close()
	}
}

func (q *queue) refused(holder codec.Owner, ttl time.Duration) {
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

func (q *queue) subscription() transport.Subscription {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sub
}

// keep stores sub for later callers, or nil if it is broken. Only the caller with the turn may call it.
func (q *queue) keep(sub transport.Subscription) {
	q.mu.Lock()
	q.sub = sub
	q.mu.Unlock()
}

// The first waiter polls at an interval; see acquire.AwaitTurn. Waiters share one timer, to save memory.

// startPolls starts the timer. The caller must hold q.mu.
func (q *queue) startPolls() {
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

// stopPolls stops the timer. The caller must hold q.mu.
func (q *queue) stopPolls() {
	if q.polls {
		q.poll.Stop()
		q.polls = false
	}
}

// wakeToPoll is the timer's function. If late, a poll is early.
func (q *queue) wakeToPoll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := q.first()
	if q.polls = first != nil; q.polls {
		acquire.Signal(first.ready)
		q.poll.Reset(q.queues.every)
	}
}

// Transfer implements acquire.Turn.
func (q *queue) Transfer(owner any) *acquire.Transfer {
	q.mu.Lock()
	alone := q.waiting.Len() == 0
	q.mu.Unlock()
	if alone {
		return nil
	}
	t := acquire.NewTransfer(&q.queues.transfers, owner)
	if !q.passLock(t) {
		t.Free()
		return nil
	}
	return t
}

// passLock is like Pass, but also hands the lock to the next waiter. It returns false if the lock must be freed
// instead: no caller is waiting, the next caller makes its own attempts, it is the turn of other processes, or another
// process may use a different client and wait too long for a message.
func (q *queue) passLock(t *acquire.Transfer) bool {
	q.mu.Lock()
	now := time.Now()
	c := q.first()
	if c == nil || c.asks || q.due(now) || !q.contenders.allRedlatch(q.others, now) {
		q.mu.Unlock()
		return false
	}
	q.countTurn(now) // not the last of its burst
	c.passed, c.transfer = true, t
	q.next(c)
	q.state.Held = false
	q.mu.Unlock()
	q.put()
	return true
}

// passUnused passes on a turn with its unused transfer, or lets the holder free the lock.
func (q *queue) passUnused(t *acquire.Transfer) {
	if t != nil {
		if q.passLock(t) {
			return
		}
		t.Settle(transport.ErrNotSent)
	}
	q.Pass(false)
}
