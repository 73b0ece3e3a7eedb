// Package rfairlock is Redisson's fair lock: callers wait in a queue on the server and get
// the lock in the order of arrival, across processes and languages.
//
// # Three keys
//
// The lock itself is a hash, as that of package rlock. Beside it are a list, the
// queue of waiters, and a sorted set with a deadline for each of them: the time, by
// the clock of a client, from which a waiter that is first in the queue counts as
// dead and is removed by the next script that runs. A live waiter cannot miss its
// deadline: the end of the holder's lease, or the deadline of the one before it,
// and its own wait after that.
//
// # The life of a waiter
//
//	Lock ──attempt──▶ held ──────────────────────────────────────────▶ Hold
//	        │                                                   ▲
//	        │ refused: now it stands in the queue               │
//	        ▼                                                   │
//	    subscribe to its own channel (acknowledged)             │
//	        │                                                   │
//	        ▼                                                   │
//	    attempt ◀───────────────────────────────┐               │
//	        │ └── held: the server took it out ─┼───────────────┘
//	        ▼                                   │
//	    wait for the first of: its message, a gap, a word from the first
//	    of its process in the queue ────────────┘
//	        │ context, WithWait, error, client closed
//	        ▼
//	    give up: taken out of the queue; if the lock is free, the next is notified
//
// A release wakes only the first waiter in the queue. The first of the waiters of
// one process asks now and then, in case a message was lost, when the holder's
// lease should be over and once each poll cap, and tells the others when the answer
// shows that their turn has come. So a thousand waiters cost two connections and
// one request each poll cap.
//
// A caller that is subscribed already needs neither to subscribe nor to ask twice. That
// is a caller that came while others of its process waited, and so subscribed first; and
// a caller that gets the owner of an earlier acquisition, whose subscription is kept for
// a second more. An owner is used again only when no call for it can be in flight any
// more: its attempts were answered, its release was acknowledged, and it was not handed
// over.
//
// An attempt whose reply was lost costs the waiter its place: its owner is never
// used again, what it may have acquired is freed and its place given up in the
// background, and it queues anew.
//
// # The dead
//
// A process that dies leaves its places in the queue. So a process that waits looks
// at the queue with each heartbeat, every five seconds and every second while the
// lock is free:
//
//	heartbeat: our places are kept ──▶ count who listens to whose channel
//	     ▲                                        │
//	     │                         none for a grace: evict, from the front on
//	     │                         some, but the lock stays free: nudge
//	     └────────────────────────────────────────┘
//
// So it evicts dead waiters, Redlatch's after 10 seconds, Redisson's after 30 seconds;
// see redlatch.WithDeadWaiterGrace. Where subscribers cannot be counted on every node, no
// waiter is evicted. By hand it is admin.Evict.
//
// # Beside the plain lock
//
// A fair and a plain lock of one name exclude each other, but do not wake each
// other, as in Redisson. Use one kind for one name.
package rfairlock

import (
	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/kind"
	"github.com/redlatch/redlatch/rlock"
)

// New returns the fair lock called name: Redisson's getFairLock. It sends nothing,
// and a name that no lock can have shows as ErrInvalid in every call. The lock is
// used like every *rlock.Lock and is safe for concurrent use. What differs:
//
// Lock queues the caller on the server when it does not get the lock at once, and
// waits for its turn: one EVALSHA to queue, one when its turn has come and, for the
// first of its process to wait, one after the subscription. Callers that come again
// within a second may get the owner and the subscription of an earlier one.
// rlock.WithWait is also how long the server keeps the caller's place once those
// before it should be done, in whole milliseconds; without it that is the client's
// fair wait timeout. A caller that gives up is taken out of the queue.
//
// TryLock never queues: it takes the lock only when it is free and its queue is
// empty.
//
// With rlock.WithOwner two callers of one owner have one place between them.
func New(client *redlatch.Client, name string) *rlock.Lock {
	lock := &rlock.Lock{}
	*lock.Internal() = hold.NewLock(engine.EngineOf(client), name, makeFair)
	return lock
}

// makeFair is a hold.Make.
func makeFair(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
	f := kind.NewFair(e, mapped)
	return f, f.Queues.Strategy(f)
}
