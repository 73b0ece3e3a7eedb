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

// kept is how many locks of a scan are kept, those with most trouble.
const kept = 20_000

// The troubles of a lock, the worst first.
const (
	InCircle  = "in a circle of waits"
	DeadFront = "dead waiter in front"
	TwoKinds  = "two kinds of lock under one name"
	NoLease   = "held without a lease"
	Untaken   = "free with a queue"
)

var troubles = []string{InCircle, DeadFront, TwoKinds, NoLease, Untaken}

// Entry is a lock as a scan has found it.
type Entry struct {
	*inspect.Lock
	// Ages are since when each of the holders has it, and Age is the oldest of these, the zero Age
	// for a lock that is free.
	Ages []Age
	Age
	// Trouble is the worst of the troubles, "" when there is none.
	Trouble string
	// Uncounted is true when it has no queue and it is not known how many wait.
	Uncounted bool
}

// Waiters is how many wait: the length of the queue, or for a lock without one, or a number, how
// many connections do.
func (e *Entry) Waiters() int64 {
	switch {
	case e.Number != nil:
		return e.Number.Waiters()
	case e.Queue == 0:
		return e.Waiting
	}
	return e.Queue
}

// Locks are the locks as one scan has found them.
type Locks struct {
	Seen

	// Entries are the locks, those with most trouble first, and Total is how many there are:
	// more than Entries when there are very many.
	Entries []Entry
	Total   int
	// Clients are the clients that hold or wait for the entries, by their IDs, and Circles the
	// circles in which they wait for each other, the sure ones first.
	Clients []Client
	Circles []Circle
	// Unread is how many hashes the user may not read.
	Unread inspect.Unread
	// Uncounted is why subscribers cannot be counted, "" when they can: then it is not known how
	// many wait for locks without queues, and which waiters are dead.
	Uncounted string
	// pending is whether the next scan will tell more of a trouble.
	pending bool
}

func (l *Locks) add(lock *inspect.Lock) error {
	l.Total++
	l.Entries = append(l.Entries, Entry{Lock: lock, Trouble: troubleOf(lock)})
	if len(l.Entries) >= 2*kept {
		l.sort()
		l.Entries = slices.Clone(l.Entries[:kept])
	}
	return nil
}

// troubleOf returns the worst trouble that one look shows.
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

// sort brings the locks with most trouble to the front: then the longest queues, then those
// that were held the longest.
func (l *Locks) sort() { slices.SortFunc(l.Entries, ByTrouble) }

// ByTrouble compares two locks: the one with more trouble comes first.
func ByTrouble(a, b Entry) int {
	return cmp.Or(cmp.Compare(severity(b.Trouble), severity(a.Trouble)), cmp.Compare(b.Waiters(), a.Waiters()), ByAge(a, b))
}

// ByAge compares two locks: the one that was seen held for longer comes first, one that is free last.
func ByAge(a, b Entry) int {
	return cmp.Or(btoi(a.Since.IsZero())-btoi(b.Since.IsZero()), a.Since.Compare(b.Since), strings.Compare(a.Name, b.Name))
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

// settles is how long the first scan for viewers may take, for a second one to be made before they
// see it: which waiters are dead, and which circles stay, is known from two.
const settles = 2 * time.Second

// memory is what scans leave for the next, also for some minutes after the last viewer.
type memory struct {
	seen *seen
	// turn says which waiters are counted next.
	turn int
	// circles are those of the last scan, by their keys, and untaken the first waiters for locks
	// that were free then.
	circles map[string]bool
	untaken map[string]string
}

// seen is what scans and looks at one lock have seen, for each other.
type seen struct {
	ages     ages
	presence presence
}

// scanAgain is the feed of all locks, or of all numbers.
func (b *Board) scanAgain(ctx context.Context, numbers bool, m *memory, last *Locks, publish func(*Locks) bool) {
	if last == nil {
		*m, last = memory{seen: m.seen}, &Locks{}
	}
	for first := true; ; first = false {
		began := time.Now()
		last = b.scanOnce(ctx, numbers, m, last)
		if first && last.pending && time.Since(began) < settles {
			if inspect.Pause(ctx, max(absentFor, time.Since(began))) != nil { // once: viewers wait
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

// pauseAfter returns the pause after a look that took so long. One that failed has mostly waited, and
// what is old should be seen anew soon.
func pauseAfter(took time.Duration, err error) time.Duration {
	if pause := inspect.PauseFactor * took; err == nil || pause < lookEvery {
		return pause
	}
	return lookEvery
}

func (b *Board) scanOnce(ctx context.Context, numbers bool, m *memory, last *Locks) *Locks {
	began := time.Now()
	found := &Locks{}
	unread, err := b.source.scan(ctx, inspect.Request{
		Pattern: b.pattern, Permits: true, Numbers: numbers, Places: placesOfQueue, Waiting: true, Found: found.add,
	})
	if err != nil {
		failed := *last
		failed.Err, failed.pending = b.source.Problem(err), false
		return &failed
	}
	if unread.Uncounted != nil {
		found.Uncounted = inspect.NotCounted(unread.Uncounted)
		for i := range found.Entries {
			found.Entries[i].Uncounted = found.Entries[i].Queue == 0
		}
	}
	if !numbers {
		found.date(m)
		m.seen.ages.ended(began, found.Total == len(found.Entries))
	}
	found.passing(m)
	found.sort()
	most := fronts
	if b.source.cluster {
		most = nodeFronts
	}
	found.findDead(m, most, b.counter(ctx))
	found.findCircles(m, b.counter(ctx))
	found.Entries = found.Entries[:min(len(found.Entries), kept)]
	found.Clients = clientsOf(found.Entries, found.Circles, m.isDead)
	m.seen.presence.forget(began.Add(-remembers))
	found.At, found.Took, found.Unread = time.Now(), time.Since(began), unread
	return found
}

func (l *Locks) date(m *memory) {
	for i := range l.Entries {
		e := &l.Entries[i]
		if e.Number != nil {
			continue
		}
		e.Ages = m.seen.ages.sees(e.Name, &look{
			at: e.At, holders: e.Holders, more: e.More, shared: e.Kind == inspect.ReadWrite, ttl: e.TTL, token: e.Token,
		})
		e.Age = oldest(e.Ages)
	}
}

// passing leaves out that a lock is free with a queue when the last scan has not found it so, with
// the same waiter in front: it may be on its way to that one.
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

// oldest returns the age of the hold that is known to last for longest.
func oldest(all []Age) (first Age) {
	for _, a := range all {
		if first.Since.IsZero() || a.Since.Before(first.Since) {
			first = a
		}
	}
	return first
}
