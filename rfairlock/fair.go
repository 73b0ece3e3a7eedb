// Package rfairlock provides Redisson's fair lock (getFairLock): callers acquire the lock in order
// of arrival, across processes and languages. If order does not matter, package rlock is faster.
//
//	billing := rfairlock.New(client, "billing-run")
//	err := billing.Do(ctx, claim)
//
// It has the same guarantees as package rlock. If the reply to a waiter is lost, the waiter rejoins
// the queue at the end. Waiting processes evict a dead Redlatch waiter after 10 seconds and a dead
// Redisson waiter after 30 seconds; see redlatch.WithDeadWaiterGrace.
//
// A fair and a plain lock with the same name exclude each other but do not wake each other's
// waiters, so use only one kind per name. docs/fair-lock.md describes the queue, its deadlines and
// its cost.
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

// New returns the fair lock with this name. It sends nothing. If the name is invalid, every call
// returns redlatch.ErrInvalid. Differences from a plain lock:
//   - Lock queues on the server if it cannot acquire the lock. It sends one EVALSHA to queue, one
//     when its turn comes and, for the first waiter in the process, one after subscribing.
//   - TryLock never queues: it acquires the lock only if it is free and its queue is empty.
//   - rlock.WithWait is also how long the server keeps the waiter's place after the deadlines of
//     earlier waiters. The default is redlatch.WithFairWaitTimeout.
//   - Callers with the same owner (rlock.WithOwner) share one place.
func New(client *redlatch.Client, name string) *rlock.Lock {
	lock := &rlock.Lock{}
	*hold.Of(lock) = hold.NewLock(engine.EngineOf(client), name, func(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
		f := kind.NewFair(e, mapped, luasrc.Tokens{})
		return f, f.Queues.Strategy(f)
	})
	return lock
}
