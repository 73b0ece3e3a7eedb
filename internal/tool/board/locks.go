package board

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/rfairlock"
)

const (
	// kept is how many locks of a scan are kept, those with most trouble.
	kept = 20_000
	// fronts is how many queues' first waiters are looked for after a scan.
	fronts = 32
	// countWait bounds the counting of subscribers after a scan.
	countWait = 2 * time.Second
)

// The troubles of a lock, the worst first.
const (
	InCircle  = "in a circle of waits"
	DeadFront = "dead waiter in front"
	TwoKinds  = "two kinds of lock under one name"
	NoLease   = "held without a lease"
	Untaken   = "free with a queue"
)

// troubles are in order of severity.
var troubles = []string{InCircle, DeadFront, TwoKinds, NoLease, Untaken}

// Entry is a lock as a scan has found it.
type Entry struct {
	*listing.Lock
	// Since is when the first holder was first seen with it by this board: it may hold the
	// lock for longer. It is the zero time for a lock that is free.
	Since time.Time
	// Trouble is the worst of the troubles, "" when there is none.
	Trouble string
}

// Waiters is how many wait: the length of the queue, or of a number how many connections do.
func (e *Entry) Waiters() int64 {
	if e.Number != nil {
		return e.Number.Waiters()
	}
	return e.Queue
}

// Locks are the locks as one scan has found them.
type Locks struct {
	// At is when the scan ended, Took how long it took.
	At   time.Time
	Took time.Duration
	// Entries are the locks, those with most trouble first, and Total is how many there are:
	// more than Entries when there are very many.
	Entries []Entry
	Total   int
	// Clients are the clients that hold or wait for the entries, by their IDs, and Circles the
	// circles in which they wait for each other, the sure ones first.
	Clients []Client
	Circles []Circle
	// Unread is how many hashes the user may not read.
	Unread listing.Unread
	// Err is why the last scan failed. The entries are those of the one before.
	Err error
}

// memory is what one scan leaves for the next.
type memory struct {
	last   *Locks
	since  map[string]holding   // by name
	absent map[string]time.Time // since when the first waiter has no subscriber, by queue and owner
	// circles are those of the last scan, by their keys.
	circles map[string]bool
}

// holding is since when an owner was seen with a lock.
type holding struct {
	owner string
	since time.Time
}

// scanAgain is the feed of all locks, or of all numbers.
func (b *Board) scanAgain(ctx context.Context, numbers bool, publish func(*Locks) bool) {
	m := memory{last: &Locks{}}
	for ctx.Err() == nil {
		began := time.Now()
		m.last = b.scanOnce(ctx, numbers, &m)
		if ctx.Err() != nil || !publish(m.last) {
			return
		}
		if inspect.Pause(ctx, max(b.Every, listing.PauseFactor*time.Since(began))) != nil {
			return
		}
	}
}

// scanOnce scans all locks, or all numbers.
func (b *Board) scanOnce(ctx context.Context, numbers bool, m *memory) *Locks {
	began := time.Now()
	found := &Locks{}
	unread, err := b.Source.scan(ctx, listing.Request{
		Pattern: b.Pattern, Permits: true, Numbers: numbers, Places: placesOfQueue, Found: found.add,
	})
	if err != nil {
		failed := *m.last
		failed.Err = b.Source.problem(err)
		return &failed
	}
	m.date(found, began)
	found.sort()
	b.findDead(ctx, found, m)
	found.findCircles(m)
	found.Entries = found.Entries[:min(len(found.Entries), kept)]
	found.Clients = clientsOf(found.Entries, found.Circles)
	found.At, found.Took, found.Unread = time.Now(), time.Since(began), unread
	return found
}

// add takes a lock in.
func (l *Locks) add(lock *listing.Lock) error {
	l.Total++
	l.Entries = append(l.Entries, Entry{Lock: lock, Trouble: troubleOf(lock)})
	if len(l.Entries) >= 2*kept {
		l.sort()
		l.Entries = slices.Clone(l.Entries[:kept])
	}
	return nil
}

// troubleOf returns the worst trouble that one look shows.
func troubleOf(l *listing.Lock) string {
	held := len(l.Holders) > 0
	switch {
	case l.HasTwoKinds():
		return TwoKinds
	case held && l.TTL == redlatch.NoTTL:
		return NoLease
	case !held && l.Queue > 0:
		return Untaken
	}
	return ""
}

// date notes since when the holders were seen.
func (m *memory) date(found *Locks, now time.Time) {
	since := make(map[string]holding, len(found.Entries))
	for i := range found.Entries {
		e := &found.Entries[i]
		if len(e.Holders) == 0 {
			continue
		}
		h := m.since[e.Name]
		if h.owner != e.Holders[0].Owner {
			h = holding{e.Holders[0].Owner, now}
		}
		e.Since, since[e.Name] = h.since, h
	}
	m.since = since
}

// sort brings the locks with most trouble to the front: then the longest queues, then those
// that were held the longest.
func (l *Locks) sort() { slices.SortFunc(l.Entries, ByTrouble) }

// ByTrouble compares two locks: the one with more trouble comes first.
func ByTrouble(a, b Entry) int {
	return cmp.Or(cmp.Compare(severity(b.Trouble), severity(a.Trouble)), cmp.Compare(b.Waiters(), a.Waiters()), ByAge(a, b))
}

// ByAge compares two locks: the one that was seen held for longer comes first.
func ByAge(a, b Entry) int {
	return cmp.Or(compareTimes(a.Since, b.Since), strings.Compare(a.Name, b.Name))
}

// compareTimes puts the zero time, that of a free lock, last.
func compareTimes(a, b time.Time) int {
	switch {
	case a.IsZero() || b.IsZero():
		return cmp.Compare(btoi(a.IsZero()), btoi(b.IsZero()))
	}
	return a.Compare(b)
}

func btoi(is bool) int {
	if is {
		return 1
	}
	return 0
}

func severity(trouble string) int {
	if i := slices.Index(troubles, trouble); i >= 0 {
		return len(troubles) - i
	}
	return 0
}

// findDead looks whether the first waiters of some queues have subscribers, those of free locks
// first. One that has none at two scans, a second apart at least, counts as dead.
func (b *Board) findDead(ctx context.Context, found *Locks, m *memory) {
	ctx, cancel := context.WithTimeout(ctx, countWait)
	defer cancel()
	absent := map[string]time.Time{}
	dead, asked := false, 0
	for i := range found.Entries {
		e := &found.Entries[i]
		if e.Next == "" || e.Kind == listing.ReadWrite {
			continue
		}
		if asked++; asked > fronts {
			break
		}
		now := time.Now()
		counts, err := admin.Listeners(ctx, rfairlock.New(b.Source.client, e.Name), e.Next)
		if err != nil {
			continue // unknown: it is not called dead
		}
		if counts[0] > 0 {
			continue
		}
		key := e.Name + "\x00" + e.Next
		first, known := m.absent[key]
		if !known {
			first = now
		}
		absent[key] = first
		if known && now.Sub(first) >= absentFor {
			e.Trouble, dead = DeadFront, true
		}
	}
	if m.absent = absent; dead {
		found.sort()
	}
}
