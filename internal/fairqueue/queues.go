// Package fairqueue is the strategy for locks with a queue on the server. Each waiter has its own owner,
// place and channel; the waiters of one process share the polling.
//
//	        no pooled subscription,
//	        and the lock is not contended
//	caller ───────────────────────────────▶ attempt ── granted ──────────────▶ hold
//	   │                                     ▲    │ refused, queued             ▲
//	   │ get a subscription from the pool,   │    ▼                             │
//	   └─ or subscribe: then the attempt ────┘  place in the group ── granted ──┘
//	      needs no second one                     │   │  ▲
//	                                    gave up   │   └──┘ asks at its message, when the first of
//	                                              ▼        the group or a heartbeat calls it, or
//	                                          dequeuer     as the first, each poll cap
//
// A [Group] has the waiters of one process for one lock. Its first polls Redis for all of them, and calls
// the waiter whose turn has come. Heartbeats keep their places on the server, detect dead waiters (package
// liveness), evict dead ones in front, and nudge a head that sleeps before a free lock.
//
// The dequeuer removes owners that gave up, or whose attempts are in doubt, from their queues, many by one
// call. The pool keeps an owner and its subscription for a second after the wait, for the next caller.
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

// Kind is a kind of lock with a queue on the server, in which a refused attempt that waits puts its owner.
// The methods fill reset calls, which may run more than once.
type Kind interface {
	acquire.Waitable

	// GiveUp fills c with the call that removes the owner from the queue, or adds the owner to such a
	// call for the same lock.
	GiveUp(c *transport.Call, r *acquire.Request)

	// Heartbeat fills c with the call that keeps the places of the waiters, all of one process, and of
	// living others, and reads the first window places and whether the lock is free. A living other that
	// is the first is kept while the lock is held. reply.DecodeBeat decodes the reply.
	Heartbeat(c *transport.Call, window int, waiters []Waiter, others []reply.Other)

	// Evict fills c with the call that evicts dead owners from the front of the queue, each as long as it
	// is the first and has the deadline that a heartbeat has read. If the lock is free, the new first is
	// notified. reply.DecodeEvicted decodes the reply.
	Evict(c *transport.Call, dead []reply.Place)

	// Nudge fills c with the call that notifies the owner if it is the first in the queue of a free lock.
	// reply.Nudged decodes the reply.
	Nudge(c *transport.Call, owner string)
}

// Waiter is an owner in a queue.
type Waiter struct {
	Owner string
	// Wait is the wait with which the owner was queued, int64 milliseconds boxed once.
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

// NowMillis returns the time for scripts, in milliseconds since 1970.
func (qs *Queues) NowMillis() int64 { return qs.clock.NowMillis() }

// Prepare makes sure that the time is known.
func (qs *Queues) Prepare(ctx context.Context) { qs.clock.Keep(ctx) }

// Lasts returns the longest time for which the place of r can block others.
func (qs *Queues) Lasts(r *acquire.Request) time.Duration { return qs.dequeuer.lasts(r) }

// Dequeue removes the owner of r from the queue of the lock called name, and waits for the result for at
// most one command timeout. Several owners of one queue share calls.
func (qs *Queues) Dequeue(k Kind, name string, r *acquire.Request) error {
	ended := make(chan error, 1)
	qs.dequeuer.leave(&departure{kind: k, name: name, request: *r, tell: func(err error) { ended <- err }})
	late := time.NewTimer(qs.engine.Command)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C: // it may leave later, which is harmless
		return fmt.Errorf("%w: not out of the queue within %v", engine.ErrUncertain, qs.engine.Command)
	}
}

// Leave is like Dequeue, but works in the background and retries.
func (qs *Queues) Leave(k Kind, name string, r *acquire.Request) {
	qs.dequeuer.leave(&departure{kind: k, name: name, request: *r})
}

// Group has one process's waiters for one lock, in the order in which they were queued.
type Group struct {
	id     lockID
	queues *Queues
	engine *engine.Engine
	name   string // the lock's, by its first caller
	kind   Kind
	hurry  chan struct{} // receives if the next heartbeat is due immediately

	mu          sync.Mutex // guards what follows; held for a few instructions only
	first, last *Place
	byOwner     map[string]*Place
	next        time.Time   // of the first's poll
	beating     bool        // heartbeats are sent, or will be
	start       *time.Timer // of the heartbeats
	gap         bool        // messages may have been missed
}

// Place is one waiter's place in a group, to be left exactly once.
type Place struct {
	wake       chan struct{} // receives when the waiter is called, or becomes the first
	group      *Group
	waiter     Waiter
	number     int64 // higher for waiters that were queued later
	called     bool  // the waiter must poll Redis
	shared     bool  // this owner has, or had, another place
	subscribed bool  // to its channel
	prev, next *Place
}

// Join puts a waiter that the server has queued for the lock called name at the end of its group.
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

// remove removes a place, mu held. If it led, the next one leads.
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

// SetSubscribed sets whether the waiter is subscribed, acknowledged by the server.
func (p *Place) SetSubscribed(yes bool) {
	p.group.mu.Lock()
	defer p.group.mu.Unlock()
	p.subscribed = yes
}

// Gap reports that messages may have been missed. If the waiter leads, it must ask, else Gap calls the first:
// one reply shows all of the group what was missed.
func (p *Place) Gap() (leads bool) {
	g := p.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.gap {
		g.gap = true
		acquire.Signal(g.hurry)
	}
	if g.first != p {
		g.first.call()
	}
	return g.first == p
}

// Leave leaves the place, and calls others of the same owner.
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

// WakeSameOwner calls others of the same owner: their common place on the server is gone when this one
// has given it up, or holds the lock.
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

// Back moves the waiter to the end: the server has queued it again.
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

// Plan sets the time of the next poll, by the then first of the group.
func (p *Place) Plan(at time.Time) {
	p.group.mu.Lock()
	defer p.group.mu.Unlock()
	p.group.next = at
}

// woken returns whether the waiter was called, whether it leads, and the time of the next poll.
func (p *Place) woken() (called, leads bool, planned time.Time) {
	p.group.mu.Lock()
	defer p.group.mu.Unlock()
	called, p.called = p.called, false
	return called, p.group.first == p, p.group.next
}

// call makes the waiter poll Redis, the group's mu held.
func (p *Place) call() {
	p.called = true
	acquire.Signal(p.wake)
}

// Call calls another waiter, if it is in this group.
func (p *Place) Call(owner string) {
	p.group.mu.Lock()
	defer p.group.mu.Unlock()
	if other := p.group.byOwner[owner]; other != nil && other != p {
		other.call()
	}
}
