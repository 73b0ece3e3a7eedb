package board

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// takenWithin is how long before a hold was first seen the lock was seen without it, for the time
// at which it was taken to be known.
const takenWithin = 3 * time.Second

// Age is since when an owner holds a lock, as far as that can be known.
type Age struct {
	// Since is when it was taken when Exact is true, some seconds more or less. Else it was held
	// already then, and may have been for longer.
	Since time.Time
	Exact bool
}

// ages are since when owners hold locks, as far as scans and looks at one lock have seen it. It is
// safe for concurrent use; the zero ages know nothing.
type ages struct {
	mu      sync.Mutex
	locks   map[string]*sighting
	scanned time.Time // when the last scan that found all locks began
}

type sighting struct {
	at    time.Time
	token int64
	holds map[string]seenHold // by owner
}

// seenHold is what was seen of one hold. Of a lock with one holder that has entered once it has what
// the lease had left when it was first seen, and the most that it ever had; both are -1 for others.
type seenHold struct {
	Age

	left, most time.Duration
	count      string
}

// look is what a scan or a look has found of a lock.
type look struct {
	at      time.Time
	holders []inspect.Holder
	more    bool // there are other holders
	shared  bool // the lease is that of all holders
	ttl     time.Duration
	token   int64
	anew    bool // messages show that the holder has taken the lock since the last look
}

// sees takes in what was found of a lock, and returns since when each of the holders has it. An
// owner that has freed the lock and taken it again is told apart by the token, by messages, and
// by looks that found the lock without it.
func (a *ages) sees(name string, l *look) []Age {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, known := a.locks[name]
	if known && l.at.Sub(before.at) > remembers {
		before = nil
	}
	now := &sighting{at: l.at, token: l.token, holds: make(map[string]seenHold, len(l.holders))}
	late := before != nil && l.at.Before(before.at) // another look was faster
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
	if known.count != string(h.Count) || l.shared { // entering sets the lease, too
		known.Age, known.count, known.left, known.most = known.age(), string(h.Count), -1, -1
	}
	if known.left >= 0 {
		known.most = max(known.most, l.ttl)
	}
	return known
}

// age returns the age of a hold. A lease that was renewed was set to the same before that, when
// the lock was taken or later: so long as it lacked of that when it was first seen, the lock was
// held already. It lacks no more than a third of it then: one that was set to more is another.
func (h *seenHold) age() Age {
	if h.Exact || h.left < 0 || h.most > h.left+h.left/2+time.Second {
		return h.Age
	}
	return Age{Since: h.Since.Add(h.left - h.most)}
}

// ended takes in that a scan has ended, and whether it has found all locks but those that were
// taken since it began.
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
