// Package fairqueue is the strategy for locks with a queue on the server. Each waiter has its own owner, place and
// channel. A group holds one process's waiters for one lock: the first of them polls Redis on behalf of all, and
// heartbeats keep their places, evict dead waiters in front (package liveness) and nudge the head of a free lock. The
// dequeuer removes canceled owners and attempts in doubt. The pool keeps an owner and its subscription for a second,
// for the next caller.
//
//	        no pooled subscription,
//	        and the lock is not contended
//	caller ───────────────────────────────▶ attempt ── granted ──────────────▶ hold
//	   │                                     ▲    │ refused, queued             ▲
//	   │ get a subscription from the pool,   │    ▼                             │
//	   └─ or subscribe: then the attempt ────┘  place in the group ── granted ──┘
//	      needs no second one                     │   │  ▲
//	                                    gave up   │   └──┘ retries at its message, when the first of
//	                                              ▼        the group or a heartbeat calls it, or, if
//	                                          dequeuer     it is the first, at each poll cap
package fairqueue

import (
	"container/list"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Kind is a kind of lock that queues refused attempts on the server if they wait. The methods fill in calls that have
// been reset and that may run more than once.
type Kind interface {
	acquire.Waitable

	// GiveUp fills c with the call that removes the owner from the queue, or adds the owner to such a call.
	GiveUp(c *transport.Call, r *acquire.Request)

	// Heartbeat fills c with the call that keeps the places of the waiters, all of one process, and of other living
	// waiters, and reads the first window places and whether the lock is free. If the first in the queue is one of those
	// others, it is kept only while the lock is held.
	Heartbeat(c *transport.Call, window int, waiters []Waiter, others []reply.Other)

	// Evict fills c with the call that evicts dead owners from the front of the queue, each only if it still has the
	// deadline that a heartbeat read. If the lock is free, the new first is notified.
	Evict(c *transport.Call, dead []reply.Place)

	// Nudge fills c with the call that notifies the owner if it is the first in the queue of a free lock.
	Nudge(c *transport.Call, owner string)
}

// Waiter is an owner in a queue.
type Waiter struct {
	Owner string
	// Wait is its wait in the queue, int64 milliseconds, boxed.
	Wait any
}

type lockID struct{ kind, key string }

func idOf(k Kind) lockID { return lockID{k.Name(), k.Key()} }

// Queues holds the waiters and kept subscriptions of a client. They are safe for concurrent use.
type Queues struct {
	engine   *engine.Engine
	dequeuer dequeuer
	health   evictionHealth
	places   atomic.Int64 // of queued waiters, in their order
	callers  sync.Pool    // of *caller

	mu     sync.Mutex // guards the fields below; never held while a subscription closes
	groups map[lockID]*group
	timer  *time.Timer // of the next sweep, or nil
	closed bool
}

var slot = engine.Slot[*Queues]{
	Make: func(e *engine.Engine) *Queues {
		return &Queues{engine: e, dequeuer: dequeuer{engine: e}, groups: map[lockID]*group{}}
	},
	Close: (*Queues).close,
}

// Of returns the queues of an engine's client.
func Of(e *engine.Engine) *Queues { return slot.Of(e) }

// Strategy returns the strategy for one lock. Locks with the same name and kind share a group.
func (qs *Queues) Strategy(k Kind) acquire.Strategy { return &strategy{queues: qs, kind: k} }

// NowMillis returns the time for scripts, in Unix milliseconds.
func (qs *Queues) NowMillis() int64 { return qs.engine.Clock.NowMillis() }

// Prepare makes sure that the time is known.
func (qs *Queues) Prepare(ctx context.Context) { qs.engine.Clock.Keep(ctx) }

// Lasts returns how long r's place can block others.
func (qs *Queues) Lasts(r *acquire.Request) time.Duration { return qs.dequeuer.lasts(r) }

// Dequeue removes the owner of r from the queue. It waits for at most one command timeout. Departures that happen at
// the same time share a call.
func (qs *Queues) Dequeue(k Kind, name string, r *acquire.Request) error {
	ended := make(chan error, 1)
	qs.dequeuer.leave(&departure{kind: k, name: name, request: *r, tell: func(err error) { ended <- err }})
	late := time.NewTimer(qs.engine.Command)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C: // harmless: it may leave later
		return fmt.Errorf("%w: not removed from the queue within %v", engine.ErrUncertain, qs.engine.Command)
	}
}

// Leave is Dequeue in the background, with retries.
func (qs *Queues) Leave(k Kind, name string, r *acquire.Request) {
	qs.dequeuer.leave(&departure{kind: k, name: name, request: *r})
}

// group holds one process's waiters for one lock, in their order, and the subscriptions kept for it.
type group struct {
	id     lockID
	queues *Queues
	engine *engine.Engine
	name   string // by its first caller
	kind   Kind
	hurry  chan struct{} // receives if the next heartbeat is due immediately

	// Guarded by queues.mu.
	users     int       // its waiters
	contended time.Time // the lock counts as contended until then
	kept      map[*subscription]struct{}
	idle      []*subscription // the newest is reused first

	mu      sync.Mutex // guards what follows; held briefly
	waiting list.List  // of *caller
	byOwner map[string][]*caller
	next    time.Time // of the first's poll
	beating bool
	start   *time.Timer // of the heartbeats
	gap     bool        // messages may have been missed
}

// group returns a lock's group, mu held.
func (qs *Queues) group(k Kind, name string) *group {
	id := idOf(k)
	g := qs.groups[id]
	if g == nil {
		g = &group{
			id: id, queues: qs, engine: qs.engine, name: name, kind: k, hurry: make(chan struct{}, 1),
			kept: map[*subscription]struct{}{}, byOwner: map[string][]*caller{},
		}
		qs.groups[id] = g
	}
	return g
}

// use counts the waiters, queues.mu held.
func (g *group) use(n int) {
	g.users += n
	g.contended = time.Now().Add(keepOpen)
	g.queues.arm()
}

func (c *caller) join(name string, w Waiter) {
	qs := c.queues
	qs.mu.Lock()
	g := qs.group(c.kind, name)
	g.use(1)
	qs.mu.Unlock()
	c.group, c.waiter, c.number, c.wake = g, w, qs.places.Add(1), make(chan struct{}, 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	c.called = false // it may have been in a group before
	if g.waiting.Len() == 0 {
		g.next = time.Time{} // the plan of an earlier first waiter is void
	}
	g.byOwner[w.Owner] = append(g.byOwner[w.Owner], c)
	c.place = g.waiting.PushBack(c)
	g.beginHeartbeats()
}

// leaveGroup leaves the group, if any, and calls the other waiters of the same owner.
func (c *caller) leaveGroup() {
	g := c.group
	if g == nil {
		return
	}
	g.mu.Lock()
	led := g.first() == c
	g.waiting.Remove(c.place)
	g.wakeFirst(led)
	others := slices.DeleteFunc(g.byOwner[c.waiter.Owner], func(other *caller) bool { return other == c })
	if g.byOwner[c.waiter.Owner] = others; len(others) == 0 {
		delete(g.byOwner, c.waiter.Owner)
	}
	g.endHeartbeats()
	g.mu.Unlock()
	g.callAll(c.waiter.Owner)
	g.queues.mu.Lock()
	g.use(-1)
	g.queues.mu.Unlock()
	c.group, c.wake = nil, nil
}

// first returns the leading waiter, or nil if there is none, mu held.
func (g *group) first() *caller {
	if front := g.waiting.Front(); front != nil {
		c, _ := front.Value.(*caller)
		return c
	}
	return nil
}

// wakeFirst wakes the new leader if led, which means that the old one has gone, mu held.
func (g *group) wakeFirst(led bool) {
	if first := g.first(); led && first != nil {
		acquire.Signal(first.wake)
	}
}

// back moves the waiter to the end, as the server has done.
func (c *caller) back() {
	g := c.group
	g.mu.Lock()
	defer g.mu.Unlock()
	led := g.first() == c
	g.waiting.MoveToBack(c.place)
	g.wakeFirst(led && g.first() != c)
}

func (c *caller) leads() bool {
	c.group.mu.Lock()
	defer c.group.mu.Unlock()
	return c.group.first() == c
}

// call makes the waiter poll Redis, mu held.
func (c *caller) call() {
	c.called = true
	acquire.Signal(c.wake)
}

// call calls the last waiter of each of these owners.
func (g *group) call(owners ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, owner := range owners {
		if all := g.byOwner[owner]; len(all) > 0 {
			all[len(all)-1].call()
		}
	}
}

// callAll calls all waiters of an owner: their shared place is gone when any of them leaves it or acquires the lock.
func (g *group) callAll(owner string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.byOwner[owner] {
		c.call()
	}
}

// sawGap reports that messages may have been missed. A leader must retry; otherwise the first waiter is called, since
// one reply serves the whole group.
func (c *caller) sawGap() (leads bool) {
	g := c.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.gap {
		g.gap = true
		acquire.Signal(g.hurry)
	}
	first := g.first()
	if first != c {
		first.call()
	}
	return first == c
}
