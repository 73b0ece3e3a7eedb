package board

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/rfairlock"
)

const (
	// fronts is of how many queues the first waiters are looked for after a scan, and nodeFronts
	// of how many in a cluster, where each lock is asked about by itself.
	fronts, nodeFronts = 4096, 32
	// counted is of how many waiters in circles the subscribers are counted after a scan.
	counted = 64
	// atOnce is of how many waiters the subscribers are counted at once.
	atOnce = 512
	// countWait bounds the counting of subscribers after a scan.
	countWait = 2 * time.Second
)

// counter counts how many subscribers waiters have: of all, or when the time is over of the first
// of them. It is -1 for one that cannot be counted. An error says that it is not known.
type counter func(all []place) ([]int64, error)

// counter returns what counts for the time that a scan has for it.
func (b *Board) counter(ctx context.Context) counter {
	until := time.Now().Add(countWait)
	return func(all []place) (counts []int64, err error) {
		ctx, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		some, size := b.source.subscribers, atOnce
		if b.source.cluster {
			some, size = b.source.subscribersOfOne, 1
		}
		for batch := range slices.Chunk(all, size) {
			if time.Now().After(until) {
				break
			}
			more, err := some(ctx, batch)
			if err != nil {
				return counts, err
			}
			counts = append(counts, more...)
		}
		return counts, nil
	}
}

// subscribers counts the subscribers of waiters on one server and its replicas.
func (s *Source) subscribers(ctx context.Context, all []place) ([]int64, error) {
	e := engine.EngineOf(s.client)
	if err := e.Enter(); err != nil {
		return nil, err
	}
	defer e.Leave()
	channels := make([]string, len(all))
	for i, at := range all {
		channels[i] = codec.OwnerChannel(at.lock, at.owner)
	}
	return e.ProvenListeners(ctx, codec.OwnerChannel(all[0].lock, e.NextOwner().String()), channels...)
}

// subscribersOfOne counts the subscribers of one waiter, on the nodes of a cluster that its lock is
// on.
func (s *Source) subscribersOfOne(ctx context.Context, one []place) ([]int64, error) {
	counts, err := admin.Listeners(ctx, rfairlock.New(s.client, one[0].lock), one[0].owner)
	if errors.Is(err, redlatch.ErrInvalid) { // no lock of that name works there
		return []int64{-1}, nil
	}
	return counts, err
}

// findDead looks whether the first waiters of queues have subscribers. Of more than most queues it
// counts those first that had none and may be dead, and then others in turn.
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
	all = slices.Concat(all, others[from:], others[:from])
	m.turn = from + max(0, most-(len(all)-len(others)))
	places := make([]place, min(len(all), most))
	for i := range places {
		places[i] = place{all[i].Name, all[i].Next}
	}
	l.count(m, count, places)
	for _, e := range all {
		if m.isDead(e.Name, e.Next) && severity(DeadFront) > severity(e.Trouble) {
			e.Trouble = DeadFront
		}
	}
	l.sort()
}

// count counts the subscribers of waiters, and remembers what that shows.
func (l *Locks) count(m *memory, count counter, all []place) {
	if len(all) == 0 {
		return
	}
	counts, err := count(all)
	if err != nil {
		l.Uncounted = inspect.NotCounted(err) // they are unknown, and not called dead
	}
	for i, n := range counts {
		if n < 0 {
			continue
		}
		_, before := m.seen.presence.known(all[i].lock, all[i].owner)
		state := m.seen.presence.sees(all[i].lock, all[i].owner, n, time.Now())
		l.pending = l.pending || !before && state == Unknown
	}
}

func (m *memory) isDead(lock, owner string) bool {
	state, _ := m.seen.presence.known(lock, owner)
	return state == Dead
}

// absentFor is how long a waiter must be without a subscriber to count as dead: a live one
// may be so for a moment.
const absentFor = time.Second

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

type place struct{ lock, owner string }

// absence is when a waiter was first and last counted without a subscriber.
type absence struct{ first, last time.Time }

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
