package rlock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/hold"
)

// handle is embedded under this name so that it is no part of the documentation.
type handle = hold.Handle

// Hold is a lock that was acquired, until it is given up or lost. All methods
// are safe for concurrent use, by any goroutine.
type Hold struct {
	handle
	unlocked atomic.Pointer[redlatch.LockError] // what Unlock returned
}

// Name returns the lock's name.
func (h *Hold) Name() string { return h.Internal().Lock().Name }

// Owner returns the owner under which the lock is held, as others see it on the
// server. After Unlock, a contended fair lock may use it for a later hold of this client; one
// that [Hold.HandOver] returned is not used again.
func (h *Hold) Owner() redlatch.Owner { return h.Internal().ID() }

// Err returns nil while the lock is held, and afterwards why not: ErrLost, as a
// redlatch.Loss that tells the reason, ErrMaxHold, ErrNotHeld after Unlock or LetExpire, ErrHandedOver or ErrClosed.
// It asks the clocks and not the server, so it costs nothing and is right at the
// first instruction after the machine was suspended.
func (h *Hold) Err() error { return h.Internal().Err() }

// Remaining returns how long the hold lasts if it is not renewed any more, less
// the loss margin; 0 when it is over.
func (h *Hold) Remaining() time.Duration { return h.Internal().Remaining() }

// Context returns a context that ends when parent does and when the hold does.
// Its cause, see context.Cause, is then what [Hold.Err] returns. Its Err asks the
// clocks, so that it is right even before a timer could fire; contexts made from
// it end when the watchdog sees the end, a moment later. With a fixed lease or a
// maximum it has that deadline.
//
// It proves the hold: Lock and TryLock of the same lock and client with it, or
// with a context made from it, re-enter the lock, and each re-entry needs an
// Unlock of its own. While the hold is live that succeeds; after it was lost it
// gives ErrLost, after it reached its maximum ErrMaxHold, also when it was unlocked
// then; after it was unlocked while it lived the proof counts for nothing, and a
// context that was made from those of several holds proves the next one further out.
//
// Callers that lock with the context of one hold exclude each other: a hold has one
// inner hold at a time, and [Lock.Lock] waits for it. What has the inner hold must lock
// with the inner hold's context, else it waits for itself. An inner hold outlives an
// outer one that is unlocked before, and has its place then. One that has reached its
// maximum keeps its place for what was left of its lease, or until it is unlocked.
// A lock with WithOwner uses no proof and does not wait for inner holds. Each hold has
// inner holds of its own, also where several were resumed for one owner.
//
// Use it for the work that needs the lock. It costs no goroutine; the hold knows it
// until parent ends or the hold does, so give a long hold a parent for each job.
func (h *Hold) Context(parent context.Context) context.Context { return h.Internal().Context(parent) }

// Unlock gives the hold up. The last hold of its owner frees the lock and wakes a
// waiter, or passes it on to the next caller of this process; before that, the lock
// stays with the holds that remain, in any order.
// It needs no context and works when every context has ended: it takes one
// command timeout at most, less when less is left of the lease. The hold's
// contexts end, with cause ErrNotHeld, before anything is sent. Later calls do
// nothing and return the first one's result.
//
// It returns nil when the lock was held until now. ErrLost: the hold was lost
// before. ErrMaxHold: it had reached its maximum; the lock is freed all the same.
// ErrUncertain or ErrNotSent: Redis did not answer in time; the release goes on
// in the background until the lease is over, for an owner that was given for ten
// seconds. ErrClosed: the client was closed,
// and the lock is left to its lease. ErrNotNotified: the lock is free, and the user may not
// publish that to its waiters. It sends one EVALSHA, or none when the next
// caller of this process takes the lock over with its own.
func (h *Hold) Unlock() error { return h.unlockError(h.Internal().Unlock()) }

// UnlockAsync is [Hold.Unlock] for callers that go on at once, as Redisson's unlockAsync. It
// returns as soon as the release is on its way, and the channel gets Unlock's result, which
// need not be received. A Lock that the caller begins then follows the release on the same
// connection: a pair of both costs one round trip, not two.
//
// The hold's contexts have ended when it returns. The lock may still be held on the server for
// the time of a message: another process gets it a moment later than after Unlock returned.
// What Unlock says of lost replies and of Close holds for it, too; Close waits for it.
func (h *Hold) UnlockAsync() <-chan error { return h.Internal().UnlockAsync(h.unlockError) }

// unlockError makes Unlock's error say what was done with which hold, the same each time.
func (h *Hold) unlockError(err error) error {
	if err == nil {
		return nil
	}
	if h.unlocked.Load() == nil {
		first := &redlatch.LockError{Op: "unlock", Name: h.Name(), Owner: h.Internal().ID(), Err: err}
		h.unlocked.CompareAndSwap(nil, first)
	}
	return h.unlocked.Load()
}

// LetExpire ends the hold without freeing the lock: it is not renewed any more
// and frees itself when its lease is over. A job that must run at most once per
// period takes a lease of the period and ends with LetExpire; Unlock does
// nothing then. It returns ErrNotHeld after Unlock, ErrLost when the hold was
// lost before, and ErrReentered while the lock is entered more than once, since the
// other holds keep it. It sends nothing.
func (h *Hold) LetExpire() error { return h.wrap("let-expire", h.Internal().LetExpire()) }

// HandOver gives the lock to another goroutine, process or language: it renews
// the lease once, ends this hold without freeing the lock, and returns the owner,
// which the other side gives to Resume or UnlockAs, or to Redisson's
// unlockAsync(threadId) if it can name it. The hold's contexts end with
// ErrHandedOver, and Unlock does nothing then. The other side has the lease to
// take over.
//
// When Redis does not answer, the hold goes on and the error says why. ErrReentered
// says that the lock is entered more than once, ErrUncertain that an earlier unlock
// of an inner hold had lost its reply: arriving late, it could take the lock from the
// other side. It sends one EVALSHA, two if the lock was ever re-entered.
func (h *Hold) HandOver() (redlatch.Owner, error) {
	owner, err := h.Internal().HandOver()
	return owner, h.wrap("hand-over", err)
}

// wrap makes an error say what was done with which hold. Nil stays nil.
func (h *Hold) wrap(op string, err error) error {
	return wrap(h.Internal().Lock(), op, h.Internal().ID(), err)
}
