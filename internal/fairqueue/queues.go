// Package fairqueue is how callers wait whose place is in a queue on the server. Each has an
// owner, a place and a channel of its own; what those of one process share is the asking.
//
//	        no subscription to use again,
//	        and the lock is not contended
//	caller ───────────────────────────────▶ attempt ── granted ──────────────▶ hold
//	   │                                     ▲    │ refused, queued             ▲
//	   │ get a subscription from the pool,   │    ▼                             │
//	   └─ or make one: then the attempt ─────┘  place in the group ── granted ──┘
//	      needs no second one                     │   │  ▲
//	                                    gave up   │   └──┘ asks when its message comes, when the
//	                                              ▼        first of the group or a heartbeat
//	                                          dequeuer     calls it, or as the first, in time
//
// A [Group] has the waiters of one process for one lock. Its first asks Redis now and then, for
// all, and calls the one whose turn has come. While there are any, heartbeats keep their
// places on the server, tell dead waiters from live ones (package liveness), evict the dead
// ones in front, and nudge a head that sleeps before a free lock.
//
// The dequeuer takes owners that gave up, or whose attempts are in doubt, out of their queues,
// many by one call. The pool keeps an owner and its subscription for a second after the wait,
// for the next caller.
package fairqueue

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Kind is a kind of lock with a queue on the server: an attempt that waits and is refused puts
// its owner there. Each method that is given a call fills a reset one, and each of those calls
// may run more than once.
type Kind interface {
	acquire.Waitable

	// GiveUp fills c with the call that takes the owner out of the queue. Where c is such a
	// call for other owners of the same lock already, it adds this owner.
	GiveUp(c *transport.Call, r *acquire.Request)

	// Heartbeat fills c with the call that keeps the places of the waiters, all of one process,
	// and of the others that live, and reads the first window places and whether the lock is
	// free. A living one that is the first is kept while the lock is held. The reply is that of
	// reply.DecodeBeat.
	Heartbeat(c *transport.Call, window int, waiters []Waiter, others []reply.Other)

	// Evict fills c with the call that takes dead owners out of the front of the queue, in the
	// order given, each while it is the first and has the deadline that a heartbeat has read. If
	// the lock is free, the owner that is first then is woken. The reply is that of
	// reply.DecodeEvicted.
	Evict(c *transport.Call, dead []reply.Place)

	// Nudge fills c with the call that wakes the owner if it is the first in the queue and the
	// lock is free. The reply is that of reply.Nudged.
	Nudge(c *transport.Call, owner string)
}

// Waiter is an owner that waits in a queue. What travels is boxed once.
type Waiter struct {
	// Owner is the owner's text.
	Owner string
	// Wait is the wait with which the owner was queued, in milliseconds, an int64.
	Wait any
}

// lockID is a lock of one kind.
type lockID struct{ kind, key string }

func idOf(k Kind) lockID { return lockID{k.Name(), k.Key()} }

// Queues are the waiters of a client, by lock. All methods are safe for concurrent use.
type Queues struct {
	engine   *engine.Engine
	clock    *engine.Clock
	groups   engine.Registry[lockID, *Group]
	pool     pool
	dequeuer dequeuer
	health   evictionHealth
	places   atomic.Int64 // of queued waiters, in the order in which they were queued
	callers  sync.Pool    // of *caller
}

var slot = engine.Slot[*Queues]{Make: NewQueues, Close: func(qs *Queues) { qs.pool.close() }}

// Of returns the queues of an engine's client.
func Of(e *engine.Engine) *Queues { return slot.Of(e) }

// NewQueues returns the queues of an engine's client.
func NewQueues(e *engine.Engine) *Queues {
	qs := &Queues{engine: e, clock: &e.Clock}
	qs.pool.engine, qs.dequeuer.engine = e, e
	return qs
}

// Strategy returns how callers wait for one lock. All locks of one name and kind have the same
// group.
func (qs *Queues) Strategy(k Kind) acquire.Strategy { return &strategy{queues: qs, kind: k} }

// NowMillis returns the time that scripts are given, in milliseconds since 1970.
func (qs *Queues) NowMillis() int64 { return qs.clock.NowMillis() }

// Prepare sees to it that the time is known.
func (qs *Queues) Prepare(ctx context.Context) { qs.clock.Keep(ctx) }

// Lasts returns for how long at most the place of r can block others.
func (qs *Queues) Lasts(r *acquire.Request) time.Duration { return qs.dequeuer.lasts(r) }

// Dequeue takes the owner of r, which waits no more for the lock called name, out of its queue,
// and waits for the outcome, one command timeout at most. When many leave one queue, they share
// calls.
func (qs *Queues) Dequeue(k Kind, name string, r *acquire.Request) error {
	ended := make(chan error, 1)
	qs.dequeuer.leave(&departure{kind: k, name: name, request: *r, tell: func(err error) { ended <- err }})
	late := time.NewTimer(qs.engine.Command)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C: // it may leave later, which does no harm
		return fmt.Errorf("%w: not out of the queue within %v", engine.ErrUncertain, qs.engine.Command)
	}
}

// Leave is like Dequeue, but does not wait, and tries again what goes wrong.
func (qs *Queues) Leave(k Kind, name string, r *acquire.Request) {
	qs.dequeuer.leave(&departure{kind: k, name: name, request: *r})
}

// Group has one process's waiters for one fair lock. Each has its own place in the queue on the
// server and listens to its own channel; what they share is the asking: the first of the group
// asks Redis now and then, for all of them, and when the answer says that another one's turn
// has come, calls it.
//
// Get one from [Queues.Join], which also puts a waiter in it.
type Group struct {
	id     lockID
	queues *Queues
	engine *engine.Engine
	name   string // the lock's, as the first caller gave it
	kind   Kind
	hurry  chan struct{} // receives when the next heartbeat is due at once

	mu          sync.Mutex // guards what follows; held for a few instructions only
	first, last *Place
	byOwner     map[string]*Place
	next        time.Time   // when the first asks again
	beating     bool        // heartbeats are sent, or will be
	start       *time.Timer // of the heartbeats
	gap         bool        // messages may have been missed
}

// Place is one waiter's place in a group. It is left exactly once.
type Place struct {
	wake       chan struct{} // receives when the waiter was called, or has become the first
	group      *Group
	waiter     Waiter
	number     int64 // higher for waiters that were queued later
	called     bool  // it is the waiter's turn to ask Redis
	shared     bool  // there is, or was, another place of this owner
	subscribed bool  // its waiter listens to its channel
	prev, next *Place
}

// Join puts a waiter that the server has queued for the lock called name behind the others of
// this process.
func (qs *Queues) Join(k Kind, name string, w Waiter) *Place {
	id := idOf(k)
	g := qs.groups.Join(id, func() *Group {
		return &Group{
			id: id, queues: qs, engine: qs.engine, name: name, kind: k,
			byOwner: map[string]*Place{}, hurry: make(chan struct{}, 1),
		}
	})
	qs.pool.waiting(id, 1)
	p := &Place{wake: make(chan struct{}, 1), group: g, waiter: w, number: qs.places.Add(1)}
	g.mu.Lock()
	defer g.mu.Unlock()
	if other := g.byOwner[w.Owner]; other != nil {
		other.shared, p.shared = true, true
	}
	g.byOwner[w.Owner] = p
	g.push(p)
	g.beginHeartbeats()
	return p
}

// push puts a place at the end, mu held.
func (g *Group) push(p *Place) {
	p.prev, p.next = g.last, nil
	if g.last != nil {
		g.last.next = p
	} else {
		g.first = p
	}
	g.last = p
}

// remove takes a place out, mu held, and lets the one behind it lead if it did.
func (g *Group) remove(p *Place) {
	led := g.first == p
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		g.first = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		g.last = p.prev
	}
	if led && g.first != nil {
		acquire.Signal(g.first.wake)
	}
}

// SetSubscribed says whether the waiter listens to its channel, acknowledged.
func (p *Place) SetSubscribed(yes bool) {
	p.group.mu.Lock()
	defer p.group.mu.Unlock()
	p.subscribed = yes
}

// Gap says that messages for the waiter may have been missed: for the others of the group, too.
func (p *Place) Gap() {
	g := p.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.gap {
		g.gap = true
		acquire.Signal(g.hurry)
	}
}

// Leave gives the place up. Others of the same owner are called.
func (p *Place) Leave() {
	g := p.group
	g.mu.Lock()
	g.remove(p)
	if g.byOwner[p.waiter.Owner] == p {
		delete(g.byOwner, p.waiter.Owner)
	}
	g.endHeartbeats()
	g.mu.Unlock()
	p.WakeSameOwner()
	g.queues.pool.waiting(g.id, -1)
	g.queues.groups.Leave(g.id)
}

// WakeSameOwner makes others of the same owner ask. They have one place on the server with this
// one, which is gone when this one has given it up, or holds the lock.
func (p *Place) WakeSameOwner() {
	g := p.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if !p.shared {
		return
	}
	for other := g.first; other != nil; other = other.next {
		if other.waiter.Owner == p.waiter.Owner && other != p {
			g.byOwner[p.waiter.Owner] = other
			other.call()
		}
	}
}

// Back moves the waiter behind all others: the server has queued its waiter anew.
func (p *Place) Back() {
	g := p.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last == p {
		return
	}
	g.remove(p)
	g.push(p)
}

// Leads reports whether the waiter is the first of its group.
func (p *Place) Leads() bool {
	p.group.mu.Lock()
	defer p.group.mu.Unlock()
	return p.group.first == p
}

// Plan says when the first of the group asks again, the one that is first then.
func (p *Place) Plan(at time.Time) {
	p.group.mu.Lock()
	defer p.group.mu.Unlock()
	p.group.next = at
}

// woken returns whether the waiter was called, whether it leads, and when the first of the
// group is to ask again.
func (p *Place) woken() (called, leads bool, planned time.Time) {
	p.group.mu.Lock()
	defer p.group.mu.Unlock()
	called, p.called = p.called, false
	return called, p.group.first == p, p.group.next
}

// call wakes the waiter to ask Redis, the group's mu held.
func (p *Place) call() {
	p.called = true
	acquire.Signal(p.wake)
}

// Call makes another waiter ask, if it is one of this group.
func (p *Place) Call(owner string) {
	p.group.mu.Lock()
	defer p.group.mu.Unlock()
	if other := p.group.byOwner[owner]; other != nil && other != p {
		other.call()
	}
}

// CallFirst makes the first of the group ask, for all.
func (p *Place) CallFirst() {
	p.group.mu.Lock()
	defer p.group.mu.Unlock()
	p.group.first.call()
}
