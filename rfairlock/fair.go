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
