// Package fairqueue implements [acquire.Strategy] for locks whose waiters are queued in Redis. Each waiter has its own
// owner, place in the queue and channel. A group holds the waiters in this process for one lock. Its first waiter
// polls Redis on behalf of all. Its heartbeats keep their places, evict dead waiters in front of them (see package
// liveness), and notify the head of the queue again if it doesn't acquire a free lock. The dequeuer removes an owner
// from the queue if its caller stops waiting or the outcome of its attempt is unknown. The pool keeps an owner and its
// subscription for a second, for the next caller.
//
//	        no pooled subscription,
//	        and the lock is not contended
//	caller ───────────────────────────────▶ attempt ── granted ──────────────▶ hold
//	   │                                     ▲    │ refused, and queued         ▲
//	   │ take a subscription from the pool   │    ▼                             │
//	   └─ or subscribe before the attempt ───┘  place in the group ── granted ──┘
//	                                              │   │  ▲
//	                                     canceled │   └──┘ retries when it receives a message or is
//	                                              ▼        called by the first waiter or a heartbeat;
//	                                          dequeuer     the first waiter also polls periodically
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

// Kind is a kind of lock whose waiters are queued in Redis when their attempts are refused. Its methods fill in calls
// that have been reset. These calls may run more than once.
type Kind interface {
	acquire.Waitable

	// GiveUp fills c with a call that removes r's owner from the queue. If c already is such a call, GiveUp adds the
	// owner.
	GiveUp(c *transport.Call, r *acquire.Request)

	// Heartbeat fills c with a call that keeps the places of waiters, which are in this process, and of the waiters
	// among others that are alive, for at least keep. The reply contains the first window places and whether the lock
	// is free. If the head of the queue is one of others, its place is kept only while the lock is held.
	Heartbeat(c *transport.Call, keep time.Duration, window int, waiters []Waiter, others []reply.Other)

	// Evict fills c with a call that evicts dead owners from the front of the queue. An owner is evicted only if it
	// still has the deadline that the heartbeat returned. The later waiters are kept for at least keep. If the lock is
	// free, the new head of the queue is notified.
	Evict(c *transport.Call, keep time.Duration, dead []reply.Place)

	// Nudge fills c with a call that notifies owner if it is the head of the queue and the lock is free.
	Nudge(c *transport.Call, owner string)
}

// Waiter is an owner in a queue.
type Waiter struct {
	Owner string
	// Wait is the waiter's [acquire.Request.Wait].
	Wait any
}

type lockID struct{ kind, key string }

func idOf(k Kind) lockID { return lockID{k.Name(), k.Key()} }

// Queues holds the waiters and the pooled subscriptions of a client. It is safe for concurrent use.
type Queues struct {
	engine   *engine.Engine
	dequeuer dequeuer
	health   evictionHealth
	places   atomic.Int64 // number of the last waiter
	callers  sync.Pool    // of *caller

	mu     sync.Mutex // guards the fields below; not held while a subscription is being closed
	groups map[lockID]*group
	timer  *time.Timer // for the next sweep, or nil
	closed bool
}

var slot = engine.Slot[*Queues]{
	Make: func(e *engine.Engine) *Queues {
		return &Queues{engine: e, dequeuer: dequeuer{engine: e}, groups: map[lockID]*group{}}
	},
	Close: (*Queues).close,
}

// Of returns the Queues of the client that uses e.
func Of(e *engine.Engine) *Queues { return slot.Of(e) }

// Strategy returns the strategy for one lock.
func (qs *Queues) Strategy(k Kind) acquire.Strategy { return &strategy{queues: qs, kind: k} }

// NowMillis returns the time to pass to scripts, in Unix milliseconds.
func (qs *Queues) NowMillis() int64 { return qs.engine.Clock.NowMillis() }

// Prepare waits, if necessary, until NowMillis knows the time.
func (qs *Queues) Prepare(ctx context.Context) { qs.engine.Clock.Keep(ctx) }

// Lasts returns how long the place of r's owner can block other waiters.
func (qs *Queues) Lasts(r *acquire.Request) time.Duration { return qs.dequeuer.lasts(r) }

// Dequeue removes r's owner from the queue. It waits for at most one command timeout. Owners that are removed at the
// same time share a call.
func (qs *Queues) Dequeue(k Kind, name string, r *acquire.Request) error {
	ended := make(chan error, 1)
	qs.dequeuer.leave(&departure{kind: k, name: name, request: *r, tell: func(err error) { ended <- err }})
	late := time.NewTimer(qs.engine.Command)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C: // harmless, since the owner may still be removed later
		return fmt.Errorf("%w: not removed from the queue within %v", engine.ErrUncertain, qs.engine.Command)
	}
}

// Leave is like Dequeue, but runs in the background and retries failed calls.
func (qs *Queues) Leave(k Kind, name string, r *acquire.Request) {
	qs.dequeuer.leave(&departure{kind: k, name: name, request: *r})
}

// A group holds the waiters in this process for one lock, in queue order.
type group struct {
	id     lockID
	queues *Queues
	engine *engine.Engine
	name   string // from the first caller
	kind   Kind
	hurry  chan struct{} // receives a value if the next heartbeat is due immediately

	// Guarded by queues.mu.
	users     int       // number of waiters
	contended time.Time // when the lock stops counting as contended
	kept      map[*subscription]struct{}
	idle      []*subscription // a stack: the newest is reused first

	mu      sync.Mutex // guards the fields below; held briefly
	waiting list.List  // of *caller
	byOwner map[string][]*caller
	next    time.Time // when the first waiter polls next
	beating bool
	beat    time.Time   // when a heartbeat was last due
	start   *time.Timer // starts the heartbeats
	gap     bool        // messages may have been missed
}

// group is called with mu held.
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

// use is called with queues.mu held.
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
	c.called = false // it may be set from an earlier group
	if g.waiting.Len() == 0 {
		g.next = time.Time{} // the time that an earlier first waiter planned is void
	}
	g.byOwner[w.Owner] = append(g.byOwner[w.Owner], c)
	c.place = g.waiting.PushBack(c)
	g.beginHeartbeats()
}

// leaveGroup removes the waiter from its group, if it has one, and calls the other waiters with the same owner. If the
// first waiter leaves before it retries because messages may have been missed, the next one retries.
func (c *caller) leaveGroup() {
	g := c.group
	if g == nil {
		return
	}
	g.mu.Lock()
	led := g.first() == c
	g.waiting.Remove(c.place)
	if g.wakeFirst(led); led && c.called && g.gap && g.waiting.Len() > 0 {
		g.first().call()
	}
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

// first returns nil if the group is empty. It is called with mu held.
func (g *group) first() *caller {
	if front := g.waiting.Front(); front != nil {
		c, _ := front.Value.(*caller)
		return c
	}
	return nil
}

// wakeFirst is called with mu held.
func (g *group) wakeFirst(led bool) {
	if first := g.first(); led && first != nil {
		acquire.Signal(first.wake)
	}
}

// back moves the waiter to the end of the group, as the server has done in its queue.
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

// call makes the waiter poll Redis. It is called with the group's mu held.
func (c *caller) call() {
	c.called = true
	acquire.Signal(c.wake)
}

// call calls the last waiter of each of the owners.
func (g *group) call(owners ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, owner := range owners {
		if all := g.byOwner[owner]; len(all) > 0 {
			all[len(all)-1].call()
		}
	}
}

// callAll calls all waiters of an owner, which share a place.
func (g *group) callAll(owner string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.byOwner[owner] {
		c.call()
	}
}

// sawGap records that messages may have been missed. It returns true if c leads the group and so must retry. Otherwise
// it calls the first waiter.
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
