package luasrc

import (
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// The scripts that keep the queue of a fair lock alive have no counterpart in
// Redisson. They change queue and timeouts only to what Redisson's scripts could
// find there anyway. None of them removes those whose deadline has come.
var (
	// FairHeartbeat keeps the places of one process's waiters in a queue and reads
	// which owners are in front. It only ever puts deadlines off, and may run more than
	// once.
	FairHeartbeat = load("fair_heartbeat")

	// FairEvict takes owners that are proven dead out of the front of a queue, each
	// while it is the first and has the deadline that it was seen with, and takes off
	// the deadlines of all others what that was too late. When the lock is free it wakes
	// the waiters that are in front then. It may run more than once.
	FairEvict = load("fair_evict")

	// FairNudge wakes the owner if it is the first in the queue and the lock is free.
	// It changes nothing.
	FairNudge = load("fair_nudge")
)

// Beat is what a heartbeat is given besides the time and the owners.
type Beat struct {
	// Keep is how long the waiters shall not be dead, FairWait the wait of an owner
	// that sets none, both milliseconds as int64.
	Keep, FairWait any
	// Window is how many of the first in the queue to answer.
	Window int
	// Waiters is how many of this process are added.
	Waiters int
}

// Heartbeat begins a call of [FairHeartbeat]. [AddWaiter] for each waiter of this
// process, and [AddOther] for each other owner that is known, complete it.
func (f *Fair) Heartbeat(c *transport.Call, now any, b Beat) {
	f.begin(c, FairHeartbeat)
	c.Args = append(c.Args, now, b.Keep, b.FairWait, int64(b.Window), int64(b.Waiters))
}

// AddWaiter adds to a heartbeat an owner of this process, with the wait with which it
// was queued.
func AddWaiter(c *transport.Call, owner string, wait any) {
	c.Args = append(c.Args, owner, wait)
}

// AddOther adds to a heartbeat an owner of another process.
func AddOther(c *transport.Call, other reply.Other) {
	var lives any = "0"
	if other.Living {
		lives = "1"
	}
	c.Args = append(c.Args, other.Owner, other.Wait, lives)
}

// Evict fills c with a call of [FairEvict]: the dead are in the order of the queue, and
// keep is as in [Beat].
func (f *Fair) Evict(c *transport.Call, now, keep any, dead []reply.Place) {
	f.begin(c, FairEvict)
	c.Args = append(c.Args, now, keep, f.Publish, codec.MessageUnlock)
	for _, place := range dead {
		c.Args = append(c.Args, place.Owner, place.Deadline)
	}
}

// Nudge fills c with a call of [FairNudge].
func (f *Fair) Nudge(c *transport.Call, owner string) {
	c.Script, c.NumKeys = FairNudge, 3
	c.Args = append(c.Args, f.Key, f.Queue, f.Channel, owner, f.Publish, codec.MessageUnlock)
}
