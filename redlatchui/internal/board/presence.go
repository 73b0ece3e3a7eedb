package board

import (
	"sync"
	"time"
)

const (
	// absentFor is how long a waiter must be without a subscriber to count as dead: a live one
	// may be so for a moment.
	absentFor = time.Second
	// remembers is for how long after the last viewer a board keeps what it has seen.
	remembers = 5 * time.Minute
)

// What is known of a waiter.
const (
	Alive   = "alive"
	Dead    = "dead"
	Unknown = "unknown"
)

// presence is which waiters have no subscriber, as scans and looks at one lock have counted. It is
// safe for concurrent use; the zero presence knows nothing.
type presence struct {
	mu     sync.Mutex
	absent map[place]absence
}

// place is that of an owner in the queue of a lock.
type place struct{ lock, owner string }

// absence is when a waiter was first and last counted without a subscriber.
type absence struct{ first, last time.Time }

// state is Dead for an absence that has lasted.
func (a *absence) state() string {
	if a.last.Sub(a.first) >= absentFor {
		return Dead
	}
	return Unknown
}

// sees takes a count in, and returns what it makes of the waiter: Alive, Dead, or Unknown where
// the next count will tell.
func (p *presence) sees(lock, owner string, subscribers int64, at time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := place{lock, owner}
	if subscribers > 0 {
		delete(p.absent, key)
		return Alive
	}
	a, known := p.absent[key]
	if !known || at.Sub(a.last) > remembers {
		a.first = at
	}
	if at.After(a.last) {
		a.last = at
	}
	if p.absent == nil {
		p.absent = map[place]absence{}
	}
	p.absent[key] = a
	return a.state()
}

// known returns what the counts so far make of a waiter: Dead, or Unknown with whether it had no
// subscriber when it was last counted.
func (p *presence) known(lock, owner string) (state string, absent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, absent := p.absent[place{lock, owner}]
	return a.state(), absent
}

// forget drops what was not counted again since then.
func (p *presence) forget(before time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, a := range p.absent {
		if a.last.Before(before) {
			delete(p.absent, key)
		}
	}
}
