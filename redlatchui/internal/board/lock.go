package board

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// Lock is the state of one lock. Err may also report that the name is not that of a lock.
type Lock struct {
	Seen
	Name string
	Kind inspect.Kind
	Mode string // of a read/write lock
	// Holders are all holders, or the permits of a semaphore that are taken and readable.
	Holders []inspect.Holder
	// Ages are the ages of the holders, Age the oldest of them.
	Ages []Age
	Age
	// TTL is the remaining lease, negative for none. Lease is the largest one seen for these holders.
	TTL, Lease time.Duration
	// Renewed is inspect.RenewedYes, RenewedNo or RenewedUnknown, "" without a lease.
	Renewed string
	// Queue has the first of Waiting waiters. QueueUnread is why the queue was not read.
	Queue       []Waiter
	Waiting     int
	QueueUnread string
	// Uncounted is why subscribers cannot be counted.
	Uncounted string
	// Listening is the number of connections that listen for the release of a lock without a queue. It is
	// a hint only: all waiters of a client share a connection, which may listen longer than they wait.
	Listening int64
	// Circles are the circles of waits around the lock, the sure ones first. If there are none, Ahead
	// has the waits of its holders for other locks.
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

// Waiter is a place in the queue, from 1. State is Alive, Dead or Unknown.
type Waiter struct {
	Position int
	Owner    string // as in Redis
	inspect.Client
	Label    string
	Deadline time.Time
	State    string
}

// Event is an event with the label of the owner's client.
type Event struct {
	follow.Event
	Label string
}

// Held reports whether the lock was held.
func (l *Lock) Held() bool { return len(l.Holders) > 0 }

// Idle reports whether nothing has this name, as far as is known.
func (l *Lock) Idle() bool { return !l.Held() && l.Waiting == 0 && l.Number == nil }

func (l *Lock) mayBeInCircle() bool {
	return l.Held() && len(l.Queue) > 0 && l.Kind != inspect.ReadWrite
}

func (l *Lock) hasHoldersOf(before *Lock) bool {
	return l.Held() && slices.EqualFunc(l.Holders, before.Holders, func(a, b inspect.Holder) bool { return a.Owner == b.Owner })
}

func (l *Lock) has(s Step) bool {
	return s.Lock == l.Name &&
		slices.ContainsFunc(l.Queue, func(q Waiter) bool { return q.Owner == s.Waiter && q.State != Dead }) &&
		slices.ContainsFunc(l.Holders, func(h inspect.Holder) bool { return h.Owner == s.Holder })
}
