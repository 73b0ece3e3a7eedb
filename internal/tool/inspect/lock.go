package inspect

import (
	"strings"
	"time"

	"github.com/redlatch/redlatch/codec"
)

// Kind is what kind of lock something looks like.
type Kind string

const (
	// Plain is a lock without a queue: a plain one, or a fair one with an empty queue.
	Plain Kind = "plain"
	// Fair is a lock with a queue.
	Fair Kind = "fair"
	// Fenced is a lock without a queue and with a counter of tokens. A lock without tokens
	// that has the name of one with tokens looks the same.
	Fenced Kind = "fenced"
	// FairFenced is a lock with a queue and a counter of tokens.
	FairFenced Kind = "fair-fenced"
	// ReadWrite is a read/write lock.
	ReadWrite Kind = "readwrite"

	// Semaphore is a number of permits of which some are taken or waited for.
	Semaphore Kind = "semaphore"
	// Latch is a count-down latch that connections wait for.
	Latch Kind = "latch"
	// Counter is a number that may be a semaphore or a latch, or something else.
	Counter Kind = "counter"
)

// IsNumber reports whether a name of this kind holds a number.
func (k Kind) IsNumber() bool { return k == Semaphore || k == Latch || k == Counter }

// Lock is a lock as it was found.
type Lock struct {
	// Name is the lock's name on the server.
	Name string
	// Kind is what kind of lock it looks like, Mode whether a read/write lock is held
	// for "read" or for "write".
	Kind Kind
	Mode string
	// Holders are the holders, a few of them if they are many; none when it is free.
	Holders []Holder
	// More is true when there are holders that are not shown.
	More bool
	// TTL is what the lease has left, redlatch.NoTTL when it has none, 0 when the lock is
	// free.
	TTL time.Duration
	// At is when the TTL was read.
	At time.Time
	// Queue is the length of a fair lock's queue, Next the first owner in it.
	Queue int64
	Next  string
	// NextLabel is the label of the client of Next, empty when it has none.
	NextLabel string
	// NotSubscribed is how many of the queue have no subscriber. A scan leaves it 0.
	NotSubscribed int
	// Token is the last token that was given, 0 for a lock without.
	Token int64
	// Number is what there is to tell of one that IsNumber, nil of others. Of such only Name,
	// Kind and TTL, which is how long the number lives, are set besides.
	Number *Number
	// PlainWaiters is how many connections wait for the lock as for a plain one while
	// others are queued for it, or it is held as a read/write lock. ReadWriteWaiters is how
	// many wait for it as for a read/write lock while it is held as another kind. Both are 0
	// when that is unknown.
	PlainWaiters, ReadWriteWaiters int64
	// Places are the first owners in the queue, PlaceLabels the labels of their clients, empty
	// for those that have none. Waiting is how many connections wait for a lock without a queue.
	// All are only there if the Request wants them.
	Places      []string
	PlaceLabels []string
	Waiting     int64
}

// HasTwoKinds reports whether the name is that of two kinds of lock: waiters of one kind wait
// for a lock of another.
func (l *Lock) HasTwoKinds() bool {
	return l.PlainWaiters+l.ReadWriteWaiters > 0 || l.Kind == ReadWrite && l.Queue > 0
}

// Kinds are all kinds, for people to choose from.
func Kinds() []string {
	return []string{
		string(Plain), string(Fair), string(Fenced), string(FairFenced), string(ReadWrite),
		string(Semaphore), string(Latch), string(Counter),
	}
}

// KindNames says which kinds there are.
func KindNames() string {
	return "plain, fair, fenced, fair-fenced, readwrite, semaphore, latch or counter"
}

// WithToken returns what kind of lock this is when it has given a token, 0 for none.
func (k Kind) WithToken(token int64) Kind {
	switch {
	case token < 1:
	case k == Plain:
		return Fenced
	case k == Fair:
		return FairFenced
	}
	return k
}

// QueueKey is the key of the lock's queue, if it is a fair one.
func (l *Lock) QueueKey() string { return codec.QueueKey(l.Name) }

// queuePrefix is what the keys of queues begin with.
var queuePrefix = strings.TrimSuffix(codec.QueueKey("{"), "{")

// lockOf returns the name of the lock that a queue is of.
func lockOf(queueKey string) string { return Unbraced(strings.TrimPrefix(queueKey, queuePrefix)) }

// Unbraced returns the name that the brace rule has made part of a queue's or a
// channel's. Of the names a and {a}, for which that is the same, it returns a.
func Unbraced(part string) string {
	if n := len(part); n > 2 && part[0] == '{' && part[n-1] == '}' && !strings.Contains(part[1:n-1], "{") {
		return part[1 : n-1]
	}
	return part
}
