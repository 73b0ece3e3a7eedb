package board

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// takenWithin is how recently a lock must have been seen without a hold, when the hold is first
// seen, for the beginning of the hold to count as known.
const takenWithin = 3 * time.Second

// Age is how long an owner has held a lock.
type Age struct {
	// Since is when the hold began, within seconds if Exact is set. Otherwise it may have begun
	// earlier.
	Since time.Time
	Exact bool
}

// ages is safe for concurrent use. The zero value is empty.
type ages struct {
	mu      sync.Mutex
	locks   map[string]*sighting
	scanned time.Time // the beginning of the last scan that found all locks
}

type sighting struct {
	at    time.Time
	token int64
	holds map[string]seenHold // by owner
}

// seenHold describes a hold. For the only hold of a lock with an unchanged count, left is the
// remaining lease at first sight, and most is the largest one since. Otherwise both are -1.
type seenHold struct {
	Age

	left, most time.Duration
	count      string
}

type look struct {
	at      time.Time
	holders []inspect.Holder
	more    bool // there are other holders
	shared  bool // the holders share the lease
	ttl     time.Duration
	token   int64
	anew    bool // messages prove that the lock was acquired again
}

// sees records a look and returns the ages of the holders.
func (a *ages) sees(name string, l *look) []Age {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, known := a.locks[name]
	if known && l.at.Sub(before.at) > remembers {
		before = nil
	}
	now := &sighting{at: l.at, token: l.token, holds: make(map[string]seenHold, len(l.holders))}
	late := before != nil && l.at.Before(before.at)
	all := make([]Age, len(l.holders))
	for i, h := range l.holders {
		hold := a.hold(before, h, l, late)
		all[i], now.holds[h.Owner] = hold.age(), hold
	}
	if before != nil && l.more {
		for owner, hold := range before.holds {
			if _, is := now.holds[owner]; !is {
				now.holds[owner] = hold
			}
		}
	}
	if a.locks == nil {
		a.locks = map[string]*sighting{}
	}
	if !late && (known || len(a.locks) < 4*kept) {
		a.locks[name] = now
	}
	return all
}

func (a *ages) hold(before *sighting, h inspect.Holder, l *look, late bool) seenHold {
	seen := a.scanned
	if before != nil && before.at.After(seen) {
		seen = before.at
	}
	fresh := seenHold{Age: Age{Since: l.at}, left: l.ttl, most: l.ttl, count: string(h.Count)}
	fresh.Exact = !late && l.at.Sub(seen) <= takenWithin
	if before == nil {
		return fresh
	}
	known, is := before.holds[h.Owner]
	if !is || !late && (l.anew || l.token > 0 && before.token > 0 && l.token != before.token) {
		return fresh
	}
	if known.count != string(h.Count) || l.shared { // entering again also sets the lease
		known.Age, known.count, known.left, known.most = known.age(), string(h.Count), -1, -1
	}
	if known.left >= 0 {
		known.most = max(known.most, l.ttl)
	}
	return known
}

// age returns the age of a hold. The acquisition and renewals set the lease to the same length, so
// the part missing at first sight had passed. This part is at most a third. If the lease grew by
// more, its length changed.
func (h *seenHold) age() Age {
	if h.Exact || h.left < 0 || h.most > h.left+h.left/2+time.Second {
		return h.Age
	}
	return Age{Since: h.Since.Add(h.left - h.most)}
}

// ended records the end of a scan, and whether the scan found all locks that were held when it
// began.
func (a *ages) ended(began time.Time, all bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if all {
		a.scanned = began
	}
	for name, s := range a.locks {
		if s.at.Before(began) {
			delete(a.locks, name)
		}
	}
}
