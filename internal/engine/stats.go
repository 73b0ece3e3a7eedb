package engine

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Stats is redlatch.Stats, which documents it.
type Stats struct {
	// As there.
	Held          int
	OldestHold    time.Duration
	Waiting       int
	InFlight      int
	Subscriptions int
	InDoubt       int
}

// gauges are counted for Stats alone.
type gauges struct {
	subscriptions atomic.Int64
	inDoubt       atomic.Int64
}

// Stats returns the current counts, in constant time.
func (e *Engine) Stats() Stats {
	s := Stats{
		Held:          e.Watchdog.Len(),
		Waiting:       int(e.Waiting()),
		InFlight:      e.timeouts.count(),
		Subscriptions: int(e.gauges.subscriptions.Load()),
		InDoubt:       int(e.gauges.inDoubt.Load()),
	}
	if began := e.Watchdog.Oldest(); !began.IsZero() {
		s.OldestHold = time.Since(began)
	}
	return s
}

// named is a lease's holder that names the lock and its kind.
type named interface{ LockOf() (name, kind string) }

// Held is a current hold.
type Held struct {
	// Name and Kind of the lock.
	Name, Kind string
	Since      time.Time // when its acquisition was sent
}

// Holds returns all current holds, roughly the oldest first.
func (e *Engine) Holds() []Held {
	var all []Held
	for _, l := range e.Watchdog.All() {
		if n, can := l.Holder.(named); can {
			name, kind := n.LockOf()
			all = append(all, Held{name, kind, l.Began()})
		}
	}
	return all
}

var errTooMany = errors.New("as many callers wait as WithMaxWaiters allows")

// Waiters are the waiting callers.
type Waiters struct {
	most int64 // 0: no limit

	mu      sync.Mutex // guards waiting
	waiting map[*Waiting]struct{}
}

// Waiting is a waiting caller.
type Waiting struct {
	// Name and Kind of the lock.
	Name, Kind string
}

// BeginWait adds a waiting caller, or returns an error if there are too many. If it returns
// nil, the caller must call EndWait, and not change w before.
func (ws *Waiters) BeginWait(w *Waiting) error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.most > 0 && int64(len(ws.waiting)) >= ws.most {
		return errTooMany
	}
	if ws.waiting == nil {
		ws.waiting = map[*Waiting]struct{}{}
	}
	ws.waiting[w] = struct{}{}
	return nil
}

// EndWait removes a waiting caller.
func (ws *Waiters) EndWait(w *Waiting) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.waiting, w)
}

// WaitingNow returns the waiting callers, in no particular order.
func (ws *Waiters) WaitingNow() []Waiting {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	all := make([]Waiting, 0, len(ws.waiting))
	for w := range ws.waiting {
		all = append(all, *w)
	}
	return all
}

// Waiting returns the number of waiting callers.
func (ws *Waiters) Waiting() int64 {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return int64(len(ws.waiting))
}
