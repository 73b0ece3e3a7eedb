package board

import (
	"time"

	"github.com/redlatch/redlatch/internal/tool/follow"
)

// rememberedLocks is of how many locks the board keeps, at most, what it has seen after the last
// viewer.
const rememberedLocks = 4 * watchedLocks

// recent returns how a lock was seen some minutes ago, nil if it was not. The board is locked.
func (b *Board) recent(name string) *Lock {
	w := b.idle[name]
	if w == nil || time.Since(w.last.At) > remembers {
		return nil
	}
	last := w.last
	return &last
}

// take returns what looks at a lock, with what was seen of it some minutes ago.
func (b *Board) take(name string) *watcher {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.idle[name]
	delete(b.idle, name)
	if w == nil || time.Since(w.last.At) > remembers {
		w = &watcher{source: b.Source, name: name, seen: &b.seen, last: Lock{Name: name}}
	}
	w.lock, w.first = follow.Lock{Name: name}, true // what happened meanwhile was not seen
	return w
}

// keep keeps what was seen of a lock for the next viewers.
func (b *Board) keep(w *watcher) {
	w.hangUp()
	if w.last.Idle() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.idle[w.name] = w
	if len(b.idle) <= rememberedLocks {
		return
	}
	oldest := w
	for _, other := range b.idle {
		if other.last.At.Before(oldest.last.At) {
			oldest = other
		}
	}
	delete(b.idle, oldest.name)
}
