// Package admin inspects locks and repairs the queues of fair locks, for operators and their tools.
//
//	state, err := admin.Inspect(ctx, orders)
//	if err != nil {
//		return err
//	}
//	for _, w := range state.Queue { // next first
//		fmt.Println(w.Position, w.Text, w.Deadline, w.Subscribed)
//	}
//
// The functions take a lock from package rlock, rfairlock or rfencedlock, or a role of a read/write lock, and are safe
// for concurrent use. A result is a consistent snapshot that may be outdated: do not use it to decide who may write.
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

// Errors that [Evict] returns, wrapped in a [*redlatch.LockError].
var (
	// ErrNotQueued means that the owner is not in the queue: it never joined the queue, has left it, or has
	// acquired the lock.
	ErrNotQueued = engine.ErrNotQueued

	// ErrWaiterAlive means that the waiter was not evicted because a connection is subscribed to its
	// channel.
	ErrWaiterAlive = engine.ErrWaiterAlive

	// ErrNotCounted means that it is unknown whether the waiter is alive, because subscribers could not be
	// counted on the master and all of its replicas. It is joined with the reason.
	ErrNotCounted = engine.ErrNotCounted
)

// Lock is a lock of this module, such as a *rlock.Lock. Other types cannot implement it.
type Lock interface{ lock }

type lock = hold.AnyLock

func wrap(l *hold.Lock, op, owner string, err error) error {
	if err == nil {
		return nil
	}
	return &redlatch.LockError{Op: op, Name: l.Name, Owner: ownerOf(owner), Err: err}
}

// ownerOf parses an owner, with or without a writer's suffix. It returns the zero Owner for other text.
func ownerOf(text string) codec.Owner {
	text, _ = protocol.WriterOf(text)
	owner, err := codec.ParseOwner(text)
	if err != nil {
		return codec.Owner{}
	}
	return owner
}

// Inspection is the state of a lock on the server at one moment.
type Inspection struct {
	// Name is the lock's name. Kind is "plain", "fair", "fenced" or "fair-fenced", or the role of a
	// read/write lock, "read" or "write".
	Name, Kind string
	// OtherKind is not empty if the key holds a lock of another kind: "read-write", "plain", or "unknown"
	// if it is not a Redisson lock.
	OtherKind string
	// Mode is the mode of a read/write lock, "read" or "write", and otherwise empty.
	Mode string
	// Holders are the holders, in no particular order. Only read/write locks have several.
	Holders []Holder
	// TTL is the remaining lease. It is 0 if the lock is free, and redlatch.NoTTL if it never expires.
	TTL time.Duration
	// Queue is the queue of a fair lock, or the requested part of it, with the next waiter first. Waiters of
	// other kinds are not stored on the server.
	Queue []Waiter
	// Waiting is the length of the whole queue.
	Waiting int
}

// Holder is an owner that holds a lock.
type Holder struct {
	// Owner is the parsed owner, or the zero Owner if Text is malformed.
	Owner codec.Owner
	// Text is the owner as stored in Redis. A writer has the suffix ":write".
	Text string
	// Role is "read" or "write" for a read/write lock, and empty for other kinds. An owner that writes
	// and reads appears twice.
	Role string
	// Left is a reader's longest remaining lease. At 0, the reader no longer keeps writers out. It is 0 for other
	// holders, whose lease is the lock's TTL.
	Left time.Duration
	// Count is the owner's count of holds, or 0 if CountText is not a number.
	Count int64
	// CountText is the count as stored in Redis.
	CountText string
}

// Waiter is a place in the queue of a fair lock.
type Waiter struct {
	// Owner is the parsed owner, or the zero Owner if Text is malformed.
	Owner codec.Owner
	// Text is the owner as stored in Redis.
	Text string
	// Position is the place in the queue, counted from 1.
	Position int
	// Deadline is when other clients remove the waiter if it is first in the queue. It is zero if the waiter has no
	// deadline.
	Deadline time.Time
	// Subscribed is true if a connection is subscribed to the waiter's channel, which means that the waiter is alive. A
	// live waiter is briefly not subscribed after it has queued and while it reconnects. [Inspect] counts connections
	// to the master only; [Evict] also counts connections to its replicas.
	Subscribed bool
	// Counted is false if Subscribed is unknown: counting requires permission to run PUBSUB NUMSUB, and
	// Inspect counts subscribers only for the first 64 waiters.
	Counted bool
}

// Inspect returns a consistent snapshot of a lock's holders and lease, and of a fair lock's waiters, from
// the master. It sends one read-only EVALSHA, which blocks the server for one to four milliseconds per
// thousand waiters; for long queues, use [InspectPart].
//
// Errors are redlatch.ErrNotSent, ErrUncertain, ErrClosed, ErrWrongType and ErrInvalid, or a
// *transport.ServerError, wrapped in a [*redlatch.LockError].
func Inspect(ctx context.Context, of Lock) (*Inspection, error) {
	return inspect(ctx, hold.Of(of), 0, -1)
}

// InspectPart is like [Inspect], but reads only n places of a fair lock's queue, starting at first; places are counted
// from 1. Its cost depends on n, not on the length of the queue. Waiters may advance between two calls.
func InspectPart(ctx context.Context, of Lock, first, n int) (*Inspection, error) {
	from := int64(min(max(first, 1), maxPlace)) - 1
	return inspect(ctx, hold.Of(of), from, from+int64(min(max(n, 1), maxPlace))-1)
}

const maxPlace = math.MaxInt32

var errNotInspectable = fmt.Errorf("%w: use the semaphore's own Inspect method", redlatch.ErrInvalid)

// inspect returns the whole queue if last is -1.
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

func roleOf(text string) string {
	if _, writes := protocol.WriterOf(text); writes {
		return protocol.ModeWrite
	}
	return protocol.ModeRead
}

// Eviction is the result of [Evict].
type Eviction struct {
	// Waiter is the evicted waiter before its removal.
	Waiter
	// Next is the owner of the next waiter as stored in Redis, or empty if there is none.
	Next string
	// Woken is true if the lock was free, so that Next was woken.
	Woken bool
}

// Evict removes a dead waiter from the queue of a fair lock and wakes the first waiter if the lock is free.
// owner is the waiter's Text from [Inspect]. Waiting Redlatch clients evict dead waiters automatically; see
// redlatch.WithDeadWaiterGrace.
//
// A waiter without a subscribed connection may be about to subscribe, so check repeatedly, as redlatch status does.
// Evict sends one EVALSHA for every 200 places in the queue, SUBSCRIBE, PUBSUB and UNSUBSCRIBE to count subscribers,
// ROLE at most once every ten seconds, and two EVALSHA to evict.
//
// Evict returns [ErrNotQueued], [ErrWaiterAlive], [ErrNotCounted], redlatch.ErrInvalid if the lock is not fair, or any
// error that Inspect returns. If the reply was lost, it returns ErrUncertain, and Evict may be retried.
func Evict(ctx context.Context, of Lock, owner string) (*Eviction, error) {
	return evict(ctx, hold.Of(of), owner, false)
}

// ForceEvict is like [Evict], except that it evicts any waiter and never returns [ErrWaiterAlive]
// or [ErrNotCounted]. A live waiter rejoins the queue at the end.
func ForceEvict(ctx context.Context, of Lock, owner string) (*Eviction, error) {
	return evict(ctx, hold.Of(of), owner, true)
}

var errNoQueue = fmt.Errorf("%w: only fair locks have a queue on the server", redlatch.ErrInvalid)

func evict(ctx context.Context, l *hold.Lock, owner string, force bool) (*Eviction, error) {
	engine.NeedContext(ctx)
	if err := l.Check(ctx); err != nil {
		return nil, wrap(l, "evict", owner, err)
	}
	kind, queues := l.Kind.(fairqueue.Inspected)
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
