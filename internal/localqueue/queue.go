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
// lock, until its hold ends. It passes the turn on exactly once, either as soon as its release has been sent or
// together with the lock; see passLock.
type queue struct {
	id     lockID
	queues *queues
	refs   int       // guarded by queues.mu
	deaf   time.Time // when a caller with the turn last failed to subscribe for a yield; only that caller uses it

	mu         sync.Mutex // guards the fields below and some fields of the callers; held briefly
	busy       bool
	waiting    list.List              // of *caller
	sub        transport.Subscription // kept while a caller is waiting for the lock
	state      acquire.QueueState
	ahead      int // turns taken here that the other processes have not had yet
	aheadSince time.Time
	others     int   // number of other processes that are waiting; may be a guess
	theirs     int   // turns of the other processes, modulo others
	owed       yield // yield that is due before the next attempt; zero if there is none
	contenders contenders
	pace       time.Duration // estimated duration of a turn without delays
	poll       *time.Timer   // nil until a caller has had to wait
	polls      bool
}

type lockID struct{ kind, key string }

// queues holds the queues of a client, by lock. It is safe for concurrent use.
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

// join returns the queue for a lock, which it creates if necessary. Callers leave it with Pass, passLock or quit.
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
		q.state, q.ahead, q.others, q.theirs, q.pace, q.deaf = acquire.QueueState{}, 0, 0, 0, 0, time.Time{}
		q.contenders.forget()
		q.queues.free.Put(q)
	}
}

// tryEnter takes the turn if it is free. Otherwise it leaves the queue and reports whether the lock is certainly
// unavailable because another caller in this process is waiting for it.
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

// enter takes the turn if it is free. Otherwise it queues c and returns false.
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

// quit removes a waiting caller from the queue. If the caller already has the turn, quit passes it on.
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

// first returns the first waiting caller, or nil if there is none. q.mu must be held.
func (q *queue) first() *caller {
	if front := q.waiting.Front(); front != nil {
		c, _ := front.Value.(*caller)
		return c
	}
	return nil
}

// next gives the turn to the first waiting caller. q.mu must be held.
func (q *queue) next(c *caller) {
	q.waiting.Remove(c.place)
	c.place = nil
	acquire.Signal(c.ready)
}

// Pass passes the turn to the next caller, if any, and leaves the queue. If held is true, the lock is being released.
// An unused turn doesn't count.
func (q *queue) Pass(held bool) {
	q.mu.Lock()
	var idle transport.Subscription
	if c := q.first(); c != nil {
		if c.passed = held; held || q.state.Held { // a hold that was lost is also a turn
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

// granted records that the caller with the turn holds the lock. It closes the subscription if no other caller is
// waiting.
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
		return
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

// keep stores sub for later callers; a nil sub means that the old one is broken. Only the caller with the turn may call
// it.
func (q *queue) keep(sub transport.Subscription) {
	q.mu.Lock()
	q.sub = sub
	q.mu.Unlock()
}

// The first waiter polls at regular intervals; see acquire.AwaitTurn. To save memory, all waiters share one timer.

// startPolls starts the timer. q.mu must be held.
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

// stopPolls stops the timer. q.mu must be held.
func (q *queue) stopPolls() {
	if q.polls {
		q.poll.Stop()
		q.polls = false
	}
}

// wakeToPoll is called by the timer. If it runs late, a waiter merely polls too early.
func (q *queue) wakeToPoll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := q.first()
	if q.polls = first != nil; q.polls {
		acquire.Signal(first.ready)
		q.poll.Reset(q.queues.every)
	}
}

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

// passLock is like Pass, but it also transfers the lock to the next waiter. It returns false if the lock must be
// released instead, because no caller is waiting, the next caller is making an attempt, other processes are due, or
// another process may use a different client and wait too long for a message.
func (q *queue) passLock(t *acquire.Transfer) bool {
	q.mu.Lock()
	now := time.Now()
	c := q.first()
	if c == nil || c.asks || q.due(now) || !q.contenders.allRedlatch(q.others, now) {
		q.mu.Unlock()
		return false
	}
	q.countTurn(now) // this turn is not the last of its burst
	c.passed, c.transfer = true, t
	q.next(c)
	q.state.Held = false
	q.mu.Unlock()
	q.put()
	return true
}

// passUnused passes on an unused turn, together with the lock if that came with the turn. If it cannot pass the lock
// on, it lets the holder release it.
func (q *queue) passUnused(t *acquire.Transfer) {
	if t != nil {
		if q.passLock(t) {
			return
		}
		t.Settle(transport.ErrNotSent)
	}
	q.Pass(false)
}
