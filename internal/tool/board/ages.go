package board

import (
	"cmp"
	"hash/maphash"
	"slices"
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

// ages is safe for concurrent use. The zero value is empty. It stores hashes instead of strings,
// because it covers more locks than a scan keeps.
type ages struct {
	mu      sync.Mutex
	seed    maphash.Seed
	locks   map[uint64]sighting // by name
	scanned time.Time           // the beginning of the last scan that found all locks
}

// dated is the number of locks whose ages are known.
const dated = 1 << 18

type sighting struct {
	at    time.Time
	token int64
	holds []seenHold // sorted by owner
}

// seenHold describes a hold. For the only hold of a lock with an unchanged count, left is the
// remaining lease at first sight, and most is the largest one since. Otherwise both are -1.
type seenHold struct {
	Age

	owner, count uint64
	left, most   time.Duration
}

func byOwner(h seenHold, owner uint64) int { return cmp.Compare(h.owner, owner) }

type look struct {
	at      time.Time
	holders []inspect.Holder
	more    bool // there are other holders
	shared  bool // the holders share the lease
	ttl     time.Duration
	token   int64
	anew    bool // messages prove that the lock was acquired again
}

func (a *ages) hash(text string) uint64 { return maphash.String(a.seed, text) }

// sees records a look and returns the ages of the holders.
func (a *ages) sees(name string, l *look) []Age {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.locks == nil {
		a.locks, a.seed = map[uint64]sighting{}, maphash.MakeSeed()
	}
	key := a.hash(name)
	before, known := a.locks[key]
	if known && l.at.Sub(before.at) > remembers {
		before = sighting{}
	}
	now := sighting{at: l.at, token: l.token, holds: make([]seenHold, len(l.holders))}
	late := l.at.Before(before.at)
	all := make([]Age, len(l.holders))
	for i, h := range l.holders {
		now.holds[i] = a.hold(&before, h, l, late)
		all[i] = now.holds[i].age()
	}
	sortHolds := func() {
		slices.SortFunc(now.holds, func(a, b seenHold) int { return cmp.Compare(a.owner, b.owner) })
	}
	sortHolds()
	if l.more {
		for _, hold := range before.holds {
			if _, is := slices.BinarySearchFunc(now.holds[:len(l.holders)], hold.owner, byOwner); !is {
				now.holds = append(now.holds, hold)
			}
		}
		sortHolds()
	}
	if !late && (known || len(a.locks) < dated) {
		a.locks[key] = now
	}
	return all
}

func (a *ages) hold(before *sighting, h inspect.Holder, l *look, late bool) seenHold {
	seen := a.scanned
	if before.at.After(seen) {
		seen = before.at
	}
	fresh := seenHold{Age: Age{Since: l.at}, owner: a.hash(h.Owner), left: l.ttl, most: l.ttl, count: a.hash(string(h.Count))}
	fresh.Exact = !late && l.at.Sub(seen) <= takenWithin
	i, is := slices.BinarySearchFunc(before.holds, fresh.owner, byOwner)
	if !is || !late && (l.anew || l.token > 0 && before.token > 0 && l.token != before.token) {
		return fresh
	}
	known := before.holds[i]
	if known.count != fresh.count || l.shared { // a re-entry also sets the lease
		known.Age, known.count, known.left, known.most = known.age(), fresh.count, -1, -1
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
	for key, s := range a.locks {
		if s.at.Before(began) {
			delete(a.locks, key)
		}
	}
}
