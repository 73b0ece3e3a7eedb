// Package protocol is the seam between the acquire loop and a kind of lock.
//
// Fairness is a policy: a [Protocol] answers pure questions about one lock, such
// as which call acquires it and which channel its waiters listen to, and does no
// I/O. The loop that sends the calls and waits is written once, in rlock.
package protocol

import "github.com/redlatch/redlatch/transport"

// Acquisition is what a protocol needs to know of one acquisition. Values that
// travel as arguments are boxed once, so that sending them costs no allocation.
type Acquisition struct {
	// Owner is the owner's text, a string.
	Owner any
	// Lease is the lease in milliseconds, an int64.
	Lease any
	// Wait is for how long a queue on the server keeps the owner's place once it
	// is its turn, in milliseconds, an int64. It stays the same for as long as the
	// owner waits. Nil for kinds without such a queue.
	Wait any
}

// Protocol answers for one lock. All methods are safe for concurrent use, and pure
// but for the time of day, which some kinds send. Each fills a reset call.
type Protocol interface {
	// Kind names the kind of lock.
	Kind() string

	// Key returns the lock's main key, which is its mapped name.
	Key() string

	// Queues reports whether those who wait stand in a queue on the server: then
	// Acquire queues the owner that it refuses, who must be taken out with GiveUp
	// when it goes without the lock, and each has a channel of its own.
	Queues() bool

	// Try fills c with the call that takes the lock for a.Owner, who does not
	// wait for it. Reply: as Acquire.
	Try(c *transport.Call, a *Acquisition)

	// Acquire fills c with the call that takes the lock for a.Owner. Reply: nil
	// when acquired, else the milliseconds that the present holder has left, and
	// who that is. Kinds that queue also say who is the next in the queue.
	Acquire(c *transport.Call, a *Acquisition)

	// Pass fills c with the call that passes the lock on from one owner to a.Owner, who
	// has never held it, without freeing it. Both are of one process, which alone uses
	// them. Only for kinds that do not queue. Reply: nil when passed on, 0 when from
	// does not hold the lock, and nothing was done.
	Pass(c *transport.Call, a *Acquisition, from any)

	// GiveUp fills c with the call that takes the owner out of the queue. It may
	// be sent again. Only for kinds that queue. Its reply says nothing. Where c is
	// such a call for other owners of the same lock already, it adds this owner.
	GiveUp(c *transport.Call, a *Acquisition)

	// Reenter fills c with the call that enters the lock again for an owner that
	// holds it: up to count target, for one that one process alone uses, which may
	// run more than once; or, with target 0, by one. Reply: nil when the owner does
	// not hold the lock.
	Reenter(c *transport.Call, a *Acquisition, target int64)

	// Release fills c with the call that lowers the owner's count to target, 0
	// to free the lock. Only for owners that one process alone uses: it may run
	// late or twice without harm. Reply: nil when the owner does not hold the
	// lock, 1 when it is free now, 0 when it is still held.
	Release(c *transport.Call, a *Acquisition, target int64)

	// ReleaseShared fills c with the call that lowers the count of an owner that
	// others may use, too. The latch lets it be sent again. Reply: as Release.
	ReleaseShared(c *transport.Call, a *Acquisition, latch string)

	// ForceRelease fills c with the call that takes the lock from whoever holds
	// it. Reply: 1 when there was a holder, 0 when not.
	ForceRelease(c *transport.Call)

	// Inspect fills c with the call that reads the lock, and, for kinds that queue,
	// the places from first to last, from 0, -1 for the end of the queue. Reply: see
	// reply.Inspected.
	Inspect(c *transport.Call, first, last int64)

	// Channel returns the channel on which the owner's waiter is woken.
	Channel(a *Acquisition) string
}
