package rlock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/hold"
)

// handle keeps the embedded type out of the documentation.
type handle = hold.Handle

// Hold is an acquired lock, until it is unlocked or lost. All methods are safe for concurrent use.
type Hold struct {
	handle
	unlocked atomic.Pointer[redlatch.LockError] // returned by every Unlock
}

// Name returns the lock's name.
func (h *Hold) Name() string { return hold.Of(h).Lock().Name }

// Owner returns the owner that holds the lock on the server. After Unlock, a contended fair lock
// may use it for a later hold of this client; one returned by [Hold.HandOver] is not used again.
func (h *Hold) Owner() redlatch.Owner { return hold.Of(h).ID() }

// Err returns nil while the lock is held. Afterwards it returns ErrLost with the reason as a
// redlatch.Loss, ErrMaxHold, ErrNotHeld after Unlock or LetExpire, ErrHandedOver or ErrClosed. It
// reads the clocks and sends nothing, so it is correct immediately after the machine was suspended.
func (h *Hold) Err() error { return hold.Of(h).Err() }

// Remaining returns the time until the hold is lost if it is not renewed: the rest of its lease,
// less the loss margin; 0 once the hold has ended.
func (h *Hold) Remaining() time.Duration { return hold.Of(h).Remaining() }

// Context returns a context for the work that needs the lock. It ends when parent or the hold ends,
// with [Hold.Err] as the cause. Its deadline is the hold's, if the lease is fixed or has a maximum.
// Its Err reads the clocks, so it never reports a lost lock as held. The context costs no goroutine,
// and the hold references it until either ends, so give a long hold a parent per job.
//
// The context also proves the hold. Lock and TryLock of the same lock and client with it, or with a
// context derived from it, re-enter the lock with one EVALSHA; each re-entry needs its own Unlock. If
// the hold was lost they return ErrLost, and after its maximum ErrMaxHold. Once it was unlocked or
// handed over they use the next outer hold that the context proves, or acquire the lock anew.
//
// A hold has one inner hold at a time. Lock waits in this process until the inner hold, or an attempt
// to get one, has ended; such waiters count for redlatch.WithMaxWaiters. Code that has the inner hold
// must lock with that hold's context, else it waits for itself; a wait longer than the command
// timeout is logged once. If the outer hold is unlocked first, the inner hold takes its place. An
// inner hold that has reached its maximum keeps its place until it is unlocked or its lease expires.
// WithOwner ignores proofs.
func (h *Hold) Context(parent context.Context) context.Context { return hold.Of(h).Context(parent) }

// Unlock ends the hold and its contexts, with cause ErrNotHeld. The last hold of its owner releases
// the lock and wakes a waiter, or passes it to the next caller of this process. Unlock needs no
// context and takes at most one command timeout, less if the lease ends earlier. Later calls return
// the first one's result.
//
// Unlock returns nil if the lock was held until now, and ErrLost if it was lost before. After
// ErrMaxHold and ErrNotNotified the lock is free; the latter means that the user may not publish to
// its waiters. After ErrUncertain and ErrNotSent the release continues in the background until the
// lease ends, or for ten seconds for a given owner. After ErrClosed the lock is left to its lease.
//
// It sends one EVALSHA, or none if the next caller of this process takes the lock over with its own.
func (h *Hold) Unlock() error { return h.unlockError(hold.Of(h).Unlock()) }

// UnlockAsync is [Hold.Unlock] without waiting for the reply, as Redisson's unlockAsync. It returns
// once the hold's contexts have ended and the release is queued on the connection; the channel
// receives Unlock's result, and need not be read. A following Lock uses the same connection, so the
// pair costs one round trip. Close waits for the release.
func (h *Hold) UnlockAsync() <-chan error { return hold.Of(h).UnlockAsync(h.unlockError) }

// unlockError is the error of every Unlock: the first one's.
func (h *Hold) unlockError(err error) error {
	if err == nil {
		return nil
	}
	if h.unlocked.Load() == nil {
		h.unlocked.CompareAndSwap(nil, &redlatch.LockError{Op: "unlock", Name: h.Name(), Owner: h.Owner(), Err: err})
	}
	return h.unlocked.Load()
}

// LetExpire ends the hold and leaves the lock to its lease, for jobs that must run at most once per
// period. It returns ErrNotHeld after Unlock, ErrLost if the hold was lost, and ErrReentered if the
// lock has other holds of this owner. It sends nothing.
func (h *Hold) LetExpire() error { return h.wrap("let-expire", hold.Of(h).LetExpire()) }

// HandOver passes the lock to another goroutine, process or language: it renews the lease once, ends
// this hold with ErrHandedOver, and returns the owner for Resume, UnlockAs or Redisson's
// unlockAsync(threadId). The receiver has one lease to take over.
//
// If Redis does not answer, the hold continues and HandOver returns the error. It returns
// ErrReentered if the lock has other holds of this owner, and ErrUncertain if the reply to an inner
// hold's unlock was lost, because that unlock might still run. It sends one EVALSHA, or two if the
// lock was ever re-entered.
func (h *Hold) HandOver() (redlatch.Owner, error) {
	owner, err := hold.Of(h).HandOver()
	return owner, h.wrap("hand-over", err)
}

func (h *Hold) wrap(op string, err error) error {
	return wrap(hold.Of(h).Lock(), op, hold.Of(h).ID(), err)
}
