package board

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/tool/inspect"
)

const (
	// fronts is the maximum number of queues whose first waiters are counted after a scan. In a cluster, it is
	// nodeFronts, because each queue requires a call.
	fronts, nodeFronts = 4096, 32
	counted            = 64
	countWait          = 2 * time.Second
)

type place = inspect.Place

type counter func(all []place) ([]int64, error)

func (b *Board) counter(ctx context.Context) counter {
	until := time.Now().Add(countWait)
	return func(all []place) ([]int64, error) {
		ctx, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		return inspect.Subscribers(ctx, b.source.client, b.source.cluster, all)
	}
}

// findDead counts the subscribers of the first waiters in up to most queues. It begins with waiters that may be dead,
// and then checks the others round-robin.
func (l *Locks) findDead(m *memory, most int, count counter) {
	var all, others []*Entry
	for i := range l.Entries {
		e := &l.Entries[i]
		if e.Next == "" || e.Kind == inspect.ReadWrite {
			continue
		}
		if state, absent := m.seen.presence.known(e.Name, e.Next); absent && state != Dead {
			all = append(all, e)
		} else {
			others = append(others, e)
		}
	}
	from := m.turn % max(1, len(others))
	m.turn = from + max(0, most-len(all))
	all = slices.Concat(all, others[from:], others[:from])
	var places []place
	for _, e := range all[:min(len(all), most)] {
		places = append(places, place{Lock: e.Name, Owner: e.Next})
	}
	l.count(m, count, places)
	for _, e := range all {
		if m.isDead(e.Name, e.Next) && severity(DeadFront) > severity(e.Trouble) {
			e.Trouble = DeadFront
		}
	}
	l.sort()
}

func (l *Locks) count(m *memory, count counter, all []place) {
	if len(all) == 0 {
		return
	}
	counts, err := count(all)
	if err != nil {
		l.Uncounted = inspect.NotCounted(err)
	}
	for i, n := range counts {
		if n < 0 {
			continue
		}
		state := m.seen.presence.sees(all[i].Lock, all[i].Owner, n, time.Now())
		l.pending = l.pending || state == Unknown
	}
}

func (m *memory) isDead(lock, owner string) bool {
	state, _ := m.seen.presence.known(lock, owner)
	return state == Dead
}

// absentFor is how long a waiter must be without a subscriber to count as dead. A live waiter reconnects sooner.
const absentFor = time.Second

// States of a waiter.
const (
	Alive   = "alive"
	Dead    = "dead"
	Unknown = "unknown"
)

// presence is safe for concurrent use. The zero value is empty.
type presence struct {
	mu     sync.Mutex
	absent map[place]absence
}

type absence struct{ first, last time.Time }

func (a *absence) state() string {
	if a.last.Sub(a.first) >= absentFor {
		return Dead
	}
	return Unknown
}

// sees returns the state of the waiter. Without subscribers, it is Unknown until another count confirms it.
func (p *presence) sees(lock, owner string, subscribers int64, at time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := place{Lock: lock, Owner: owner}
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

// known returns Dead or Unknown, and whether the last count was 0.
func (p *presence) known(lock, owner string) (state string, absent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, absent := p.absent[place{Lock: lock, Owner: owner}]
	return a.state(), absent
}

func (p *presence) forget(before time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, a := range p.absent {
		if a.last.Before(before) {
			delete(p.absent, key)
		}
	}
}
