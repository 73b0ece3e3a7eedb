package board

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// Lock is one lock as it was at one moment.
type Lock struct {
	// Seen has in Err also that the name is not a lock's.
	Seen
	// Name is the lock's name.
	Name string
	// Kind is what it looks like, Mode what a read/write lock is held for.
	Kind inspect.Kind
	Mode string
	// Holders are all holders, none when it is free; of a semaphore the permits that are taken, as far
	// as they can be read.
	Holders []inspect.Holder
	// Ages are since when each of the holders has it, and Age is the oldest of these.
	Ages []Age
	Age
	// TTL is what the lease has left, negative when it has none; Lease is the most that was
	// left while these holders had it.
	TTL, Lease time.Duration
	// Renewed is inspect.RenewedYes, RenewedNo or RenewedUnknown; "" without a lease.
	Renewed string
	// Queue are the first waiters, the next one first; Waiting is how many there are.
	// QueueUnread is why the queue was not read, "" when it was.
	Queue       []Waiter
	Waiting     int
	QueueUnread string
	// Uncounted is why subscribers cannot be counted, "" when they can.
	Uncounted string
	// Listening is how many connections listen for the release of a lock that is held, without a
	// queue. It hints at how many clients wait: one connection serves all waiters of a client, and
	// may listen for longer than they wait.
	Listening int64
	// Circles are the circles of waits that the lock is in, as scans have found them, the sure ones
	// first. Ahead are waits of its holders for other locks, which are in no circle with this one.
	Circles []Circle
	Ahead   []Step
	// Number describes a name that holds a number, nil for a lock.
	Number *inspect.Number
	// Token is the last fencing token, 0 for none.
	Token int64
	// PlainWaiters and ReadWriteWaiters are as in inspect.Lock.
	PlainWaiters, ReadWriteWaiters int64
	// Events are the last events, the newest first.
	Events []Event
}

// Waiter is a place in the queue.
type Waiter struct {
	// Position is the place, 1 for the next one.
	Position int
	// Owner is the owner as it stands in Redis.
	Owner string
	inspect.Client
	// Label is that of the owner's client, empty when it has none.
	Label string
	// Deadline is as in admin.Waiter.
	Deadline time.Time
	// State is Alive, Dead or Unknown.
	State string
}

// Event is something that happened to the lock.
type Event struct {
	follow.Event
	// Label is that of the owner's client.
	Label string
}

// Held reports whether it was held.
func (l *Lock) Held() bool { return len(l.Holders) > 0 }

// Idle reports whether there is no lock, and nothing else to show, as far as is known.
func (l *Lock) Idle() bool { return !l.Held() && l.Waiting == 0 && l.Number == nil }

// mayBeInCircle reports whether the lock is held and clients are queued for it.
func (l *Lock) mayBeInCircle() bool {
	return l.Held() && len(l.Queue) > 0 && l.Kind != inspect.ReadWrite
}

// hasHoldersOf reports whether the lock is held by the same owners as it was before.
func (l *Lock) hasHoldersOf(before *Lock) bool {
	return l.Held() && slices.EqualFunc(l.Holders, before.Holders, func(a, b inspect.Holder) bool { return a.Owner == b.Owner })
}

func (l *Lock) has(s Step) bool {
	return s.Lock == l.Name &&
		slices.ContainsFunc(l.Queue, func(q Waiter) bool { return q.Owner == s.Waiter && q.State != Dead }) &&
		slices.ContainsFunc(l.Holders, func(h inspect.Holder) bool { return h.Owner == s.Holder })
}
