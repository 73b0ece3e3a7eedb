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
// A group has the waiters of one process for one lock. Its first polls Redis for all of them, and calls
// the waiter whose turn has come. Heartbeats keep their places on the server, detect dead waiters (package
// liveness), evict dead ones in front, and nudge a head that sleeps before a free lock.
//
// The dequeuer removes canceled owners, and owners with attempts in doubt, from their queues, many in
// one call. The pool keeps an owner and its subscription for a second after the wait, for the next
// caller.
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

type lockID struct{ kind, key string }

func idOf(k Kind) lockID { return lockID{k.Name(), k.Key()} }

// Queues are the waiters and the kept subscriptions of a client. All methods are safe for concurrent use.
type Queues struct {
	engine   *engine.Engine
	dequeuer dequeuer
	health   evictionHealth
	places   atomic.Int64 // of queued waiters, in the order in which they were queued
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

// Strategy returns how callers wait for one lock. All locks of one name and kind have the same
// group.
func (qs *Queues) Strategy(k Kind) acquire.Strategy { return &strategy{queues: qs, kind: k} }

// NowMillis returns the time for scripts, in milliseconds since 1970.
func (qs *Queues) NowMillis() int64 { return qs.engine.Clock.NowMillis() }

// Prepare makes sure that the time is known.
func (qs *Queues) Prepare(ctx context.Context) { qs.engine.Clock.Keep(ctx) }

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
		return fmt.Errorf("%w: not removed from the queue within %v", engine.ErrUncertain, qs.engine.Command)
	}
}

// Leave is like Dequeue, but works in the background and retries.
func (qs *Queues) Leave(k Kind, name string, r *acquire.Request) {
	qs.dequeuer.leave(&departure{kind: k, name: name, request: *r})
}

// group has one process's waiters for one lock, in the order in which they were queued, and the subscriptions
// kept for the lock.
type group struct {
	id     lockID
	queues *Queues
	engine *engine.Engine
	name   string // the lock's, by its first caller
	kind   Kind
	hurry  chan struct{} // receives if the next heartbeat is due immediately

	// Guarded by queues.mu.
	users     int       // its waiters
	contended time.Time // the lock counts as contended until then
	kept      map[*subscription]struct{}
	idle      []*subscription // of kept; the newest is reused first

	mu      sync.Mutex // guards what follows; held for a few instructions only
	waiting list.List  // of *caller
	byOwner map[string][]*caller
	next    time.Time   // of the first's poll
	beating bool        // heartbeats are sent, or will be
	start   *time.Timer // of the heartbeats
	gap     bool        // messages may have been missed
}

// group returns the group of the lock called name, mu held.
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

// use counts the group's waiters, queues.mu held.
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
		g.next = time.Time{} // the plan of an earlier first is void
	}
	g.byOwner[w.Owner] = append(g.byOwner[w.Owner], c)
	c.place = g.waiting.PushBack(c)
	g.beginHeartbeats()
}

// leaveGroup leaves the group, if it is in one, and calls others of the same owner.
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

// first returns the waiter that leads, nil if there is none, mu held.
func (g *group) first() *caller {
	if front := g.waiting.Front(); front != nil {
		c, _ := front.Value.(*caller) // always one
		return c
	}
	return nil
}

// wakeFirst wakes the new leader, mu held, if the former leader has left.
func (g *group) wakeFirst(led bool) {
	if first := g.first(); led && first != nil {
		acquire.Signal(first.wake)
	}
}

// back moves the waiter to the end: the server has queued it again.
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

// call makes the waiter poll Redis, the group's mu held.
func (c *caller) call() {
	c.called = true
	acquire.Signal(c.wake)
}

// call calls the waiters of these owners, of each the last.
func (g *group) call(owners ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, owner := range owners {
		if all := g.byOwner[owner]; len(all) > 0 {
			all[len(all)-1].call()
		}
	}
}

// callAll calls all waiters of an owner: their shared place on the server is gone when any of them
// leaves it or acquires the lock.
func (g *group) callAll(owner string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.byOwner[owner] {
		c.call()
	}
}

// sawGap reports that messages may have been missed. If the waiter leads, it must retry, else the first
// is called: one reply shows the whole group what was missed.
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
