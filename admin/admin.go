// Package admin inspects locks and repairs queues. It is for operators and their tools, such as the
// redlatch command.
//
// All functions take a lock of any kind of this module, such as one of rlock.New or rfairlock.New, or
// a role of rreadwritelock.New, and are safe for concurrent use. Their results may be outdated when
// they return: they are for people and logs, not for decisions about who may write.
//
// A waiter of a fair lock is
//
//	alive    if a connection is subscribed to its channel, on the master or on a replica
//	dead     if there is none; briefly also a live waiter that has just queued or reconnects
//	unknown  if subscribers could not be counted
//	gone     if it acquired the lock, gave up or was evicted: Inspect no longer shows it
//
// [Evict] rejects a waiter that is alive or unknown unless forced.
package admin

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/fairqueue"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Errors of this package, wrapped in a [*redlatch.LockError].
var (
	// ErrNotQueued means that the owner is not in the queue: it never queued, gave up, or acquired
	// the lock.
	ErrNotQueued = engine.ErrNotQueued

	// ErrWaiterAlive means that a waiter was not evicted because a connection is subscribed to its
	// channel.
	ErrWaiterAlive = engine.ErrWaiterAlive

	// ErrNotCounted means that subscribers cannot be counted on the master and all of its replicas,
	// so that it is unknown which waiters are alive. It is joined with the reason.
	ErrNotCounted = engine.ErrNotCounted
)

// Lock is a lock of any kind of this module, such as a *rlock.Lock. Other types cannot implement it.
type Lock interface{ lock }

type lock = hold.AnyLock

// wrap adds the operation and the lock to a non-nil error.
func wrap(l *hold.Lock, op, owner string, err error) error {
	if err == nil {
		return nil
	}
	return &redlatch.LockError{Op: op, Name: l.Name, Owner: ownerOf(owner), Err: err}
}

// ownerOf parses an owner, also one with the suffix of a writer. It returns the zero Owner for other text.
func ownerOf(text string) redlatch.Owner {
	text, _ = protocol.WriterOf(text)
	owner, err := codec.ParseOwner(text)
	if err != nil {
		return redlatch.Owner{}
	}
	return owner
}

// Inspection is the state of a lock on the server at one moment.
type Inspection struct {
	// Name is the lock's name, and Kind the kind of the inspected Lock, such as "plain" or "fair"; for
	// a read/write lock the role, "read" or "write".
	Name, Kind string
	// OtherKind is not empty if the key holds a lock of another kind, because two programs use one
	// name for two locks, which in Redisson do not exclude each other: "read-write" if the hash has a
	// mode, "plain" if a read/write lock has none, "unknown" if no lock has such a mode.
	OtherKind string
	// Mode is the mode of a read/write lock, "read" or "write". It is empty if the lock is free, and
	// for other locks.
	Mode string
	// Holders are the holders, in no order: all readers of a read/write lock and its writer. Other
	// kinds have one at most, unless the key holds another kind of lock.
	Holders []Holder
	// TTL is the rest of the lease: 0 if the lock is free, redlatch.NoTTL, which is negative, if the
	// key never expires.
	TTL time.Duration
	// Queue is the queue of a fair lock, next waiter first, or the requested part of it. Plain locks
	// have no queue on the server.
	Queue []Waiter
	// Waiting is the length of the whole queue of a fair lock.
	Waiting int
}

// Holder is an owner that holds a lock.
type Holder struct {
	// Owner is the parsed owner, the zero Owner if Text is malformed.
	Owner redlatch.Owner
	// Text is the owner as stored in Redis. A writer's ends in ":write".
	Text string
	// Role is "read" or "write" for a read/write lock. An owner that writes and reads appears twice.
	// It is empty for other locks.
	Role string
	// Left is the rest of a reader's longest lease, 0 if that has expired: the reader may still read
	// while others do, but no longer keeps writers out. It is 0 for other holders, which have the TTL
	// of the lock.
	Left time.Duration
	// Count is how often the owner has entered, 0 if CountText is not a number.
	Count int64
	// CountText is the count as stored in Redis. Locks of other kinds have other fields.
	CountText string
}

// Waiter is a place in the queue of a fair lock.
type Waiter struct {
	// Owner is the parsed owner, the zero Owner if Text is malformed.
	Owner redlatch.Owner
	// Text is the owner as stored in Redis.
	Text string
	// Position is the place in the queue, from 1.
	Position int
	// Deadline is when the waiter, once it is first, counts as dead by the clock of a client that
	// asks; the zero time if it has no deadline, as happens after failures.
	Deadline time.Time
	// Subscribed is true if a connection is subscribed to the waiter's channel: see the package
	// comment.
	Subscribed bool
	// Counted is false if the subscribers are not known: counting needs the right to PUBSUB NUMSUB,
	// and an inspection counts only for the first 64 waiters.
	Counted bool
}

// Inspect returns the lock's holders, their counts and leases, and the waiters of a fair lock, all
// at one moment on the master. It sends one read-only EVALSHA.
//
// The script blocks the server for microseconds, or one to four milliseconds for each thousand
// places in the queue: for long queues use [InspectPart]. Half a million places do not fit into one
// reply.
//
// Errors: ErrNotSent, ErrUncertain, ErrClosed, ErrWrongType and ErrInvalid of package redlatch, or a
// *transport.ServerError.
func Inspect(ctx context.Context, of Lock) (*Inspection, error) {
	return inspect(ctx, hold.Of(of), 0, -1)
}

// InspectPart is like [Inspect] for n places of a fair lock's queue from first, where 1 is the next
// waiter; lower numbers count as 1. Its cost depends on n, not on the length of the queue. Successive
// parts are from different moments, and waiters advance between them. If the user lacks the right to
// ZSCORE, the deadline of a waiter is the zero time if it is more than 5,000 places away from the
// waiter.
func InspectPart(ctx context.Context, of Lock, first, n int) (*Inspection, error) {
	from := int64(min(max(first, 1), maxPlace)) - 1
	return inspect(ctx, hold.Of(of), from, from+int64(min(max(n, 1), maxPlace))-1)
}

// maxPlace exceeds the length of any queue.
const maxPlace = math.MaxInt32

var errNotInspectable = fmt.Errorf("%w: a semaphore has an Inspect of its own", redlatch.ErrInvalid)

// inspect inspects the places from first to last, from 0. A last of -1 means all.
func inspect(ctx context.Context, l *hold.Lock, first, last int64) (*Inspection, error) {
	kind := l.Owning
	if kind == nil {
		return nil, wrap(l, "inspect", "", errNotInspectable)
	}
	answer, err := l.Ask(ctx, func(c *transport.Call) { kind.Inspect(c, first, last) })
	var seen reply.Inspection
	if err == nil {
		seen, err = kind.Inspected(answer)
	}
	if err != nil {
		return nil, wrap(l, "inspect", "", err)
	}
	in := &Inspection{Name: l.Name, Kind: l.Kind.Name(), TTL: seen.Left, Waiting: int(seen.Waiting)}
	roles := l.HasRoles()
	for _, f := range seen.Held {
		h := Holder{Owner: ownerOf(f.Owner), Text: f.Owner, Count: f.Count, CountText: f.Text}
		if roles && seen.Mode != "" {
			h.Role, h.Left = roleOf(f.Owner), f.Left
		}
		in.Holders = append(in.Holders, h)
	}
	in.Mode, in.OtherKind = seen.Mode, otherKind(&seen, roles)
	for i, q := range seen.Queue {
		in.Queue = append(in.Queue, Waiter{
			Owner: ownerOf(q.Owner), Text: q.Owner, Position: int(first) + i + 1, Deadline: q.Deadline,
			Subscribed: q.Listeners > 0, Counted: q.Listeners >= 0,
		})
	}
	if seen.Left == reply.NoKey {
		in.TTL = 0
	}
	return in, nil
}

// otherKind returns the value of Inspection.OtherKind. roles is true for read/write locks.
func otherKind(seen *reply.Inspection, roles bool) string {
	mode, hasMode := seen.Mode, seen.Mode != ""
	for _, f := range seen.Held {
		if f.Owner == protocol.ModeField && !hasMode {
			mode, hasMode = f.Text, true
		}
	}
	switch {
	case hasMode && mode != protocol.ModeRead && mode != protocol.ModeWrite:
		return "unknown"
	case hasMode && !roles:
		return "read-write"
	case !hasMode && roles && len(seen.Held) > 0:
		return "plain"
	}
	return ""
}

// roleOf returns the role of an owner in the hash of a read/write lock.
func roleOf(text string) string {
	if _, writes := protocol.WriterOf(text); writes {
		return protocol.ModeWrite
	}
	return protocol.ModeRead
}

// Eviction is the result of [Evict].
type Eviction struct {
	// Waiter is the evicted waiter, as it was just before.
	Waiter
	// Next is the owner of the next waiter as stored in Redis, empty if there is none.
	Next string
	// Woken is true if the lock was free, so that Next was woken.
	Woken bool
}

// Evict removes a dead waiter from the queue of a fair lock, so that the waiters behind it need not
// wait for its deadline. owner is its Text from [Inspect]. If the lock is free, the first waiter is
// woken. Clients of this library that wait for the lock evict dead waiters automatically, see
// redlatch.WithDeadWaiterGrace; Redisson never does.
//
// A waiter without a subscribed connection may be live but just queued or reconnecting: check
// repeatedly, as redlatch status does. A live waiter that was evicted queues again at the end and
// loses its place, never the lock.
//
// The first waiter is removed only if its deadline has not changed since it was inspected. The excess
// of its deadline is subtracted from all others, except as far as one of them would then count as
// dead. Any other waiter is removed as if it had given up: the deadlines behind it advance by the
// difference to the deadline before it or to now, at most by the client's fair wait timeout.
//
// Errors: [ErrWaiterAlive]; [ErrNotCounted]; [ErrNotQueued]; [redlatch.ErrInvalid] if the lock is not
// fair; of package redlatch ErrUncertain if the reply was lost (Evict may be retried), ErrNotSent,
// ErrClosed, ErrWrongType and ErrInvalid; or a *transport.ServerError. Evict sends an EVALSHA to look,
// one per 200 places of a long queue, SUBSCRIBE and UNSUBSCRIBE, a PUBSUB to the master and to each
// replica, at most once in ten seconds ROLE, an EVALSHA to evict, and one to look at the result.
func Evict(ctx context.Context, of Lock, owner string, force bool) (*Eviction, error) {
	l := hold.Of(of)
	evicted, err := evict(ctx, l, owner, force)
	return evicted, wrap(l, "evict", owner, err)
}

var errNoQueue = fmt.Errorf("%w: a lock of this kind has no queue on the server", redlatch.ErrInvalid)

func evict(ctx context.Context, l *hold.Lock, owner string, force bool) (*Eviction, error) {
	engine.NeedContext(ctx)
	if err := l.Check(ctx); err != nil {
		return nil, err
	}
	kind, queues := l.Kind.(fairqueue.Inspected)
	if !queues {
		return nil, errNoQueue
	}
	e := fairqueue.Eviction{Queues: fairqueue.Of(l.Engine), Kind: kind, Ask: l.Ask, Owner: owner, Force: force}
	out, err := e.Run(ctx)
	if err != nil {
		return nil, err
	}
	return &Eviction{
		Waiter: Waiter{
			Owner: ownerOf(owner), Text: owner, Position: out.Index + 1, Deadline: out.Was.Deadline,
			Subscribed: out.Listeners > 0, Counted: out.Listeners >= 0,
		},
		Next: out.Next, Woken: out.Woken,
	}, nil
}
