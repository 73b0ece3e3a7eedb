package engine

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Stats is redlatch.Stats.
type Stats struct {
	// As there.
	Held          int
	OldestHold    time.Duration
	Waiting       int
	InFlight      int
	Subscriptions int
	InDoubt       int
}

// gauges are what is counted for Stats alone.
type gauges struct {
	subscriptions atomic.Int64
	inDoubt       atomic.Int64
}

// Stats returns the counts of this moment. It takes the same short time however many holds
// and callers there are.
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

// named is implemented by what holds a lease: it names the lock and its kind.
type named interface{ LockOf() (name, kind string) }

// Held is a hold of this moment.
type Held struct {
	// Of which lock and kind.
	Name, Kind string
	Since      time.Time // when its acquisition was sent
}

// Holds returns all holds of this moment, the oldest first, up to the time between sending and
// reply.
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

// Waiters has the callers that wait.
type Waiters struct {
	most int64 // 0: as many as may come

	mu      sync.Mutex // guards waiting
	waiting map[*Waiting]struct{}
}

// Waiting is a caller that waits.
type Waiting struct {
	// For which lock and kind.
	Name, Kind string
}

// BeginWait counts a caller in that is about to wait. It returns an error when as many wait
// as are allowed. Each that returned nil needs an EndWait; until then w must not be changed.
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

// EndWait counts a caller out.
func (ws *Waiters) EndWait(w *Waiting) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.waiting, w)
}

// WaitingNow returns the callers that wait, in no order.
func (ws *Waiters) WaitingNow() []Waiting {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	all := make([]Waiting, 0, len(ws.waiting))
	for w := range ws.waiting {
		all = append(all, *w)
	}
	return all
}

// Waiting returns how many callers wait.
func (ws *Waiters) Waiting() int64 {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return int64(len(ws.waiting))
}
