package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

const (
	// linger is how long a subscription outlives the wait that it was made for, and
	// how long a lock counts as contended after the last wait.
	linger = time.Second
	// sweeping is the time between two looks for subscriptions that are to end, so
	// that many end together.
	sweeping = linger / 2
)

// Spare is an owner and the subscription to its channel, of an acquisition that had
// to wait for its turn in a queue on the server. It outlives the wait for a second:
// if nothing about the owner is left open by then, another acquisition of the same
// lock and client may have both, and needs neither to subscribe nor to unsubscribe.
//
//	       Linger                Offer               Spare
//	wait ──────────▶ with a hold ─────────▶ idle ──────────────▶ the next one's wait
//	                      │ its second is over, End │ or the client closes
//	                      ▼                         ▼
//	                         the subscription ends
type Spare struct {
	// Owner is whose channel it is, and Text its text, a string boxed once.
	Owner codec.Owner
	Text  any
	// Sub is the subscription. Whoever gets the spare from [Engine.Spare] has it.
	Sub transport.Subscription

	// Guarded by spares.mu.
	lot   *lot      // nil: it is kept no longer
	until time.Time // when its second is over
	index int       // in lot.kept
	idle  bool      // it may be had
}

// spares are the spares of a client, by lock, and which locks are contended.
type spares struct {
	mu     sync.Mutex // guards what follows; held for a few instructions only
	lots   map[lockID]*lot
	timer  *time.Timer // of the sweep; nil: none is due
	closed bool
}

// lot is what there is of one lock. It is kept while there is anything.
type lot struct {
	id        lockID
	seats     int       // taken in its room
	contended time.Time // it counts as such until then
	kept      []*Spare
	idle      []*Spare // of those; the one that became so last is the next to be had
}

func (ss *spares) lot(id lockID) *lot {
	l := ss.lots[id]
	if l == nil {
		l = &lot{id: id}
		if ss.lots == nil {
			ss.lots = map[lockID]*lot{}
		}
		ss.lots[id] = l
	}
	return l
}

// Spare returns a spare for a lock, nil when there is none that works, and whether
// the lock is contended: somebody of this process waits for it, or did a second ago.
// Whoever gets one lets it [Engine.Linger] again, or closes its subscription.
func (e *Engine) Spare(kind, key string) (s *Spare, contended bool) {
	ss := &e.spares
	ss.mu.Lock()
	defer ss.mu.Unlock()
	l := ss.lots[lockID{kind, key}]
	if l == nil {
		return nil, false
	}
	contended = l.seats > 0 || time.Now().Before(l.contended)
	for len(l.idle) > 0 {
		s := l.idle[len(l.idle)-1]
		l.take(s)
		if s.works() {
			return s, contended
		}
	}
	return nil, contended
}

// works reports whether the subscription does, and drops the event that it holds:
// whoever was meant is gone, and whoever comes next asks after this.
func (s *Spare) works() bool {
	select {
	case _, works := <-s.Sub.Events():
		return works
	default:
		return true
	}
}

// Linger keeps a spare for a hold, for a second from now if its acquisition had to
// wait, else for what is left of its second.
func (e *Engine) Linger(kind, key string, s *Spare, waited bool) {
	if !e.spares.linger(e, lockID{kind, key}, s, waited) {
		s.Sub.Close()
	}
}

func (ss *spares) linger(e *Engine, id lockID, s *Spare, waited bool) bool {
	now := time.Now()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if waited {
		s.until = now.Add(linger)
	}
	if ss.closed || !now.Before(s.until) {
		return false
	}
	l := ss.lot(id)
	s.lot, s.idle, s.index = l, false, len(l.kept)
	l.kept = append(l.kept, s)
	ss.arm(e)
	return true
}

// Offer makes a spare idle, if it is still kept.
func (e *Engine) Offer(s *Spare) {
	ss := &e.spares
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s.lot != nil && !s.idle {
		s.idle = true
		s.lot.idle = append(s.lot.idle, s)
	}
}

// End ends a spare that is kept for a hold: nobody is to have it.
func (e *Engine) End(s *Spare) {
	ss := &e.spares
	ss.mu.Lock()
	kept := s.lot != nil && !s.idle
	if kept {
		s.lot.take(s)
	}
	ss.mu.Unlock()
	if kept {
		s.Sub.Close()
	}
}

// take takes a spare out of its lot, mu held.
func (l *lot) take(s *Spare) {
	if s.idle {
		if last := len(l.idle) - 1; l.idle[last] == s {
			l.idle[last] = nil
			l.idle = l.idle[:last]
		} else {
			l.idle = slices.DeleteFunc(l.idle, func(other *Spare) bool { return other == s })
		}
	}
	last := len(l.kept) - 1
	moved := l.kept[last]
	l.kept[s.index], moved.index = moved, s.index
	l.kept[last] = nil
	l.kept = l.kept[:last]
	s.lot, s.idle = nil, false
}

// sat counts those who have a seat in a lock's room.
func (ss *spares) sat(e *Engine, id lockID, n int) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	l := ss.lot(id)
	l.seats += n
	l.contended = time.Now().Add(linger)
	ss.arm(e)
}

// arm sees to it that there is a sweep soon, mu held.
func (ss *spares) arm(e *Engine) {
	if ss.timer == nil && !ss.closed {
		ss.timer = time.AfterFunc(sweeping, func() { e.Go(e.sweep) })
	}
}

// sweep ends the spares whose second is over, and forgets the locks of which nothing
// is left.
func (e *Engine) sweep() {
	for _, s := range e.spares.due(e) {
		s.Sub.Close()
	}
}

// due returns those that are to end. While there may be more to do there is another
// sweep: those who sit in a room say when they leave.
func (ss *spares) due(e *Engine) []*Spare {
	now := time.Now()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.timer = nil
	var over []*Spare
	for id, l := range ss.lots {
		for i := len(l.kept) - 1; i >= 0; i-- {
			if s := l.kept[i]; !now.Before(s.until) {
				l.take(s)
				over = append(over, s)
			}
		}
		switch {
		case len(l.kept) == 0 && l.seats > 0:
		case len(l.kept) == 0 && !now.Before(l.contended):
			delete(ss.lots, id)
		default:
			ss.arm(e)
		}
	}
	return over
}

// close ends all spares.
func (ss *spares) close() {
	for _, s := range ss.all() {
		s.Sub.Close()
	}
}

func (ss *spares) all() []*Spare {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.closed = true
	if ss.timer != nil {
		ss.timer.Stop()
	}
	var all []*Spare
	for _, l := range ss.lots {
		for len(l.kept) > 0 {
			s := l.kept[len(l.kept)-1]
			l.take(s)
			all = append(all, s)
		}
	}
	return all
}
