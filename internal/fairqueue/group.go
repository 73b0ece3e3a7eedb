package fairqueue

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/engine"
)

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
		signal(g.first.wake)
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
		signal(g.hurry)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
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
	signal(p.wake)
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
