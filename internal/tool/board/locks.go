package board

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

const kept = 20_000

// Troubles of a lock, beginning with the worst.
const (
	InCircle  = "in a deadlock"
	DeadFront = "dead waiter in front"
	TwoKinds  = "two kinds of lock under one name"
	NoLease   = "held without a lease"
	Untaken   = "free with a queue"
)

var troubles = []string{InCircle, DeadFront, TwoKinds, NoLease, Untaken}

// Entry is a lock found by a scan.
type Entry struct {
	*inspect.Lock
	Ages []Age
	Age
	// Trouble is the worst trouble, or "".
	Trouble   string
	Uncounted bool
}

// Waiters returns the length of the queue, or the number of waiting connections.
func (e *Entry) Waiters() int64 {
	switch {
	case e.Number != nil:
		return e.Number.Waiters()
	case e.Queue == 0:
		return e.Waiting
	}
	return e.Queue
}

// IsHeld reports whether the lock, or a permit, is held.
func (e *Entry) IsHeld() bool { return len(e.Holders) > 0 || e.Number != nil && e.Number.Taken > 0 }

// Locks is the result of a scan.
type Locks struct {
	Seen

	// Entries lists the worst troubles first. Total also counts locks that were not kept.
	Entries []Entry
	Total   int
	// Troubled counts known troubles, also of locks that were not kept.
	Troubled int
	Clients  []Client
	Circles  []inspect.Circle
	Unread   inspect.Unread
	// Uncounted is the reason why subscribers cannot be counted.
	Uncounted string
	// Held and Waiting also count locks and waiters that were not kept.
	Held, Waiting int
	groups        map[uint64]total // by the hash of the name
	// pending requests another scan to confirm a trouble.
	pending bool
}

// total counts the locks of a group.
type total struct {
	gauges
	locks int
}

// Group returns the numbers of all locks, held locks and waiters of a group, also of those that were not kept, or false
// if there are too many groups.
func (l *Locks) Group(prefix string) (locks, held, waiters int, ok bool) {
	g, ok := l.groups[hash(prefix)]
	return g.locks, int(g.held), int(g.waiters), ok
}

// CountsChanges reports whether there are few enough locks to see acquisitions and expired leases.
func (l *Locks) CountsChanges() bool { return l.Total <= dated }

func (l *Locks) add(e Entry, order func(a, b Entry) int) {
	l.sum(&e)
	l.Entries = append(l.Entries, e)
	if len(l.Entries) >= 2*kept {
		l.cut(order)
	}
}

func (l *Locks) sum(e *Entry) {
	l.Total++
	if e.IsHeld() {
		l.Held++
	}
	l.Waiting += int(e.Waiters())
	group, g := hash(Group(e.Name)), gaugesOf(e)
	if l.groups == nil {
		l.groups = map[uint64]total{}
	}
	if sum, known := l.groups[group]; known || len(l.groups) < mostGroups {
		l.groups[group] = total{gauges{sum.held + g.held, sum.waiters + g.waiters}, sum.locks + 1}
	}
}

func (l *Locks) cut(order func(a, b Entry) int) {
	if len(l.Entries) > kept {
		slices.SortFunc(l.Entries, order)
		for _, e := range l.Entries[kept:] {
			if e.Trouble != "" && e.Trouble != Untaken { // which may be passing
				l.Troubled++
			}
		}
		l.Entries = slices.Clone(l.Entries[:kept])
	}
}

func entryOf(l *inspect.Lock) Entry { return Entry{Lock: l, Trouble: troubleOf(l)} }

func troubleOf(l *inspect.Lock) string {
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

func (l *Locks) sort() { slices.SortFunc(l.Entries, ByTrouble) }

// ByTrouble sorts locks by trouble, beginning with the worst.
func ByTrouble(a, b Entry) int {
	return cmp.Or(cmp.Compare(severity(b.Trouble), severity(a.Trouble)), cmp.Compare(b.Waiters(), a.Waiters()), ByAge(a, b))
}

// ByAge sorts locks by age, beginning with the oldest hold. Free locks are last.
func ByAge(a, b Entry) int {
	return cmp.Or(btoi(a.Since.IsZero())-btoi(b.Since.IsZero()), a.Since.Compare(b.Since), CompareNames(a.Name, b.Name))
}

// CompareNames compares numbers in names by their value, so that inv:2 comes before inv:10.
func CompareNames(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		var m, n string
		if m, x = number(x); m != "" {
			if n, y = number(y); n != "" {
				if c := cmp.Or(cmp.Compare(len(m), len(n)), strings.Compare(m, n)); c != 0 {
					return c
				}
				continue
			}
			return cmp.Compare(m[0], y[0])
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

// number splits a number without its leading zeros from the beginning of text.
func number(text string) (digits, rest string) {
	n := 0
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	zeros := 0
	for zeros < n-1 && text[zeros] == '0' {
		zeros++
	}
	return text[zeros:n], text[n:]
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

// Lock returns the state of the first lock for which meant returns true, or nil.
func (l *Locks) Lock(meant func(*Entry) bool) *Lock {
	for i := range l.Entries {
		if e := &l.Entries[i]; meant(e) {
			return &Lock{Seen: l.Seen, Name: e.Name, Kind: e.Kind, Mode: e.Mode, Ages: e.Ages, Age: e.Age, TTL: e.TTL, Lease: e.TTL,
				Holders: e.Holders, Waiting: int(e.Queue), Listening: e.Waiting, Uncounted: l.Uncounted}
		}
	}
	return nil
}

// settles is the longest first scan after which new viewers wait for a second one, which may find dead waiters and
// circles.
const settles = 2 * time.Second

// memory is the state that one scan passes on to the next.
type memory struct {
	seen *seen
	// began and at are when the last scan of this run began and ended, or zero if it failed.
	began, at time.Time
	turn      int // next waiter for findDead
	circles   inspect.Confirmation
	untaken   map[string]string // first waiter of each free lock
}

type seen struct {
	ages     ages
	presence presence
	history  history
}

func (b *Board) scanAgain(ctx context.Context, numbers bool, m *memory, last *Locks, publish func(*Locks) bool) {
	if last == nil {
		*m, last = memory{seen: m.seen}, &Locks{}
	}
	m.began, m.at = time.Time{}, time.Time{}
	for first := true; ; first = false {
		began := time.Now()
		last = b.scanOnce(ctx, numbers, m, last)
		if first && last.pending && time.Since(began) < settles {
			if inspect.Pause(ctx, max(absentFor, time.Since(began))) != nil {
				return
			}
			began = time.Now()
			last = b.scanOnce(ctx, numbers, m, last)
		}
		took := time.Since(began)
		pause := max(b.every, pauseAfter(took, last.Err))
		last.expect(pause, took)
		if !publish(last) || inspect.Pause(ctx, pause) != nil {
			return
		}
	}
}

func pauseAfter(took time.Duration, err error) time.Duration {
	if pause := inspect.PauseFactor * took; err == nil || pause < lookEvery {
		return pause
	}
	return lookEvery
}

func (b *Board) scanOnce(ctx context.Context, numbers bool, m *memory, last *Locks) *Locks {
	began := time.Now()
	found := &Locks{}
	order := b.order()
	unread, err := b.source.scan(ctx, inspect.Request{
		Pattern: b.pattern, Permits: true, Numbers: numbers, Places: placesOfQueue,
		Found: func(lock *inspect.Lock) error {
			e := entryOf(lock)
			if lock.Number == nil {
				m.date(&e)
			}
			found.add(e, order)
			return nil
		},
	})
	if err != nil {
		failed := *last
		failed.Err, failed.pending = b.source.Problem(err), false
		m.began, m.at = time.Time{}, time.Time{}
		return &failed
	}
	if unread.Uncounted != nil {
		found.Uncounted = inspect.NotCounted(unread.Uncounted)
		for i := range found.Entries {
			found.Entries[i].Uncounted = found.Entries[i].Queue == 0
		}
	}
	if !numbers {
		m.seen.ages.ended(began, m.began, found.CountsChanges() && unread.Away == nil, func(lock, group uint64, c changes) {
			m.seen.history.changed(lock, group, began, c)
		})
	}
	found.passing(m)
	found.sort()
	most := fronts
	if b.source.cluster {
		most = nodeFronts
	}
	found.findDead(m, most, b.counter(ctx))
	found.findCircles(m, b.circlesAgain(ctx))
	found.cut(order)
	found.sort()
	for i := range found.Entries {
		if found.Entries[i].Trouble != "" {
			found.Troubled++
		}
	}
	found.Clients = clientsOf(found.Entries, found.Circles, m.isDead)
	m.seen.presence.forget(began.Add(-remembers))
	found.At, found.Took, found.Unread = time.Now(), time.Since(began), unread
	if !numbers {
		m.seen.history.scanned(found, m.at)
	}
	m.began, m.at = began, found.At
	return found
}

func (m *memory) date(e *Entry) {
	var c changes
	e.Ages, c = m.seen.ages.sees(e.Name, &look{
		at: e.At, holders: e.Holders, more: e.More, shared: e.Kind == inspect.ReadWrite, ttl: e.TTL, token: e.Token, last: m.began,
	})
	e.Age = oldest(e.Ages)
	m.seen.history.changed(hash(e.Name), hash(Group(e.Name)), e.At, c)
}

// passing clears the trouble Untaken unless the same waiter was first in the previous scan.
func (l *Locks) passing(m *memory) {
	before := m.untaken
	m.untaken = map[string]string{}
	for i := range l.Entries {
		e := &l.Entries[i]
		if e.Trouble != Untaken {
			continue
		}
		if m.untaken[e.Name] = e.Next; before[e.Name] != e.Next {
			e.Trouble, l.pending = "", true
		}
	}
}

func oldest(all []Age) (first Age) {
	for _, a := range all {
		if first.Since.IsZero() || a.Since.Before(first.Since) {
			first = a
		}
	}
	return first
}
