package fairqueue

import (
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

const (
	// keepOpen is how long a subscription outlives the wait that it was made for, and
	// how long a lock counts as contended after the last wait.
	keepOpen = time.Second
	// sweeping is the time between two looks for subscriptions that are to end, so
	// that many end together.
	sweeping = keepOpen / 2
)

// Subscription is an owner and the subscription to its channel, of an acquisition that had to
// wait for its turn in a queue on the server. It outlives the wait for a second: if nothing
// about the owner is left open by then, another acquisition of the same lock and client may
// have both, and needs neither to subscribe nor to unsubscribe.
//
//	       keep                  Put                  get
//	wait ────────▶ with a hold ─────────▶ idle ──────────────▶ the next one's wait
//	                    │ its second is over, Close │ or the client closes
//	                    ▼                           ▼
//	                       the subscription ends
type Subscription struct {
	owner codec.Owner
	text  any // the owner's, a string boxed once
	sub   transport.Subscription
	pool  *pool

	// Guarded by pool.mu.
	of    *pooled   // nil: it is kept no longer
	until time.Time // when its second is over
	index int       // in of.kept
	idle  bool      // it may be had
}

// Owner is part of acquire.Reusable.
func (s *Subscription) Owner() (codec.Owner, any) { return s.owner, s.text }

// pool has the subscriptions of a client, by lock, and knows which locks are contended.
type pool struct {
	engine *engine.Engine

	mu     sync.Mutex // guards what follows; held for a few instructions only
	locks  map[lockID]*pooled
	timer  *time.Timer // of the sweep; nil: none is due
	closed bool
}

// pooled is what there is of one lock. It is kept while there is anything.
type pooled struct {
	id        lockID
	waiters   int       // in its group
	contended time.Time // it counts as such until then
	kept      []*Subscription
	idle      []*Subscription // of those; the one that became so last is the next to be had
}

func (p *pool) of(id lockID) *pooled {
	l := p.locks[id]
	if l == nil {
		l = &pooled{id: id}
		if p.locks == nil {
			p.locks = map[lockID]*pooled{}
		}
		p.locks[id] = l
	}
	return l
}

// get returns a subscription for a lock, nil when there is none that works, and whether the
// lock is contended: a caller of this process waits for it, or did a second ago. The caller
// that gets one keeps it again, or closes its subscription.
func (p *pool) get(id lockID) (s *Subscription, contended bool) {
	s, broken, contended := p.find(id)
	for _, b := range broken {
		b.sub.Close()
	}
	return s, contended
}

// find is get. It returns those that do not work, too, which the caller closes.
func (p *pool) find(id lockID) (s *Subscription, broken []*Subscription, contended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.locks[id]
	if l == nil {
		return nil, nil, false
	}
	contended = l.waiters > 0 || time.Now().Before(l.contended)
	for len(l.idle) > 0 {
		s := l.idle[len(l.idle)-1]
		l.take(s)
		if s.works() {
			return s, broken, contended
		}
		broken = append(broken, s)
	}
	return nil, broken, contended
}

// works reports whether the subscription does, and drops the event that it holds: the caller
// that was meant is gone, and the next one asks after this.
func (s *Subscription) works() bool {
	select {
	case _, works := <-s.sub.Events():
		return works
	default:
		return true
	}
}

// keep keeps a subscription for a hold, for a second from now if its acquisition had to wait,
// else for what is left of its second.
func (p *pool) keep(id lockID, s *Subscription, waited bool) {
	if !p.add(id, s, waited) {
		s.sub.Close()
	}
}

func (p *pool) add(id lockID, s *Subscription, waited bool) bool {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if waited {
		s.until = now.Add(keepOpen)
	}
	if p.closed || !now.Before(s.until) {
		return false
	}
	l := p.of(id)
	s.of, s.idle, s.index = l, false, len(l.kept)
	l.kept = append(l.kept, s)
	p.arm()
	return true
}

// Put is part of acquire.Reusable: another acquisition may have the subscription, if it is
// still kept.
func (s *Subscription) Put() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.of != nil && !s.idle {
		s.idle = true
		s.of.idle = append(s.of.idle, s)
	}
}

// Close is part of acquire.Reusable: it ends a subscription that is kept for a hold.
func (s *Subscription) Close() {
	s.pool.mu.Lock()
	kept := s.of != nil && !s.idle
	if kept {
		s.of.take(s)
	}
	s.pool.mu.Unlock()
	if kept {
		s.sub.Close()
	}
}

// take takes a subscription out, mu held.
func (l *pooled) take(s *Subscription) {
	if s.idle {
		if last := len(l.idle) - 1; l.idle[last] == s {
			l.idle[last] = nil
			l.idle = l.idle[:last]
		} else {
			l.idle = slices.DeleteFunc(l.idle, func(other *Subscription) bool { return other == s })
		}
	}
	last := len(l.kept) - 1
	moved := l.kept[last]
	l.kept[s.index], moved.index = moved, s.index
	l.kept[last] = nil
	l.kept = l.kept[:last]
	s.of, s.idle = nil, false
}

// waiting counts the waiters in a lock's group.
func (p *pool) waiting(id lockID, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.of(id)
	l.waiters += n
	l.contended = time.Now().Add(keepOpen)
	p.arm()
}

// arm sees to it that there is a sweep soon, mu held.
func (p *pool) arm() {
	if p.timer == nil && !p.closed {
		p.timer = time.AfterFunc(sweeping, func() { p.engine.Go(p.sweep) })
	}
}

// sweep ends the subscriptions whose second is over, and forgets the locks of which nothing is
// left.
func (p *pool) sweep() {
	for _, s := range p.due() {
		s.sub.Close()
	}
}

// due returns those that are to end. While there may be more to do there is another
// sweep: waiters in a group say when they leave.
func (p *pool) due() []*Subscription {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	var over []*Subscription
	for id, l := range p.locks {
		for i := len(l.kept) - 1; i >= 0; i-- {
			if s := l.kept[i]; !now.Before(s.until) {
				l.take(s)
				over = append(over, s)
			}
		}
		switch {
		case len(l.kept) == 0 && l.waiters > 0:
		case len(l.kept) == 0 && !now.Before(l.contended):
			delete(p.locks, id)
		default:
			p.arm()
		}
	}
	return over
}

// close ends all subscriptions.
func (p *pool) close() {
	for _, s := range p.all() {
		s.sub.Close()
	}
}

func (p *pool) all() []*Subscription {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	var all []*Subscription
	for _, l := range p.locks {
		for len(l.kept) > 0 {
			s := l.kept[len(l.kept)-1]
			l.take(s)
			all = append(all, s)
		}
	}
	return all
}
