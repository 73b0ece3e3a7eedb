package redlatch

import (
	"time"

	"github.com/redlatch/redlatch/codec"
)

// Started reports the start of a call to Lock, TryLock, Resume, Acquire or TryAcquire. It is
// followed by one [NotAcquired], by one [Acquired] per lock or, if too few replicas have the locks,
// by one NotAcquired per lock.
type Started struct {
	Op         string
	Name, Kind string // of the first lock
	// Locks is 1, or the number of plain locks that a multi-lock takes with one script.
	Locks int
}

// Attempted reports an attempt that did not acquire the lock. Re-entries and Resume make no
// attempts.
type Attempted struct {
	Name, Kind string
	// Attempt is the number of the attempt within the call, starting at 1.
	Attempt int
	// Took is the time until the reply.
	Took time.Duration
	// Holder is the owner that holds the lock, or the zero Owner if it is unknown.
	Holder codec.Owner
	// TTL is the holder's remaining lease. It is negative if it is unlimited or unknown.
	TTL time.Duration
	// Err is the error if the attempt got no reply.
	Err error
}

// Queued reports that a call has started to wait because another owner holds the lock or other
// callers of this client come first. It is reported once per call, and again if a fair lock's queue
// has lost the caller's place.
type Queued struct {
	Name, Kind string
	// Position is the place in a fair lock's queue, counted from 1. It is 0 for other kinds.
	Position int
}

// Woken reports that a waiting call was woken and is retrying. Polls are not reported.
type Woken struct {
	Name, Kind string
	// By is "message" for a message on the lock's channel, "gap" if messages may have been missed,
	// or "turn" if another caller of this client stopped waiting or passed on the lock.
	By string
}

// Acquired reports that Lock, TryLock or Resume returned a hold, or that Acquire or TryAcquire
// returned permits.
type Acquired struct {
	Op, Name, Kind string
	// Owner is the hold's owner. A later hold of a fair lock may have the same owner.
	Owner codec.Owner
	// Wait is the duration of the call.
	Wait time.Duration
	// Attempts is the number of attempts. It is 0 for re-entries and Resume.
	Attempts int
	// Reentry is true if the call re-entered an outer hold.
	Reentry bool
	// Transferred is true if another hold of this client passed the lock on when it ended.
	Transferred bool
	// NoHold is true for a plain semaphore, for which Ended and Released are not reported.
	NoHold bool
}

// NotAcquired reports that Lock, TryLock, Resume, Acquire or TryAcquire returned an error.
type NotAcquired struct {
	Op, Name, Kind string
	// Wait is the duration of the call.
	Wait     time.Duration
	Attempts int
	// Outcome is one of
	//   - "refused": another owner holds the lock, WithWait's time ended, or too many callers were
	//     waiting. This is not a failure.
	//   - "canceled": the caller's context was canceled, had ended before the call, or its deadline
	//     ended the wait for a lock that another owner held.
	//   - "failed": any other error (see [ErrorType]), including a deadline that ended the wait for
	//     a reply, and any early end of the wait for replicas.
	Outcome string
	Err     error
}

// DoStarted reports that Do is about to run its function with the context that the observer
// returns. For a multi-lock, Name lists its first locks, Kind is "multi" and Owner is zero.
type DoStarted struct {
	Name, Kind string
	Owner      codec.Owner
}

// DoEnded reports that the function of Do has ended. The hold's [Ended], unless already reported,
// and [Released] follow. Name, Kind and Owner are as in [DoStarted].
type DoEnded struct {
	Name, Kind string
	Owner      codec.Owner
	Took       time.Duration
	// Err is the function's error.
	Err error
	// Panicked is true if the function panicked or ended its goroutine.
	Panicked bool
}

// Ended reports the end of a hold. Close ends all holds with ErrClosed.
type Ended struct {
	Name, Kind string
	Owner      codec.Owner
	// Held is the time since its acquisition was sent.
	Held time.Duration
	// End is "unlocked" (also after LetExpire), "lost", "max_hold", "handed_over" or "closed".
	End string
	// LossReason is "late" if the lease expired, "gone" if the server no longer had the lock, and
	// "" for a hold that was not lost.
	LossReason string
	// Err is nil if Unlock or LetExpire ended the hold. Otherwise it is ErrLost, as a [Loss] with
	// the reason, ErrMaxHold, ErrHandedOver or ErrClosed.
	Err error
}

// Released reports that the first Unlock of a hold returned. It follows the hold's [Ended].
type Released struct {
	Name, Kind string
	Owner      codec.Owner
	Took       time.Duration
	Err        error
}

// Renewed reports the result of one renewal script, which renews up to 100 holds.
type Renewed struct {
	Holds int
	// Lost is the number of holds that the server no longer had, or 0 after an error.
	Lost int
	// Took is the time until the reply.
	Took time.Duration
	// Slack is the shortest time left before a confirmed hold would have been lost, or 0 if none was
	// confirmed.
	Slack time.Duration
	// Err is the error if the script got no reply. The script is retried until the leases end.
	Err error
}

// Evicted reports that this client removed a dead waiter from the queue of a fair lock; see
// [WithDeadWaiterGrace].
type Evicted struct {
	Name, Kind string
	// Owner is the waiter's owner as stored in Redis; see [codec.ParseOwner].
	Owner string
	// Absent is how long the channel had been without a known subscriber.
	Absent time.Duration
	// IsRedlatch is true for a waiter of this library, false for a Redisson waiter.
	IsRedlatch bool
	// WasSubscribed is true if the waiter had been subscribed before.
	WasSubscribed bool
}

// Reconnected reports that the built-in transport replaced a lost connection.
type Reconnected struct {
	// Connection is "commands" or "subscriptions".
	Connection string
}
