package rlock

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/transport"
)

// Inspection is a lock as the server had it at one moment.
type Inspection struct {
	// Name is the lock's name, Kind what kind of lock was asked about: "plain" or
	// "fair".
	Name, Kind string
	// Holders are the lock's holders: none when it is free, and one
	// otherwise, unless the key is that of another kind of lock.
	Holders []Holder
	// TTL is how long the lease has left: 0 when the lock is free, codec.NoTTL,
	// which is negative, when the key never expires.
	TTL time.Duration
	// Queue is the queue of a fair lock, the next waiter first, or the part of it
	// that [WithPlaces] asks for. A plain lock has no queue on the server.
	Queue []Waiter
	// Waiting is how many wait for a fair lock, whatever part of them Queue is.
	Waiting int
}

// Holder is one owner that holds a lock.
type Holder struct {
	// Owner is the owner, the zero Owner when Text is not of that form.
	Owner codec.Owner
	// Text is the owner as it stands in Redis.
	Text string
	// Count is how often the owner has entered, 0 when CountText is no number.
	Count int64
	// CountText is the count as it stands in Redis, whatever it is: other kinds of
	// locks have other fields.
	CountText string
}

// Waiter is a place in the queue of a fair lock.
type Waiter struct {
	// Owner is the owner, the zero Owner when Text is not of that form.
	Owner codec.Owner
	// Text is the owner as it stands in Redis.
	Text string
	// Position is the place in the queue, 1 for the next one.
	Position int
	// Deadline is when the waiter counts as dead, by the clock of the client that
	// asks, once it is the first; the zero time when it has no deadline, as happens
	// after failures.
	Deadline time.Time
	// Subscribed says whether a connection is subscribed to the waiter's
	// channel: a live waiter has one, except for a moment after it has queued
	// and while it reconnects. Of an inspection only the first 64 are looked
	// at.
	Subscribed Subscribed
}

// Subscribed says whether a waiter listens.
type Subscribed int

const (
	// SubscribedUnknown means that it was not counted, or could not be: that needs
	// the right to PUBSUB NUMSUB.
	SubscribedUnknown Subscribed = iota
	// SubscribedNo means that no connection is subscribed.
	SubscribedNo
	// SubscribedYes means that at least one connection is subscribed.
	SubscribedYes
)

// String returns the answer in a word.
func (s Subscribed) String() string {
	switch s {
	case SubscribedNo:
		return "no"
	case SubscribedYes:
		return "yes"
	case SubscribedUnknown:
	}
	return "unknown"
}

// Held reports whether the lock is held.
func (i *Inspection) Held() bool { return len(i.Holders) > 0 }

// InspectOption sets something about one [Lock.Inspect].
type InspectOption func(*places)

// places is the part of a queue that is asked for, from 0; last is -1 for its end.
type places struct{ first, last int64 }

// allPlaces are those of the whole queue.
var allPlaces = places{0, -1}

// WithPlaces asks for a part of a fair lock's queue: n places from first on, 1 being
// the next one. It costs the server by its length and not by the queue's, so that it
// can look at a long queue often. Parts that are asked for one after the other are of
// moments of their own: places come forward between them. Numbers below 1 count as 1.
// A user without the rights to LLEN and ZSCORE costs the server more where the queue is
// longer. Default: the whole queue. A plain lock has none.
func WithPlaces(first, n int) InspectOption {
	from := int64(min(max(first, 1), maxPlace)) - 1
	return func(p *places) { *p = places{from, from + int64(min(max(n, 1), maxPlace)) - 1} }
}

// maxPlace is more than a queue can have.
const maxPlace = math.MaxInt32

// Inspect returns the lock's holders, how often and for how long they hold it, and,
// for a fair lock, its waiters, all of one moment, asked of the master. What it
// tells may have changed when it returns: it is for people and logs. It sends one
// EVALSHA, which changes nothing.
//
// The server serves no other client meanwhile. That takes microseconds, but a
// thousand places of a long queue take one to four milliseconds: where thousands
// wait, [WithPlaces] looks at fewer.
func (l *Lock) Inspect(ctx context.Context, opts ...InspectOption) (*Inspection, error) {
	part := allPlaces
	for _, o := range opts {
		if o != nil {
			o(&part)
		}
	}
	kind, can := l.Internal().Kind.(hold.Inspectable)
	if !can {
		return nil, l.wrap("inspect", codec.Owner{}, errNotInspectable)
	}
	answer, err := l.ask(ctx, "inspect", func(c *transport.Call) { kind.Inspect(c, part.first, part.last) })
	if err != nil {
		return nil, err
	}
	seen, err := kind.Inspected(answer)
	if err != nil {
		return nil, l.wrap("inspect", codec.Owner{}, err)
	}
	in := &Inspection{Name: l.Name(), Kind: l.Internal().Kind.Name(), TTL: seen.Left, Waiting: int(seen.Waiting)}
	for _, f := range seen.Held {
		in.Holders = append(in.Holders, Holder{Owner: ownerOf(f.Owner), Text: f.Owner, Count: f.Count, CountText: f.Text})
	}
	for i, q := range seen.Queue {
		in.Queue = append(in.Queue, Waiter{
			Owner: ownerOf(q.Owner), Text: q.Owner, Position: int(part.first) + i + 1, Deadline: q.Deadline,
			Subscribed: subscribed(q.Listeners),
		})
	}
	if seen.Left == codec.NoKey {
		in.TTL = 0
	}
	return in, nil
}

// What a kind of lock cannot do.
var (
	errNotInspectable = errors.New("a lock of this kind cannot be inspected")
	errNotForcible    = errors.New("a lock of this kind cannot be taken from its holders")
)

// ownerOf returns the zero Owner for one of another shape: its text says it all.
func ownerOf(text string) codec.Owner {
	owner, err := codec.ParseOwner(text)
	if err != nil {
		return codec.Owner{}
	}
	return owner
}

func subscribed(listeners int64) Subscribed {
	switch {
	case listeners < 0:
		return SubscribedUnknown
	case listeners == 0:
		return SubscribedNo
	}
	return SubscribedYes
}
