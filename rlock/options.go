package rlock

import (
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/hold"
)

// Option sets something about one acquisition. A nil one sets nothing.
type Option func(*settings)

type settings = hold.Asked

// WithWait bounds how long Lock waits for the lock, besides its context. When
// the time runs out Lock returns ErrNotAcquired. The first attempt has half a second
// for its answer, also when the wait is shorter. At least 1 ms; with 0 Lock makes one
// attempt, however long the answer takes. Anything else, such as a number without a unit,
// gives ErrInvalid, and nothing is sent: round a wait that is computed, as in
// max(0, time.Until(end).Truncate(time.Millisecond)). Default: no bound. It is the first
// argument of Redisson's tryLock(waitTime, leaseTime, unit).
func WithWait(d time.Duration) Option {
	return func(a *settings) { a.Bound, a.Bounded = d, true }
}

// WithPollCap bounds for how long Lock sleeps without asking Redis, in place of the client's poll
// cap, redlatch.WithPollCap. At least 1 ms. A short one is for locks that are freed without a
// message, such as those that Redisson's getSpinLock has held: the waiter gets such a lock d
// later at most, and costs one EVALSHA each d. Of the callers of one process the one that has the
// turn polls. Redisson has no counterpart.
func WithPollCap(d time.Duration) Option {
	return func(a *settings) { a.Poll, a.Polled = d, true }
}

// WithoutWakeUps makes Lock wait without a subscription: it asks Redis once each d, up to an
// eighth sooner, and when the holder's lease should be over. At least 1 ms. It is for servers
// without pub/sub, and for very many locks of which hardly one is waited for. Unlock still
// publishes, so that other waiters, Redisson's among them, are woken; beside such a caller that
// polls comes late. For the plain and the fenced lock; with others, and with [WithPollCap], it
// gives ErrInvalid: a fair waiter without a subscription counts as dead. It is Redisson's
// getSpinLock, whose waiters ask every 1 to 128 ms.
func WithoutWakeUps(d time.Duration) Option {
	return func(a *settings) { a.Poll, a.Deaf = d, true }
}

// WithLease takes the lock for d and does not renew it: the hold is lost when d,
// less the loss margin, is over. At least 1 ms, cut to whole milliseconds.
// Default: a lease that is renewed. It is the lease time of Redisson's
// lock(leaseTime, unit).
func WithLease(d time.Duration) Option {
	return func(a *settings) { a.TTL, a.Fixed = d, true }
}

// WithWatchdog takes the lock with a lease of d that is renewed every third of
// it, in place of the client's watchdog timeout. At least 1 s, so that a lost packet
// does not cost the lock; cut to whole milliseconds. A short one frees the lock of a
// crashed holder soon. A client whose locks all have one does better with
// redlatch.WithWatchdogTimeout, after which its connection is also sooner given up
// when replies stay out. Redisson has one such time for each client,
// lockWatchdogTimeout.
func WithWatchdog(d time.Duration) Option {
	return func(a *settings) { a.TTL, a.Watchdog = d, true }
}

// WithMaxHold ends the hold d after it was acquired, however well it is renewed:
// renewals stop, and its contexts end with ErrMaxHold. The lock is free when the
// lease that is left then has run out, or when it is unlocked. At least 1 ms. It
// is for renewed leases: with WithLease it gives ErrInvalid. Default: no
// maximum. Redisson has no counterpart.
func WithMaxHold(d time.Duration) Option {
	return func(a *settings) { a.Max, a.Capped = d, true }
}

// WithOwner acquires the lock for owner, instead of an owner of its own: every caller that
// uses the same owner holds the lock, too, as two calls on one thread do in Redisson. It is
// for owners that travel, with a job or a request; see redlatch.ParseOwner. It must not be the
// owner of a hold that lives and was not handed over: giving that up frees the lock
// whatever the count. What [Hold.Owner] returned may become the owner of another hold; what
// [Hold.HandOver] returned, and an owner of redlatch.NewOwner, does not. Holds of one client under one owner know of each other, and none
// shortens another's lease; what other clients do with the owner they cannot know.
// Acquiring counts one more, unlocking one less, as in Redisson. When the reply is lost,
// ErrUncertain is returned and nothing is undone, because another caller may hold the
// lock for the same owner. The zero Owner gives ErrInvalid.
func WithOwner(owner redlatch.Owner) Option {
	return func(a *settings) { a.Owner, a.Given = owner, true }
}
