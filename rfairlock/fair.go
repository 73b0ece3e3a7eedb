// Package rfairlock provides Redisson's fair lock: callers queue on the server and acquire the
// lock in the order of arrival, across processes and languages. Use it if order is part of the
// contract; otherwise package rlock is faster.
//
// The lock is the same hash as a plain lock's, with a list of waiters and a sorted set of their
// deadlines. A release wakes only the first waiter. The waiters of one process share a
// subscriber connection and the polling: one request per poll cap in total.
//
// A canceled waiter leaves the queue. A waiter whose reply was lost loses its place and
// queues again with a new owner. Waiting processes evict dead waiters: Redlatch's after
// 10 seconds, Redisson's after 30 seconds, see redlatch.WithDeadWaiterGrace; admin.Evict evicts one by hand.
// If subscribers cannot be counted on every node, a dead waiter stays until its deadline.
//
// As in Redisson, a fair and a plain lock of one name exclude each other but do not wake each
// other. Use one kind per name.
package rfairlock

import (
	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/kind"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/rlock"
)

// New returns the fair lock with this name, Redisson's getFairLock. It sends nothing. If the name
// is invalid, every call returns ErrInvalid. The lock is safe for concurrent use. It differs from
// a plain lock as follows:
//
// Lock queues on the server if it does not acquire the lock immediately. It sends one EVALSHA to
// queue, one when its turn comes and, for the first waiter of the process, one after subscribing.
// A caller that comes back within a second may reuse an owner and its subscription.
// rlock.WithWait, in whole milliseconds, is also how long the server keeps the waiter's place
// after earlier waiters should be done; the default is the client's fair wait timeout.
//
// TryLock never queues. It acquires the lock only if it is free and its queue is empty.
//
// With rlock.WithOwner, the callers of one owner share one place.
func New(client *redlatch.Client, name string) *rlock.Lock {
	lock := &rlock.Lock{}
	*hold.Of(lock) = hold.NewLock(engine.EngineOf(client), name, func(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
		f := kind.NewFair(e, mapped, luasrc.Tokens{})
		return f, f.Queues.Strategy(f)
	})
	return lock
}
