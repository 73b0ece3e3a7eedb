package board

import (
	"time"

	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/rsemaphore"
)

const (
	// lookEvery is the most time between two looks at a lock, and leastBetween the least,
	// however many messages there are.
	lookEvery, leastBetween = time.Second, 250 * time.Millisecond
	// shownEvents is how many events are kept.
	shownEvents = 50
	// scanWait bounds the wait for the circles of waits that a lock may be in.
	scanWait = 4 * time.Second
)

// Lock is one lock as it was at one moment. A look that failed has Err, and else what the look
// before has found.
type Lock struct {
	// Name is the lock's name.
	Name string
	// At is when it was seen, zero before.
	At time.Time
	// Err is why the last look failed: also that the name is no lock's.
	Err error
	// Kind is what it looks like, Mode what a read/write lock is held for.
	Kind listing.Kind
	Mode string
	// Holders are all holders, none when it is free.
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
	// Number is what there is to tell of a name that holds a number, nil for a lock; Permits are
	// those of a semaphore that are taken, as far as they can be read.
	Number  *listing.Number
	Permits []rsemaphore.Permit
	// Token is the last fencing token, 0 for none.
	Token int64
	// PlainWaiters and ReadWriteWaiters are as in listing.Lock.
	PlainWaiters, ReadWriteWaiters int64
	// Events are the last events, the newest first.
	Events []Event
	// Next is when it should have been seen again at the latest.
	Next time.Time
}

// Old reports whether the lock may have changed long since: the last look has failed, or the next
// one has not ended when it should have.
func (l *Lock) Old(now time.Time) bool { return !l.At.IsZero() && (l.Err != nil || now.After(l.Next)) }

// Idle reports whether there is no lock, and nothing else to show, as far as is known.
func (l *Lock) Idle() bool { return !l.Held() && l.Waiting == 0 && l.Number == nil }

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
