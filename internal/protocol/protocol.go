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
}

// Protocol answers for one lock. All methods are pure and safe for concurrent
// use. Each fills a reset call.
type Protocol interface {
	// Kind names the kind of lock.
	Kind() string

	// Key returns the lock's main key, which is its mapped name.
	Key() string

	// Acquire fills c with the call that takes the lock for a.Owner. Reply: nil
	// when acquired, else the milliseconds that the present holder has left, and
	// who that is.
	Acquire(c *transport.Call, a *Acquisition)

	// Reenter fills c with the call that enters the lock again for an owner that
	// one process alone uses and that holds it, up to count target. It may run
	// more than once. Reply: nil when the owner does not hold the lock.
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

	// Inspect fills c with the call that reads the lock. Reply: the milliseconds
	// that the holder has left, and the lock's fields and values in turn.
	Inspect(c *transport.Call)

	// Channel returns the channel on which the owner's waiter is woken.
	Channel(a *Acquisition) string
}
