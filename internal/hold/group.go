package hold

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/limits"
)

// Group treats several holds as one: when any of them is lost or reaches its maximum, all of them end, but their locks
// stay held until Unlock is called or their leases expire. A hold joins at most one group. All methods are safe for
// concurrent use.
type Group struct {
	life
	once sync.Once
	errs []error // results of Unlock

	// Guarded by life.mu.
	holds []*Hold
	added [][]*Hold // the same, one slice for each Add
}

// Add adds holds. If any of them has already ended, the group ends. Holds that are added together may be freed by a
// single call. They must not have a turn, because that call does not pass it on.
func (g *Group) Add(holds ...*Hold) {
	g.mu.Lock()
	g.added = append(g.added, holds)
	g.holds = append(g.holds, holds...)
	g.mu.Unlock()
	for _, h := range holds {
		h.group.Store(g)
		if end := h.ended.Load(); end != nil {
			g.memberEnded(h, end)
		}
	}
	if end := g.ended.Load(); end != nil {
		g.endOthers(end)
	}
}

// Holds returns the members in the order in which they were added.
func (g *Group) Holds() []*Hold {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.holds
}

func (g *Group) memberEnded(h *Hold, why *ending) {
	if g.ended.Load() != nil {
		return
	}
	switch {
	case why == endClosed:
		g.end(why)
		return
	case errors.Is(why.cause, engine.ErrLost):
		why = &ending{fmt.Errorf("%s: %w", limits.Quote(h.ownership.lock.Name), why.cause), true}
	}
	if g.end(why) {
		g.endOthers(why)
	}
}

// endOthers ends the live members but keeps their locks.
func (g *Group) endOthers(why *ending) {
	if !why.kept {
		return
	}
	for _, h := range g.Holds() {
		if h.ended.Load() == nil {
			h.endKept(why)
		}
	}
}

// Err returns nil while all members are held. Otherwise it returns the reason; after a loss, the error names the lock.
func (g *Group) Err() error {
	if g.ended.Load() == nil {
		now := time.Now()
		for _, h := range g.Holds() {
			if h.errAt(now) != nil {
				g.memberEnded(h, h.ended.Load()) // the goroutine that ended it may not have reported that yet
				break
			}
		}
	}
	if end := g.ended.Load(); end != nil {
		return end.cause
	}
	return nil
}

// Remaining returns the shortest [Hold.Remaining] of the members.
func (g *Group) Remaining() time.Duration {
	if g.Err() != nil {
		return 0
	}
	var least time.Duration
	for i, h := range g.Holds() {
		if d := h.Remaining(); i == 0 || d < least {
			least = d
		}
	}
	return least
}

// Context returns a context that proves each hold and that is canceled when parent or the group ends.
func (g *Group) Context(parent context.Context) context.Context { return g.derive(parent, g) }

func (g *Group) prove(key proofKey) *Hold {
	for _, h := range g.Holds() {
		if proved := h.prove(key); proved != nil {
			return proved
		}
	}
	return nil
}

func (g *Group) owners(all []string) []string {
	for _, h := range g.Holds() {
		all = h.owners(all)
	}
	return all
}

func (g *Group) final() (first time.Time, ends bool) {
	for _, h := range g.Holds() {
		if end, is := h.final(); is && (!ends || end.Before(first)) {
			first, ends = end, true
		}
	}
	return first, ends
}

// Unlock releases all members concurrently and returns their errors in the order in which the members were added. It
// calls free for holds that were added together and are the last of their owners. For each of them, free returns nil,
// ErrLost, or the reason why the outcome is unknown; in that case, it continues in the background.
func (g *Group) Unlock(free func(holds []*Hold, bound time.Duration) []error) []error {
	g.once.Do(func() {
		if g.Err() == nil {
			g.end(endGiven)
		}
		var all sync.WaitGroup
		for _, holds := range g.added {
			all.Go(func() {
				if len(holds) == 1 {
					_ = holds[0].Unlock()
				} else {
					unlockTogether(holds, free)
				}
			})
		}
		all.Wait()
		for _, h := range g.Holds() {
			g.errs = append(g.errs, h.Unlock())
		}
	})
	return g.errs
}

func unlockTogether(holds []*Hold, free func(holds []*Hold, bound time.Duration) []error) {
	e := holds[0].ownership.lock.Engine
	e.Join()
	defer e.Leave()
	var others sync.WaitGroup
	defer others.Wait()
	var last []*Hold
	var lefts []leaving
	var bound time.Duration
	defer func() {
		for _, h := range last { // if the observer has ended the goroutine
			h.ownership.discard()
		}
	}()
	now := time.Now()
	for _, h := range holds {
		h.giveUp.Do(func() {
			l, over := h.beginUnlock(now)
			switch o := h.ownership; {
			case over:
				h.result = l.ended
				h.observeRelease(now)
			case l.left == 0 && o.isFreed():
				last, lefts, bound = append(last, h), append(lefts, l), max(bound, l.bound)
			default:
				others.Go(func() {
					h.result = h.endUnlock(l, h.lower(l.left, l.bound))
					h.observeRelease(now)
				})
			}
		})
	}
	if len(last) == 0 {
		return
	}
	all := last
	last = nil
	for i, err := range free(all, bound) {
		all[i].result = all[i].endUnlock(lefts[i], err)
	}
	for _, h := range all {
		h.observeRelease(now)
	}
}
