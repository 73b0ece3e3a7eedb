package board

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/tool/inspect"
)

const (
	// watchedLocks is the number of locks watched at a time; keptLocks includes those no longer watched.
	watchedLocks, keptLocks = 64, 5 * watchedLocks
	// looksAtOnce is the number of concurrent LookOnce calls.
	looksAtOnce = 4
)

// slot is a lock that is watched, or was.
type slot struct {
	Feed[Lock]

	name   string
	opened time.Time
	from   string // the address of the viewer who opened it
}

// Lock returns the feed of a lock, for a viewer at an address. If too many locks are watched, it evicts
// one, or returns ErrBusy: then LookOnce shows the lock.
func (b *Board) Lock(name, from string) (*Feed[Lock], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.watched[name]
	switch {
	case b.closed:
		return nil, ErrClosed
	case s != nil && s.running:
		return &s.Feed, nil
	case !b.makeRoom(from):
		return nil, ErrBusy
	case s == nil:
		w := b.watcher(name)
		s = &slot{Feed: Feed[Lock]{board: b, run: w.watch}, name: name}
		b.watched[name] = s
	}
	s.opened, s.from = time.Now(), from
	s.start()
	b.forget()
	return &s.Feed, nil
}

// makeRoom reports whether another lock can be watched for a viewer. If too many are, it evicts an idle
// name of a viewer that has at least as many, or a lock of one that has at least two more. b.mu is held.
func (b *Board) makeRoom(from string) bool {
	counts, running := map[string]int{}, []*slot(nil)
	for _, s := range b.watched {
		if s.running {
			counts[s.from]++
			running = append(running, s)
		}
	}
	if len(running) < watchedLocks {
		return true
	}
	isIdle := func(s *slot) bool { return s.value != nil && s.value.Idle() && counts[s.from] >= counts[from] }
	running = slices.DeleteFunc(running, func(s *slot) bool { return !isIdle(s) && counts[s.from] <= counts[from]+1 })
	if len(running) == 0 {
		return false
	}
	victim := slices.MinFunc(running, func(a, b *slot) int {
		return cmp.Or(btoi(isIdle(b))-btoi(isIdle(a)), cmp.Compare(counts[b.from], counts[a.from]), a.opened.Compare(b.opened))
	})
	victim.evict()
	delete(b.watched, victim.name)
	return true
}

// forget drops the least recently requested slot if too many are kept. b.mu is held.
func (b *Board) forget() {
	if len(b.watched) <= keptLocks {
		return
	}
	oldest := ""
	for name, s := range b.watched {
		if !s.running && (oldest == "" || s.asked.Before(b.watched[oldest].asked)) {
			oldest = name
		}
	}
	delete(b.watched, oldest)
}

// LookOnce looks at a lock without watching it, with pauses between such looks. It returns nil if ctx
// ends first.
func (b *Board) LookOnce(ctx context.Context, name string) (*Lock, error) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, ErrClosed
	}
	b.running.Add(1)
	b.mu.Unlock()
	defer b.running.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.ctx, cancel)()
	select {
	case b.once <- struct{}{}:
	case <-ctx.Done():
		return nil, nil //nolint:nilnil // as Feed.Get
	}
	began := time.Now()
	w := b.watcher(name)
	defer w.disconnect()
	l := w.first(ctx)
	time.AfterFunc(inspect.PauseFactor*min(time.Since(began), lookEvery), func() { <-b.once })
	l.expect(0, 0)
	return l, nil
}
