package board

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/listing"
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

// troubles are in order of severity.
var troubles = []string{InCircle, DeadFront, TwoKinds, NoLease, Untaken}

// Entry is a lock as a scan has found it.
type Entry struct {
	*listing.Lock
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
	Unread listing.Unread
	// Uncounted is why subscribers cannot be counted, "" when they can: then it is not known how
	// many wait for locks without queues, and which waiters are dead.
	Uncounted string
	// pending is whether the next scan will tell more of a trouble.
	pending bool
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
