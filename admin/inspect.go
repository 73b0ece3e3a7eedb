package admin

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

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
