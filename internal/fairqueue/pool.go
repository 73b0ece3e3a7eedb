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
	// keepOpen is how long a subscription is kept after its wait, and how long a lock counts as
	// contended after the last wait.
	keepOpen = time.Second
	// sweeping is the interval of looks for expired subscriptions, so that many end together.
	sweeping = keepOpen / 2
)

// Subscription is an owner and the subscription to its channel, kept for a second after an acquisition
// waited in the queue. Once the hold has ended without open questions about the owner, another
// acquisition of the same lock and client may reuse both without SUBSCRIBE and UNSUBSCRIBE.
//
//	       keep                  Put                  get
//	wait ────────▶ with a hold ─────────▶ idle ──────────────▶ the next wait
//	                    │ expired, Close      │ expired, or the client closes
//	                    ▼                     ▼
//	                       the subscription ends
type Subscription struct {
	owner codec.Owner
	text  any // the owner's, a string boxed once
	sub   transport.Subscription
	pool  *pool

	// Guarded by pool.mu.
	of    *pooled // nil: it is no longer kept
	until time.Time
	index int // in of.kept
	idle  bool
}

// Owner returns the owner and its text.
func (s *Subscription) Owner() (codec.Owner, any) { return s.owner, s.text }

// pool has the subscriptions of a client by lock, and knows which locks are contended.
type pool struct {
	engine *engine.Engine

	mu     sync.Mutex // guards the fields below; never held while a subscription closes
	locks  map[lockID]*pooled
	timer  *time.Timer // of the next sweep, or nil
	closed bool
}

// pooled has the subscriptions of one lock.
type pooled struct {
	waiters   int       // in its group
	contended time.Time // it counts as contended until then
	kept      []*Subscription
	idle      []*Subscription // of kept; the newest is reused first
}

func (p *pool) of(id lockID) *pooled {
	l := p.locks[id]
	if l == nil {
		l = &pooled{}
		if p.locks == nil {
			p.locks = map[lockID]*pooled{}
		}
		p.locks[id] = l
	}
	return l
}

// get returns a working subscription of a lock, or nil, and whether the lock is contended: a caller of
// this process waits for it, or did a second ago. The caller must keep or close the subscription.
func (p *pool) get(id lockID) (s *Subscription, contended bool) {
	p.mu.Lock()
	var broken []*Subscription
	if l := p.locks[id]; l != nil {
		contended = l.waiters > 0 || time.Now().Before(l.contended)
		for s == nil && len(l.idle) > 0 {
			s = l.idle[len(l.idle)-1]
			l.take(s)
			if !s.works() {
				broken, s = append(broken, s), nil
			}
		}
	}
	p.mu.Unlock()
	closeAll(broken)
	return s, contended
}

func closeAll(all []*Subscription) {
	for _, s := range all {
		s.sub.Close()
	}
}

// works reports whether the subscription works, and drops an event for an earlier caller: the next one
// makes its attempt after this.
func (s *Subscription) works() bool {
	select {
	case _, works := <-s.sub.Events():
		return works
	default:
		return true
	}
}

// keep keeps a subscription with a hold: for a second if its acquisition had to wait, else for the rest
// of its second.
func (p *pool) keep(id lockID, s *Subscription, waited bool) {
	now := time.Now()
	p.mu.Lock()
	if waited {
		s.until = now.Add(keepOpen)
	}
	kept := !p.closed && now.Before(s.until)
	if kept {
		l := p.of(id)
		s.of, s.idle, s.index = l, false, len(l.kept)
		l.kept = append(l.kept, s)
		p.arm()
	}
	p.mu.Unlock()
	if !kept {
		s.sub.Close()
	}
}

// Put lets another acquisition reuse the subscription, if it is still kept.
func (s *Subscription) Put() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.of != nil && !s.idle {
		s.idle = true
		s.of.idle = append(s.of.idle, s)
	}
}

// Close ends a subscription that is kept with a hold.
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

// take removes a subscription, mu held.
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

// arm schedules a sweep, mu held.
func (p *pool) arm() {
	if p.timer == nil && !p.closed {
		p.timer = time.AfterFunc(sweeping, func() { p.engine.Go(p.sweep) })
	}
}

// sweep ends the expired subscriptions and forgets locks without any. It schedules another sweep if there
// may be more to do; waiters in a group schedule one when they leave.
func (p *pool) sweep() {
	now := time.Now()
	p.mu.Lock()
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
	p.mu.Unlock()
	closeAll(over)
}

// close ends all subscriptions.
func (p *pool) close() {
	p.mu.Lock()
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
	p.mu.Unlock()
	closeAll(all)
}
