// Package admin looks at locks and repairs queues. It is for operators and their tools: the
// redlatch command is made of it. A program that locks needs none of it.
//
// All functions take a lock of any kind of this module, such as one of rlock.New, rfairlock.New
// or rfencedlock.New, or a role of rreadwritelock.New, and are safe for concurrent use. What they return has changed, perhaps,
// by the time it is read: it is for people and logs, not for decisions about who may write.
//
// # A waiter of a fair lock
//
//	alive    a connection is subscribed to its channel, on the master or on a replica
//	dead     there is none; a live one has none for a moment after it has queued and
//	         while it reconnects
//	unknown  subscribers could not be counted
//	gone     it got the lock, gave up, or was evicted: Inspect shows it no more
//
// [Evict] refuses a waiter that is alive or unknown; [ForceEvict] does not.
package admin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/fairqueue"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Why a function of this package did not do what it was asked for. All come in a
// [*redlatch.LockError].
var (
	// ErrNotQueued says that the owner has no place in the queue: it never had one,
	// it gave up, or it got the lock.
	ErrNotQueued = engine.ErrNotQueued

	// ErrWaiterAlive says that a waiter was not taken out of the queue, because a
	// connection is subscribed to its channel.
	ErrWaiterAlive = engine.ErrWaiterAlive

	// ErrNotCounted says that subscribers cannot be counted on the master and on all
	// of its replicas, and so not which waiters are alive. It is joined with the
	// reason.
	ErrNotCounted = engine.ErrNotCounted
)

// Lock is a lock of any kind of this module, such as a *rlock.Lock or a *rfencedlock.Lock. No
// other type is one.
type Lock interface{ lock }

type lock interface{ Internal() *hold.Lock }

// wrap makes an error say what was done to which lock. Nil stays nil.
func wrap(l *hold.Lock, op, owner string, err error) error {
	if err == nil {
		return nil
	}
	return &redlatch.LockError{Op: op, Name: l.Name, Owner: ownerOf(owner), Err: err}
}

// ownerOf returns the zero Owner for a text of another shape. A writer's is that of the owner.
func ownerOf(text string) redlatch.Owner {
	text, _ = codec.WriterOf(text)
	owner, err := codec.ParseOwner(text)
	if err != nil {
		return redlatch.Owner{}
	}
	return owner
}

// Inspection is a lock as the server had it at one moment.
type Inspection struct {
	// Name is the lock's name, Kind what kind of lock was asked about, such as "plain" or
	// "fair". That of a read/write lock is "read" or "write", by the role.
	Name, Kind string
	// OtherKind says that the key holds a lock of another kind than was asked about:
	// "read-write", for a lock of which the hash has a mode, or "plain", for a read/write
	// lock of which it has none. Two programs use one name for two locks then. Redisson's
	// do not exclude each other. It is "unknown" for a hash with a mode that no lock has:
	// another program's, or damaged. It is empty when the kind is right, as far as the
	// hash tells.
	OtherKind string
	// Mode is that of a read/write lock: "read" or "write". Empty for other locks, and
	// when it is free.
	Mode string
	// Holders are the lock's holders: none when it is free; all readers of a read/write
	// lock, and its writer, in no order; of other kinds one, unless the key is that of
	// another kind of lock.
	Holders []Holder
	// TTL is how long the lease has left: 0 when the lock is free, redlatch.NoTTL,
	// which is negative, when the key never expires.
	TTL time.Duration
	// Queue is the queue of a fair lock, the next waiter first, or the part of it
	// that was asked for. A plain lock has no queue on the server.
	Queue []Waiter
	// Waiting is how many wait for a fair lock, whatever part of them Queue is.
	Waiting int
}

// Holder is one owner that holds a lock.
type Holder struct {
	// Owner is the owner, the zero Owner when Text is not of that form.
	Owner redlatch.Owner
	// Text is the owner as it stands in Redis. That of a writer ends in ":write".
	Text string
	// Role is that of an owner of a read/write lock, "read" or "write". An owner that
	// writes and reads is there twice. Empty for other locks.
	Role string
	// Left is what the longest hold of a reader has left by itself, 0 when that is over:
	// it may read still, for as long as the lock is read by others, and nothing keeps a
	// writer out for it. Of the others it is 0: they have the TTL of the lock.
	Left time.Duration
	// Count is how often the owner has entered, 0 when CountText is no number.
	Count int64
	// CountText is the count as it stands in Redis, whatever it is: other kinds of
	// locks have other fields.
	CountText string
}

// Waiter is a place in the queue of a fair lock.
type Waiter struct {
	// Owner is the owner, the zero Owner when Text is not of that form.
	Owner redlatch.Owner
	// Text is the owner as it stands in Redis.
	Text string
	// Position is the place in the queue, 1 for the next one.
	Position int
	// Deadline is when the waiter counts as dead, by the clock of the client that
	// asks, once it is the first; the zero time when it has no deadline, as happens
	// after failures.
	Deadline time.Time
	// Subscribed is true when a connection is subscribed to the waiter's channel: a live
	// waiter has one, except for a moment after it has queued and while it reconnects.
	Subscribed bool
	// Counted is false when it is not known whether one is: that needs the right to
	// PUBSUB NUMSUB, and of an inspection only the first 64 waiters are looked at.
	Counted bool
}

// Inspect returns the lock's holders, how often and for how long they hold it, and,
// for a fair lock, its waiters, all of one moment, asked of the master. It sends one
// EVALSHA, which changes nothing.
//
// The server serves no other client meanwhile. That takes microseconds, but a
// thousand places of a long queue take one to four milliseconds: where thousands
// wait, [InspectPart] looks at fewer. Half a million places are too many for one reply.
//
// Errors: ErrNotSent, ErrUncertain, ErrClosed, ErrWrongType and ErrInvalid of package
// redlatch, or a *transport.ServerError.
func Inspect(ctx context.Context, of Lock) (*Inspection, error) {
	return inspect(ctx, of.Internal(), 0, -1)
}

// InspectPart is [Inspect] with a part of a fair lock's queue: n places from first on, 1
// being the next one. It costs the server by the part's length and not by the queue's, so
// that it can look at a long queue often. Parts that are asked for one after the other are
// of moments of their own: places come forward between them. Numbers below 1 count as 1. To
// a user without the right to ZSCORE, a deadline that is more than 5,000 places away from
// its waiter's is the zero time.
func InspectPart(ctx context.Context, of Lock, first, n int) (*Inspection, error) {
	from := int64(min(max(first, 1), maxPlace)) - 1
	return inspect(ctx, of.Internal(), from, from+int64(min(max(n, 1), maxPlace))-1)
}

// maxPlace is more than a queue can have.
const maxPlace = math.MaxInt32

var errNotInspectable = errors.New("a lock of this kind cannot be inspected")

// inspect asks for the places from first to last, counted from 0; last is -1 for all.
func inspect(ctx context.Context, l *hold.Lock, first, last int64) (*Inspection, error) {
	kind, can := l.Kind.(hold.Inspectable)
	if !can {
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
	_, roles := l.Kind.(hold.Role)
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

// otherKind returns what the hash of a lock is instead, "" when it is what was asked about. A
// read/write lock has roles.
func otherKind(seen *reply.Inspection, roles bool) string {
	mode, hasMode := seen.Mode, seen.Mode != ""
	for _, f := range seen.Held {
		if f.Owner == codec.ModeField && !hasMode {
			mode, hasMode = f.Text, true
		}
	}
	switch {
	case hasMode && mode != codec.ModeRead && mode != codec.ModeWrite:
		return "unknown"
	case hasMode && !roles:
		return "read-write"
	case !hasMode && roles && len(seen.Held) > 0:
		return "plain"
	}
	return ""
}

// roleOf returns the role of an owner as it stands in the hash of a read/write lock.
func roleOf(text string) string {
	if _, writes := codec.WriterOf(text); writes {
		return codec.ModeWrite
	}
	return codec.ModeRead
}

// Eviction is what [Evict] has done.
type Eviction struct {
	// Waiter is the waiter that was taken out, as it was seen just before.
	Waiter
	// Next is the next waiter's owner, as it stands in Redis; empty when no
	// other was queued.
	Next string
	// Woken is true when the lock was free, so that Next was sent its wake-up.
	Woken bool
}

// Evict takes a waiter that is dead out of the queue of a fair lock, so that those
// behind it need not wait for its deadline. Owner is its text in Redis, as
// [Inspect] has it. If the lock is free, the first in the queue is woken.
// Clients of this library that wait for the lock do the same by themselves, after a
// grace; see redlatch.WithDeadWaiterGrace. Redisson has no counterpart.
//
// A waiter is taken for dead when no connection is subscribed to its channel, on
// the master or on a replica. That is so for a moment also after a live one has
// queued, and while it reconnects: look more than once, as redlatch status does.
// One that is taken out wrongly queues anew at the end: it loses its place, never
// the lock.
//
// The first in the queue goes if it still has the deadline that it was seen with,
// and what its deadline was later than it need be is taken off those of all others,
// but not so much that one of them would count as dead. Any other goes as if it had
// given up: the deadlines behind it come forward by what its own is later than that
// of the one before it, or than now, at most by the client's fair wait timeout.
//
// Errors: [ErrWaiterAlive]; [ErrNotCounted]; [ErrNotQueued]; [redlatch.ErrInvalid] for a
// lock that is not fair; of package redlatch ErrUncertain when the reply was lost (it may be called
// again), ErrNotSent, ErrClosed, ErrWrongType and ErrInvalid; or a *transport.ServerError.
// It sends an EVALSHA to look, or one for each 200 places of a long queue, what
// [Listeners] sends, an EVALSHA to evict, and one to look at what came of it.
func Evict(ctx context.Context, of Lock, owner string) (*Eviction, error) {
	return evict(ctx, of.Internal(), owner, false)
}

// ForceEvict is [Evict] also for a waiter to whose channel a connection is subscribed, or of
// which that cannot be found out: it does not return [ErrWaiterAlive] or [ErrNotCounted]. A
// live waiter queues anew, behind all others, with its next attempt.
func ForceEvict(ctx context.Context, of Lock, owner string) (*Eviction, error) {
	return evict(ctx, of.Internal(), owner, true)
}

// errNoQueue is the error for a lock of a kind that has no queue. Nothing was sent.
var errNoQueue = fmt.Errorf("%w: a lock of this kind has no queue on the server", redlatch.ErrInvalid)

func evict(ctx context.Context, l *hold.Lock, owner string, force bool) (*Eviction, error) {
	kind, queues := l.Kind.(fairqueue.Inspected)
	engine.NeedContext(ctx)
	if err := l.Check(ctx); err != nil {
		return nil, wrap(l, "evict", owner, err)
	}
	if !queues {
		return nil, wrap(l, "evict", owner, errNoQueue)
	}
	e := fairqueue.Eviction{Queues: fairqueue.Of(l.Engine), Kind: kind, Ask: l.Ask, Owner: owner, Force: force}
	out, err := e.Run(ctx)
	if err != nil {
		return nil, wrap(l, "evict", owner, err)
	}
	return &Eviction{
		Waiter: Waiter{
			Owner: ownerOf(owner), Text: owner, Position: out.Index + 1, Deadline: out.Was.Deadline,
			Subscribed: out.Listeners > 0, Counted: out.Listeners >= 0,
		},
		Next: out.Next, Woken: out.Woken,
	}, nil
}

// Listeners returns how many connections listen for each of owners, waiters of a
// fair lock by their texts in Redis: one number each, in their order. Waiters that
// live have one, but for a moment after they have queued and while they reconnect.
//
// It subscribes to a channel of its own meanwhile, to know that subscribers are
// counted. [ErrNotCounted] says that they cannot be counted on the master and on all
// of its replicas, together with why; [redlatch.ErrInvalid] that the lock is not fair. It sends
// SUBSCRIBE and UNSUBSCRIBE, one PUBSUB to the master and to each replica, and, at
// most once in ten seconds, ROLE.
func Listeners(ctx context.Context, of Lock, owners ...string) ([]int64, error) {
	engine.NeedContext(ctx)
	l := of.Internal()
	counts, err := listeners(ctx, l, owners)
	return counts, wrap(l, "listeners", "", err)
}

func listeners(ctx context.Context, l *hold.Lock, owners []string) ([]int64, error) {
	kind, queues := l.Kind.(fairqueue.Kind)
	err := l.Check(ctx)
	switch {
	case l.Err != nil:
		return nil, err
	case !queues:
		return nil, errNoQueue
	case err != nil || len(owners) == 0:
		return nil, err
	}
	return fairqueue.Of(l.Engine).Listeners(ctx, kind, owners...)
}
