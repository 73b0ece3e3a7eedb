package board

import (
	"cmp"
	"context"
	"math"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/tool/listing"
)

// looksAtOnce is how many locks that are not watched are looked at once, at most.
const looksAtOnce = 4

// slot is a lock that is watched.
type slot struct {
	feed   *feed[Lock]
	opened time.Time
	from   map[string]int // its viewers, by where they come from
}

// Lock begins to look at one lock, for a viewer that comes from somewhere. The view must be closed.
// When as many locks are watched as can be, one makes room: that has no viewer, or else of which
// there is no lock, or else of viewers that come from where more come from. Its views get no more
// values. The error is ErrBusy when none does: LookOnce shows the lock then.
func (b *Board) Lock(name, from string) (*View[Lock], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.watched[name]
	if s == nil {
		if len(b.watched) >= watchedLocks && !b.makeRoom(from) {
			return nil, ErrBusy
		}
		f := &feed[Lock]{before: b.recent(name), run: func(ctx context.Context, publish func(*Lock) bool) { b.watch(ctx, name, publish) }}
		s = &slot{feed: f, opened: time.Now(), from: map[string]int{}}
	}
	view, err := open(b, s.feed, func() { b.forget(name, s) })
	if err != nil {
		return nil, err
	}
	b.watched[name] = s
	s.from[from]++
	view.end = sync.OnceFunc(func() {
		s.feed.close()
		b.mu.Lock()
		defer b.mu.Unlock()
		if s.from[from]--; s.from[from] == 0 {
			delete(s.from, from)
		}
	})
	return view, nil
}

// makeRoom ends the watch of the lock that is needed least, if there is one, for a viewer that
// comes from somewhere. The board is locked.
func (b *Board) makeRoom(from string) bool {
	counts := map[string]int{}
	for _, s := range b.watched {
		for viewer := range s.from {
			counts[viewer]++
		}
	}
	victim, least := "", need{class: needed}
	for name, s := range b.watched {
		if n := s.need(counts, counts[from]); n.class < needed && n.compare(&least) < 0 {
			victim, least = name, n
		}
	}
	if victim == "" {
		return false
	}
	b.watched[victim].feed.evict()
	delete(b.watched, victim)
	return true
}

// need is how much a lock needs to be watched.
type need struct {
	class  int
	others int // that are watched for the same viewers
	opened time.Time
}

// The classes of need, the least first.
const (
	unseen = iota // without a viewer
	empty         // without a lock
	unfair        // for a viewer that has more than another
	needed
)

// need returns how much the lock needs to be watched, as against one for a viewer with so many.
func (s *slot) need(counts map[string]int, has int) need {
	others := math.MaxInt
	for viewer := range s.from {
		others = min(others, counts[viewer])
	}
	n := need{class: needed, others: others, opened: s.opened}
	l, _ := s.feed.newest(false)
	switch {
	case len(s.from) == 0:
		n.class = unseen
	case l != nil && l.Idle() && others >= has:
		n.class = empty
	case others > has+1:
		n.class = unfair
	}
	return n
}

// compare is negative when n is less.
func (n *need) compare(other *need) int {
	return cmp.Or(cmp.Compare(n.class, other.class), cmp.Compare(other.others, n.others), n.opened.Compare(other.opened))
}

// forget drops the feed of a lock that has stopped, unless it was started again.
func (b *Board) forget(name string, s *slot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	if !s.feed.running && b.watched[name] == s {
		delete(b.watched, name)
	}
}

// LookOnce looks at a lock that is not watched, since Lock has returned ErrBusy, and returns nil
// when ctx ends first. There are pauses between such looks as between others.
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
		return nil, nil //nolint:nilnil // as View.Get
	}
	began := time.Now()
	w := b.take(name)
	w.look(ctx)
	w.settle(ctx, b)
	w.waits(b)
	b.keep(w)
	took := time.Since(began)
	time.AfterFunc(listing.PauseFactor*min(took, lookEvery), func() { <-b.once })
	l := w.last
	l.Next = time.Now().Add(overdue)
	return &l, nil
}
