package board

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// takenWithin is the longest interval between a look without a hold and the first look with it for which the
// beginning of the hold counts as known.
const takenWithin = 3 * time.Second

// Age is how long an owner has held a lock.
type Age struct {
	// Since is when the hold began, within seconds if Exact is set. Otherwise it may have begun
	// earlier.
	Since time.Time
	Exact bool
}

// ages stores hashes instead of strings, because it covers more locks than a scan keeps. It is safe for concurrent
// use.
type ages struct {
	mu      sync.Mutex
	locks   map[uint64]sighting // by name
	start   time.Time           // before all moments
	scanned moment              // when the last complete scan began
	full    bool                // a lock was left out since the last scan ended
}

const dated = 1 << 18

type sighting struct {
	at    moment
	token int64
	group uint64     // of the name
	holds []seenHold // sorted by owner
	ttl   millis     // negative if there is none, or several
	more  bool       // there are other holders
}

// mostHolds limits the holds of a lock, if its looks show only some of them.
const mostHolds = 256

// moment is the time since ages.start by the monotonic clock, or 0 for the zero time. Moments of looks are larger than
// all durations that are compared with them.
type moment time.Duration

func (a *ages) moment(t time.Time) moment {
	if t.IsZero() {
		return 0
	}
	if a.start.IsZero() {
		a.start = t.Add(-time.Hour)
	}
	return moment(t.Sub(a.start))
}

// millis is a lease in milliseconds.
type millis int32

func millisOf(d time.Duration) millis {
	if d < 0 {
		return -1
	}
	return millis(min(d.Milliseconds(), math.MaxInt32))
}

func (m millis) duration() time.Duration { return time.Duration(m) * time.Millisecond }

type changes struct{ acquired, expired int32 }

// seenHold describes a hold. For the only hold of a lock with an unchanged count, left is the first and most the
// largest remaining lease seen. Otherwise both are -1.
type seenHold struct {
	since        moment
	owner, count uint64
	left, most   millis
	exact        bool
}

func find(holds []seenHold, owner uint64) (i int, is bool) {
	return slices.BinarySearchFunc(holds, owner, func(h seenHold, owner uint64) int { return cmp.Compare(h.owner, owner) })
}

type look struct {
	at      time.Time
	holders []inspect.Holder
	more    bool // there are other holders
	shared  bool // the holders share the lease
	ttl     time.Duration
	token   int64
	anew    bool // messages prove that the lock was acquired again
	// last is the time of the previous look, or zero if there was none. Later changes are counted.
	last time.Time
}

var seed = maphash.MakeSeed()

func hash(text string) uint64 { return maphash.String(seed, text) }

// sees records a look. It returns the ages of the holders, and the changes since the last look.
func (a *ages) sees(name string, l *look) ([]Age, changes) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.locks == nil {
		a.locks = map[uint64]sighting{}
	}
	key, at := hash(name), a.moment(l.at)
	before, known := a.locks[key]
	forgotten := known && at-before.at > moment(remembers)
	if forgotten {
		before = sighting{}
	}
	now := sighting{at: at, token: l.token, group: hash(Group(name)), ttl: millisOf(l.ttl), more: l.more, holds: make([]seenHold, len(l.holders))}
	if l.shared {
		now.ttl = -1
	}
	late := now.at < before.at
	all := make([]Age, len(l.holders))
	for i, h := range l.holders {
		now.holds[i] = a.hold(&before, h, l, late)
		began, exact := now.holds[i].began()
		all[i] = Age{Since: a.start.Add(time.Duration(began)), Exact: exact}
	}
	sortHolds := func() {
		slices.SortFunc(now.holds, func(a, b seenHold) int { return cmp.Compare(a.owner, b.owner) })
	}
	sortHolds()
	if l.more {
		for _, hold := range before.holds {
			if _, is := find(now.holds[:len(l.holders)], hold.owner); !is && len(now.holds) < mostHolds {
				now.holds = append(now.holds, hold)
			}
		}
		sortHolds()
	}
	switch {
	case late:
		return all, changes{}
	case known || len(a.locks) < dated:
		a.locks[key] = now
	default:
		a.full = true
	}
	if forgotten {
		return all, changes{}
	}
	return all, a.changes(&before, &now, l)
}

func (a *ages) changes(before, now *sighting, l *look) (c changes) {
	last := a.moment(l.last)
	switch unseen := before.at == 0; {
	case last == 0 || l.more || before.more:
		return c
	case unseen && a.scanned < last:
		return c
	case unseen:
		return changes{acquired: int32(len(now.holds))}
	case before.at < last:
		return c
	}
	for _, hold := range before.holds {
		if _, is := find(now.holds, hold.owner); !is && before.expired(&hold, now.at) {
			c.expired++
		}
	}
	for _, hold := range now.holds {
		if hold.since == now.at {
			c.acquired++
		}
	}
	return c
}

// expired reports whether a hold that is gone was not renewed when due, and its lease has passed. A release at the
// end of a lease looks the same.
func (s *sighting) expired(h *seenHold, now moment) bool {
	return s.ttl >= 0 && h.most > 0 && s.ttl < h.most/2 && s.at+moment(s.ttl.duration()) <= now
}

func (a *ages) hold(before *sighting, h inspect.Holder, l *look, late bool) seenHold {
	at, left := a.moment(l.at), millisOf(l.ttl)
	fresh := seenHold{since: at, owner: hash(h.Owner), left: left, most: left, count: hash(string(h.Count))}
	fresh.exact = !late && at-max(a.scanned, before.at) <= moment(takenWithin)
	i, is := find(before.holds, fresh.owner)
	if !is || !late && (l.anew || l.token > 0 && before.token > 0 && l.token != before.token) {
		return fresh
	}
	known := before.holds[i]
	if known.count != fresh.count || l.shared { // a re-entry also sets the lease
		known.since, known.exact = known.began()
		known.count, known.left, known.most = fresh.count, -1, -1
	}
	if known.left >= 0 {
		known.most = max(known.most, left)
	}
	return known
}

// began returns when a hold began, and whether that is exact. The acquisition and renewals set the lease to the same length, so the part missing
// at first sight had passed. If the lease grew by more than a third, its length changed.
func (h *seenHold) began() (since moment, exact bool) {
	left, most := h.left.duration(), h.most.duration()
	if h.exact || h.left < 0 || most > left+left/2+time.Second {
		return h.since, h.exact
	}
	return h.since + moment(left-most), false
}

// ended records the end of a scan. all means that the scan found all locks that were held when it began. It calls
// changed for each lock that the scan did not find and whose lease had expired.
func (a *ages) ended(began, last time.Time, all bool, changed func(lock, group uint64, c changes)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, before := a.moment(began), a.moment(last)
	if all = all && !a.full; all {
		a.scanned = at
	}
	a.full = false
	for key, s := range a.locks {
		if s.at >= at {
			continue
		}
		delete(a.locks, key)
		if !all || before == 0 || s.at < before {
			continue
		}
		for i := range s.holds {
			if s.expired(&s.holds[i], at) {
				changed(key, s.group, changes{expired: 1})
			}
		}
	}
}
