package board

import (
	"maps"
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
	// mostGroups limits the groups whose locks a scan counts.
	mostGroups = 4 * seriesOfGroups
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

// tick counts the Slots since an arbitrary time. It is 0 for the zero time.
type tick int64

// track is a ring of points, indexed by their slots.
type track struct {
	points         [Points]Point
	newest, active tick
}

// at returns the point of a slot, or nil if it is too old.
func (t *track) at(n tick) *Point {
	if n-t.newest >= tick(Points) {
		t.points = [Points]Point{}
		t.newest = n
	}
	for t.newest < n {
		t.newest++
		t.points[t.newest%tick(Points)] = Point{}
	}
	if t.newest-n >= tick(Points) {
		return nil
	}
	return &t.points[n%tick(Points)]
}

type gauges struct{ held, waiters int32 }

// sees records a look. last is the slot of the previous look, whose numbers also apply to the slots in between.
func (t *track) sees(n, last tick, g gauges) {
	if n-last < tick(Points) {
		if before := t.at(last); before != nil && before.Known {
			held, waiters := before.Held, before.Waiters
			for last++; last < n; last++ {
				p := t.at(last)
				p.Known, p.Held, p.Waiters = true, max(p.Held, held), max(p.Waiters, waiters)
			}
		}
	}
	if p := t.at(n); p != nil {
		p.Known, p.Held, p.Waiters = true, max(p.Held, g.held), max(p.Waiters, g.waiters)
	}
	if g.waiters > 0 {
		t.active = n
	}
}

// history is safe for concurrent use.
type history struct {
	mu            sync.Mutex
	start         time.Time // the beginning of slot 0
	all           track
	groups, locks map[uint64]*track // by the hash of the name
}

// slot uses the monotonic clock. Slots begin at multiples of Slot by the system clock as of the first call.
func (h *history) slot(t time.Time) tick {
	if t.IsZero() {
		return 0
	}
	if h.start.IsZero() {
		h.start = t.Add(-time.Duration(t.UnixNano())%Slot - 10*Past)
	}
	return tick(t.Sub(h.start) / Slot)
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

// changed starts tracks only up to half the limit, to keep room for queues.
func (h *history) changed(lock, group uint64, when time.Time, c changes) {
	if c == (changes{}) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.slot(when)
	for _, t := range []*track{&h.all, ensure(&h.groups, group, seriesOfGroups/2), ensure(&h.locks, lock, seriesOfLocks/2)} {
		if t == nil {
			continue
		}
		t.active = n
		if p := t.at(n); p != nil {
			p.Acquired += c.acquired
			p.Expired += c.expired
		}
	}
}

// watched records a look at one lock. last is the time of the previous look, or zero.
func (h *history) watched(name string, when, last time.Time, g gauges) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, key := h.slot(when), hash(name)
	t := ensure(&h.locks, key, seriesOfLocks+keptLocks)
	if t == nil {
		drop(h.locks, n)
		t = ensure(&h.locks, key, seriesOfLocks+keptLocks)
	}
	if t == nil {
		return
	}
	t.sees(n, h.slot(last), g)
	t.active = n
}

// scanned records a scan. last is the time of the previous scan, or zero. If not all masters were scanned, it records
// no numbers.
func (h *history) scanned(l *Locks, last time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, before := h.slot(l.At), h.slot(last)
	if l.Unread.Away == nil {
		h.numbers(l, n, before)
	}
	drop(h.groups, n)
	drop(h.locks, n)
}

func (h *history) numbers(l *Locks, n, last tick) {
	h.all.sees(n, last, gauges{int32(l.Held), int32(min(l.Waiting, mostWaiters))})
	for i := range l.Entries {
		e := &l.Entries[i]
		key, g := hash(e.Name), gaugesOf(e)
		if t := ensure(&h.groups, hash(Group(e.Name)), seriesOfGroups); t != nil {
			t.active = n
		}
		if g.waiters > 0 {
			ensure(&h.locks, key, seriesOfLocks)
		}
		if t := h.locks[key]; t != nil {
			t.sees(n, last, g)
		}
	}
	for key, t := range h.groups {
		if g, is := l.groups[key]; is || len(l.groups) < mostGroups {
			t.sees(n, last, g.gauges)
		}
	}
	if l.Total == len(l.Entries) { // others have neither holders nor waiters
		for _, t := range h.locks {
			t.sees(n, last, gauges{})
		}
	}
}

// drop removes tracks without activity.
func drop(tracks map[uint64]*track, now tick) {
	maps.DeleteFunc(tracks, func(_ uint64, t *track) bool { return now-t.active >= tick(Points) })
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
	var t *track
	switch of {
	case OfAll:
		t = &h.all
	case OfGroup:
		t = h.groups[hash(name)]
	default:
		t = h.locks[hash(name)]
	}
	if t == nil || t.newest == 0 {
		return nil
	}
	return h.series(t, of == OfGroup || of == OfRow, time.Now())
}

// late is how many slots old the last point of a series may be.
const late = 4

func (h *history) series(t *track, whole bool, now time.Time) *Series {
	end := t.newest
	if n := h.slot(now); n-end > late {
		end = n
	}
	s := &Series{End: h.start.Add(time.Duration(end+1) * Slot)}
	for i := range s.Points {
		n := end - tick(Points-1-i)
		if n <= t.newest && n > t.newest-tick(Points) {
			s.Points[i] = t.points[n%tick(Points)]
		}
		if whole && n <= h.all.newest && n > h.all.newest-tick(Points) {
			s.Points[i].Known = s.Points[i].Known || h.all.points[n%tick(Points)].Known
		}
	}
	return s
}
