package rlock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/hold"
)

type handle = hold.Handle

// Hold is an acquired lock. All methods are safe for concurrent use.
type Hold struct {
	handle
	unlocked atomic.Pointer[redlatch.LockError] // every Unlock returns it
}

// Name returns the lock's name.
func (h *Hold) Name() string { return hold.Of(&h.handle).Lock().Name }

// Owner returns the owner that holds the lock on the server. After Unlock, but not after
// [Hold.HandOver], a later hold of this client may have the same owner.
func (h *Hold) Owner() codec.Owner { return hold.Of(h).ID() }

// Err returns nil while the lock is held, and afterwards ErrLost with the reason as a
// redlatch.Loss, ErrMaxHold, ErrNotHeld after Unlock or LetExpire, ErrHandedOver or ErrClosed. It
// reads the clocks and sends nothing, so it is correct after the machine was suspended.
func (h *Hold) Err() error { return hold.Of(h).Err() }

// Remaining returns the remaining lease less the loss margin, or 0 once the hold has ended.
func (h *Hold) Remaining() time.Duration { return hold.Of(h).Remaining() }

// Context returns a context for the work that needs the lock. It ends when parent or the hold ends; if
// the hold ended, its Err is context.Canceled and its cause [Hold.Err]. Its deadline is the hold's, if
// the lease is fixed or has a maximum. It reads the clocks, so it never reports a lost lock as held.
// The hold references it until either ends, so if a hold lasts long, pass a separate parent for each
// job.
//
// With it, or a context derived from it, Lock and TryLock of the same lock and client re-enter the
// hold; each re-entry needs its own Unlock. A hold has one inner hold at a time, and other callers wait
// in this process. Code that has the inner hold must use that hold's context; otherwise it deadlocks.
// The options passed to a re-entry never shorten the lease. If the hold was lost, the calls return
// ErrLost. If it was unlocked, they return ErrNotSent, because the context has ended; with
// context.WithoutCancel, they use the next outer hold, if any, or acquire the lock again.
func (h *Hold) Context(parent context.Context) context.Context { return hold.Of(h).Context(parent) }

// Unlock ends the hold and its contexts, and releases the lock, unless the owner has other holds. It
// takes no context and returns within one command timeout. Later calls return the first result. After
// LetExpire or HandOver, it does nothing and returns nil. It sends one EVALSHA, or none if the next
// caller in this process takes over the lock.
//
// It returns nil if the lock was held until now. Errors:
//   - ErrLost: the lock had already been lost
//   - ErrMaxHold: the hold had reached its maximum; the lock is free
//   - ErrNotNotified: the lock is free, but the user may not publish to its waiters
//   - ErrUncertain, ErrNotSent: the release continues in the background until the lease ends, or for
//     ten seconds if the owner was passed to WithOwner or Resume
//   - ErrClosed: nothing was sent
func (h *Hold) Unlock() error { return h.unlockError(hold.Of(h).Unlock()) }

// UnlockAsync is like [Hold.Unlock], but does not wait for the reply. It corresponds to Redisson's
// unlockAsync. It returns when the contexts have ended and the release is queued; the channel
// receives Unlock's result and need not be read. A later Lock is sent after it, so the pair takes
// one round trip. Client.Close waits for the release.
func (h *Hold) UnlockAsync() <-chan error { return hold.Of(h).UnlockAsync(h.unlockError) }

func (h *Hold) unlockError(err error) error {
	if err == nil {
		return nil
	}
	if h.unlocked.Load() == nil {
		h.unlocked.CompareAndSwap(nil, &redlatch.LockError{Op: "unlock", Name: h.Name(), Owner: h.Owner(), Err: err})
	}
	return h.unlocked.Load()
}

// LetExpire ends the hold and keeps the lock until its lease expires, for jobs that run at most once
// per period: call TryLock with a lease that ends shortly before the next period (see [WithLease]), and
// call LetExpire after the job. The lease must outlast the job.
//
// It returns the error of [Hold.Err] if the hold has ended, ErrReentered if its owner has other
// holds, and ErrUncertain if an unlock of such a hold may still affect the lock. It sends nothing.
func (h *Hold) LetExpire() error { return h.wrap("let-expire", hold.Of(h).LetExpire()) }

// HandOver passes the lock to another goroutine, process or language. It renews the lease, ends this
// hold with ErrHandedOver, and returns the owner for [Lock.Resume] or [Lock.UnlockAs], which must be
// called within one lease. Redisson's unlockAsync(threadId) only releases an owner with its own
// client ID, given to [WithOwner].
//
// It returns the same errors as [Hold.LetExpire]. If Redis does not reply, the hold continues. It
// sends one EVALSHA, or two after a re-entry.
func (h *Hold) HandOver() (codec.Owner, error) {
	owner, err := hold.Of(h).HandOver()
	return owner, h.wrap("hand-over", err)
}

func (h *Hold) wrap(op string, err error) error {
	return wrap(hold.Of(h).Lock(), op, hold.Of(h).ID(), err)
}
