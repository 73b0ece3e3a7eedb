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
	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
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
