package board

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
)

// waits notes the circles of waits that the lock is in, and for what its holders wait. Scans find
// these: they are made as long as the lock is held and clients are queued for it.
func (w *watcher) waits(b *Board) {
	l := &w.last
	l.Circles, l.Ahead = nil, nil
	if !l.Held() || len(l.Queue) == 0 || l.Kind == listing.ReadWrite {
		if w.locks != nil {
			w.locks.Close()
			w.locks = nil
		}
		return
	}
	if w.locks == nil {
		view, err := b.Locks()
		if err != nil {
			return // it is closed
		}
		w.locks = view
	}
	if all, _ := w.locks.feed.newest(false); all != nil && !all.Old(time.Now()) {
		l.Circles = all.around(l)
		l.Ahead = all.ahead(l)
	}
}

// around returns the circles that a lock is in still.
func (all *Locks) around(l *Lock) (circles []Circle) {
	for _, c := range all.Circles {
		if slices.ContainsFunc(c.Steps, l.has) {
			circles = append(circles, c)
		}
	}
	return circles
}

// has reports whether a wait is one for the lock still.
func (l *Lock) has(s Step) bool {
	if s.Lock != l.Name {
		return false
	}
	waits := slices.ContainsFunc(l.Queue, func(q Waiter) bool { return q.Owner == s.Waiter && q.State != Dead })
	return waits && slices.ContainsFunc(l.Holders, func(h inspect.Holder) bool { return h.Owner == s.Holder })
}

// ahead returns the waits of the holders for other locks.
func (all *Locks) ahead(l *Lock) (steps []Step) {
	if len(l.Circles) > 0 {
		return nil
	}
	for i := range l.Holders {
		h := &l.Holders[i]
		client := all.Client(ClientID(h.Owner))
		if client == nil {
			continue
		}
		for _, wait := range client.Waits {
			if bareOwner(wait.Owner) != bareOwner(h.Owner) || len(wait.Holders) == 0 || wait.Name == l.Name {
				continue
			}
			by := wait.Holders[0]
			steps = append(steps, Step{wait.Name, wait.Owner, by.Owner, client.Label, by.Label})
		}
	}
	return steps
}
