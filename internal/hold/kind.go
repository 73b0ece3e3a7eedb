package hold

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/watchdog"
	"github.com/redlatch/redlatch/transport"
)

// Kind is a kind of lock that gives holds: what is asked of the server about one lock. All
// methods are safe for concurrent use, and pure but for the time of day, which some kinds
// send. Each fills a reset call.
//
// What only some kinds can do is an interface of its own below. A kind that has its methods
// can do it.
type Kind interface {
	acquire.Waitable

	// Family names the kinds whose proofs count for one another, such as those of two roles
	// under one key: see [Role].
	Family() string

	// Release fills c with the call that brings the count of r.Owner down to r.Target, 0 to
	// free the lock. Only for owners that one process alone uses: it may run late or twice,
	// and does nothing for an owner that does not hold the lock. It is sent before the attempts
	// that wait to be sent.
	Release(c *transport.Call, r *acquire.Request)
	// Released reads its reply.
	Released(reply any) (reply.ReleaseOutcome, error)

	// Renewal returns the script that renews the lock's leases.
	Renewal() *watchdog.Renewal
}

// Reentrant is a kind whose owners can hold a lock more than once.
type Reentrant interface {
	// Reenter fills c with the call that enters the lock again for an owner that holds it: up
	// to count r.Target, for one that one process alone uses, which may run more than once;
	// or, with target 0, by one.
	Reenter(c *transport.Call, r *acquire.Request)
	// Reentered reads its reply: false says that the owner does not hold the lock.
	Reentered(reply any) (bool, error)
}

// Fencing is a kind whose grants have tokens: a re-entry has one of its own, and so has a hold
// that was resumed, which is a re-entry up to count 1.
type Fencing interface {
	Reentrant
	// Token reads the token from the reply of a re-entry that was granted.
	Token(reply any) (int64, error)
}

// Shareable is a kind whose owners can be used by several processes and languages.
type Shareable interface {
	// ReleaseShared fills c with the call that lowers the count of such an owner by one. The
	// latch lets it be sent again. The reply is that of a release.
	ReleaseShared(c *transport.Call, r *acquire.Request, latch string)
}

// Forcible is a kind whose locks can be taken from their holders.
type Forcible interface {
	// ForceRelease fills c with the call that frees the lock.
	ForceRelease(c *transport.Call)
	// Forced reads its reply: whether there was a holder.
	Forced(reply any) (bool, error)
}

// Lockable is a kind of which a key that exists does not say that it is held.
type Lockable interface {
	// IsLocked fills c with the call that asks whether the lock is held.
	IsLocked(c *transport.Call)
	// Locked reads its reply.
	Locked(reply any) (bool, error)
}

// Inspectable is a kind that can tell the holders of a lock.
type Inspectable interface {
	// Inspect fills c with the call that reads the lock, and the places of a queue on the
	// server from first to last, from 0, -1 for its end.
	Inspect(c *transport.Call, first, last int64)
	// Inspected reads its reply.
	Inspected(reply any) (reply.Inspection, error)
}

// Replicable is a kind whose locks replicas can be waited for.
type Replicable interface {
	// Replicate fills c with the call that writes the lock of an owner once more, as it is.
	Replicate(c *transport.Call, owner any)
	// Replicated reads its reply: whether the owner holds the lock.
	Replicated(reply any) (bool, error)
}

// Queueing is a kind whose refused attempts put owners in a queue on the server.
type Queueing interface {
	// Dequeue takes the owner of a lock of that name out of the queue, and waits for that, one
	// command timeout at most. It may run more than once.
	Dequeue(lock string, r *acquire.Request) error
	// Leave does the same in the background, and tries again what fails.
	Leave(lock string, r *acquire.Request)
	// Lasts returns for how long at most the place of r can block others.
	Lasts(r *acquire.Request) time.Duration
}

// Identifying is a kind whose holders have ids of another form than owners. Its holds have the
// zero Owner.
type Identifying interface {
	// NewID returns an id that was never used.
	NewID() string
}

// Fielding is a kind whose owners stand in another form in the lock's hash, as the requests
// and renewals name them.
type Fielding interface {
	// Field returns the form of an owner's text.
	Field(owner string) string
}

// Role is a kind of a family of several, such as readers and writers of one lock: an owner may
// hold the lock as more than one of them.
type Role interface {
	Reentrant
	// Under returns nil when an owner that holds the lock as outer, another kind of the
	// family, may enter it as this one, too, else why not. The re-entry grants it, up to
	// count 1.
	Under(outer Kind) error
	// Shares reports whether several owners can hold the lock as this kind. Inner holds of
	// one hold do not wait for each other then. The renewals of other owners, if those are
	// Redisson's, may leave the lock a shorter time to live than a hold was granted, but
	// none shorter than the watchdog timeout, which all clients have in common.
	Shares() bool
}

// Preparing is a kind whose scripts need something that must be known first.
type Preparing interface {
	// Prepare finds it out. It returns when it is known, or ctx ends, or it takes too long.
	Prepare(ctx context.Context)
}
