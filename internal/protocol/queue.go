package protocol

import (
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Waiter is an owner that waits in a queue. What travels is boxed once.
type Waiter struct {
	// Owner is the owner's text.
	Owner string
	// Wait is the wait with which the owner was queued, in milliseconds, an int64:
	// [Acquisition].Wait.
	Wait any
}

// Queue answers for the queue of one lock. Kinds whose Queues is true implement it
// besides [Protocol]. All methods are safe for concurrent use, and pure but for the
// time of day. Each that is given a call fills a reset one; each of those calls may
// run more than once.
type Queue interface {
	// Heartbeat fills c with the call that keeps the places of the waiters, all
	// of one process, and of the others that live, and reads the first window places
	// and whether the lock is free. A living one that is the first is kept while the
	// lock is held. Reply: see reply.DecodeBeat.
	Heartbeat(c *transport.Call, window int, waiters []Waiter, others []reply.Other)

	// Evict fills c with the call that takes dead owners out of the front of the
	// queue, in the order given, each while it is the first and has the deadline
	// that a heartbeat has read. If the lock is free, whoever is first then is
	// woken. Reply: see reply.DecodeEvicted.
	Evict(c *transport.Call, dead []reply.Place)

	// Nudge fills c with the call that wakes the owner if it is the first in the
	// queue and the lock is free. Reply: see reply.Nudged.
	Nudge(c *transport.Call, owner string)

	// WaiterChannel returns the channel on which the owner's waiter is woken.
	WaiterChannel(owner string) string
}
