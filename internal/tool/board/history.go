package board

import (
	"strings"
	"sync"
	"time"
)

const (
	// Past is how far back a Series reaches.
	Past = 5 * time.Minute
	// Slot is the length of a Point.
	Slot = 5 * time.Second
	// Points is the number of points in a Series.
	Points = int(Past / Slot)
	// These limit the groups and locks with a series. A watched lock always has one.
	seriesOfGroups, seriesOfLocks = 1000, 2000
)

// Point is what was seen during one Slot.
type Point struct {
	// Known is false if there was no look.
	Known bool
	// Held and Waiters are the largest numbers seen.
	Held, Waiters int32
	// Acquired and Expired count the changes between looks. They omit locks that were acquired and released between
	// two looks.
	Acquired, Expired int32
}

// Series contains the points of the last minutes, oldest first. The last point ends at End.
type Series struct {
	Points [Points]Point
	End    time.Time
}

// Since returns the beginning of the first known point, or the zero time.
func (s *Series) Since() time.Time {
	for i := range s.Points {
		if s.Points[i].Known {
			return s.End.Add(-time.Duration(Points-i) * Slot)
		}
	}
	return time.Time{}
}

// Group returns the beginning of a name, up to a colon, slash or dot, or "".
func Group(name string) string {
	const longest = 160
	if end := strings.IndexAny(name[:min(len(name), longest)], ":/."); end > 0 {
		return name[:end+1]
	}
	return ""
}

// track is a ring of points, indexed by the number of their Slot since 1970.
type track struct {
	points [Points]Point
	newest int64
	active time.Time
}

func slotOf(at time.Time) int64 { return at.UnixMilli() / Slot.Milliseconds() }

// at returns the point for a time, or nil if it is too old.
func (t *track) at(when time.Time) *Point {
	n := slotOf(when)
	if n-t.newest >= int64(Points) {
		t.points = [Points]Point{}
		t.newest = n
	}
	for t.newest < n {
		t.newest++
		t.points[t.newest%int64(Points)] = Point{}
	}
	if t.newest-n >= int64(Points) {
		return nil
	}
	return &t.points[n%int64(Points)]
}

type gauges struct{ held, waiters int32 }

// sees records a look. last is the time of the previous look, whose numbers also apply to the slots in between.
func (t *track) sees(when, last time.Time, g gauges) {
	if before := t.at(last); before != nil && before.Known && last.After(when.Add(-Past)) {
		held, waiters := before.Held, before.Waiters
		for last = last.Add(Slot); slotOf(last) < slotOf(when); last = last.Add(Slot) {
			p := t.at(last)
			p.Known, p.Held, p.Waiters = true, max(p.Held, held), max(p.Waiters, waiters)
		}
	}
	if p := t.at(when); p != nil {
		p.Known, p.Held, p.Waiters = true, max(p.Held, g.held), max(p.Waiters, g.waiters)
	}
	if g.waiters > 0 {
		t.active = when
	}
}

// history is safe for concurrent use.
type history struct {
	mu            sync.Mutex
	all           track
	groups, locks map[uint64]*track // by the hash of the name
}

// ensure returns nil if there are too many tracks.
func ensure(tracks *map[uint64]*track, name uint64, most int) *track {
	t := (*tracks)[name]
	if t != nil || len(*tracks) >= most {
		return t
	}
	if *tracks == nil {
		*tracks = map[uint64]*track{}
	}
	t = &track{}
	(*tracks)[name] = t
	return t
}

func (h *history) changed(lock, group uint64, when time.Time, c changes) {
	if c == (changes{}) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range []*track{&h.all, ensure(&h.groups, group, seriesOfGroups), ensure(&h.locks, lock, seriesOfLocks)} {
		if t == nil {
			continue
		}
		t.active = when
		if p := t.at(when); p != nil {
			p.Acquired += c.acquired
			p.Expired += c.expired
		}
	}
}

// watched records a look at one lock. last is the time of the previous look, or zero.
func (h *history) watched(name string, when, last time.Time, g gauges) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := ensure(&h.locks, hash(name), seriesOfLocks+keptLocks)
	if t == nil {
		return
	}
	t.sees(when, last, g)
	t.active = when
}

// scanned records a scan. last is the time of the previous scan, or zero.
func (h *history) scanned(l *Locks, last time.Time) {
	locks := make(map[uint64]gauges, len(l.Entries))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all.sees(l.At, last, gauges{int32(l.Held), int32(min(l.Waiting, mostWaiters))})
	for i := range l.Entries {
		e := &l.Entries[i]
		key, g := hash(e.Name), gaugesOf(e)
		locks[key] = g
		if t := ensure(&h.groups, hash(Group(e.Name)), seriesOfGroups); t != nil {
			t.active = l.At
		}
		if g.waiters > 0 {
			ensure(&h.locks, key, seriesOfLocks)
		}
	}
	record(h.groups, l.groups, l.Unread.Away == nil, l.At, last)
	record(h.locks, locks, l.Unread.Away == nil && l.Total == len(l.Entries), l.At, last)
}

// record adds numbers, and drops tracks without activity. If whole is set, names that were not found have neither
// holders nor waiters.
func record(tracks map[uint64]*track, found map[uint64]gauges, whole bool, when, last time.Time) {
	for name, t := range tracks {
		if g, is := found[name]; is || whole {
			t.sees(when, last, g)
		}
		if when.Sub(t.active) > Past {
			delete(tracks, name)
		}
	}
}

func gaugesOf(e *Entry) gauges {
	return gauges{int32(btoi(e.IsHeld())), int32(min(e.Waiters(), mostWaiters))}
}

const mostWaiters = 1 << 30

// The kinds of series.
const (
	OfAll   = "all"
	OfGroup = "group"
	OfRow   = "row"
	OfLock  = "lock"
)

// Series returns the series of all locks, a group or a lock, or nil if it was not recorded. Points of groups and
// rows are known whenever those of all locks are, but the holders of a row are known only while it had waiters.
func (b *Board) Series(of, name string) *Series {
	h := &b.seen.history
	h.mu.Lock()
	defer h.mu.Unlock()
	t := map[string]*track{OfAll: &h.all, OfGroup: h.groups[hash(name)], OfRow: h.locks[hash(name)], OfLock: h.locks[hash(name)]}[of]
	if t == nil || t.newest == 0 {
		return nil
	}
	return h.series(t, of == OfGroup || of == OfRow, time.Now())
}

// late is how many slots old the last point of a series may be.
const late = 4

func (h *history) series(t *track, whole bool, now time.Time) *Series {
	end := t.newest
	if n := slotOf(now); n-end > late {
		end = n
	}
	s := &Series{End: time.UnixMilli((end + 1) * Slot.Milliseconds())}
	for i := range s.Points {
		n := end - int64(Points-1-i)
		if n <= t.newest && n > t.newest-int64(Points) {
			s.Points[i] = t.points[(n%int64(Points)+int64(Points))%int64(Points)]
		}
		if whole && n <= h.all.newest && n > h.all.newest-int64(Points) {
			s.Points[i].Known = s.Points[i].Known || h.all.points[n%int64(Points)].Known
		}
	}
	return s
}
