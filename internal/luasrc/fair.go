package luasrc

import (
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// The scripts of the fair lock. KEYS, ARGV, replies, effects and messages stand in the
// header of each file. [Fair] fills calls of them.
//
// All but [FairGiveUp] and [FairInspect] first remove the dead from the head of the
// queue: the waiters whose deadline has come.
var (
	FairTry           = guarded("fair_try")         // takes the lock if no other owner is before it; never queues
	FairAcquire       = guarded("fair_acquire")     // [FairTry], but queues the owner when it does not get the lock
	FairReenter       = load("fair_reenter")        // enters it for its owner; may run twice with a target
	FairRelease       = load("fair_release")        // lowers an unshared count to a target; may run late or twice
	FairReleaseShared = load("fair_release_shared") // lowers a shared count by one, with Redisson's latch
	FairForceRelease  = load("fair_force_release")  // frees the lock, whichever owner holds it, and wakes the next
	FairGiveUp        = load("fair_give_up")        // takes owners out of the queue; may run twice
	FairInspect       = load("fair_inspect")        // reads the lock and its queue
)

// Fair fills calls of the scripts for one fair lock. Each method expects a call that
// was reset and leaves Urgent and Vital alone. Now is the caller's clock, milliseconds
// since 1970; leases and waits are milliseconds. All are int64: what is sent often, the
// caller boxes once.
type Fair struct {
	// Key, Queue, Timeouts and Channel are the names of the lock, of its queue, of its
	// deadlines and of its channel, all strings.
	Key, Queue, Timeouts, Channel any
	// Publish is PUBLISH or SPUBLISH.
	Publish any
}

// fill fills c with a call of a script: the lock's keys, and then args.
func (f *Fair) fill(c *transport.Call, script *transport.Script, args ...any) {
	fill(c, script, 4, f.Key, f.Queue, f.Timeouts, f.Channel)
	c.Args = append(c.Args, args...)
}

// Try fills c with a call of [FairTry] whose refusal names the holder.
func (f *Fair) Try(c *transport.Call, now, owner, wait, lease any) {
	f.fill(c, FairTry, now, owner, wait, lease, tell)
}

// Acquire fills c with a call of [FairAcquire] whose refusal names the holder and the
// next in the queue.
func (f *Fair) Acquire(c *transport.Call, now, owner, wait, lease any) {
	f.fill(c, FairAcquire, now, owner, wait, lease, tell)
}

// Reenter fills c with a call of [FairReenter].
func (f *Fair) Reenter(c *transport.Call, now, owner, lease any, target int64) {
	f.fill(c, FairReenter, now, owner, lease, target)
}

// Release fills c with a call of [FairRelease].
func (f *Fair) Release(c *transport.Call, now, owner, lease any, target int64) {
	f.fill(c, FairRelease, now, owner, lease, target, f.Publish, codec.MessageUnlock)
}

// ReleaseShared fills c with a call of [FairReleaseShared].
func (f *Fair) ReleaseShared(c *transport.Call, latch string, now, owner, lease any) {
	f.fill(c, FairReleaseShared, latch, now, owner, lease, f.Publish, codec.MessageUnlock, latchMillis)
	c.NumKeys++ // the latch
}

// ForceRelease fills c with a call of [FairForceRelease].
func (f *Fair) ForceRelease(c *transport.Call, now any) {
	f.fill(c, FairForceRelease, now, f.Publish, codec.MessageUnlock)
}

// GiveUp fills c with a call of [FairGiveUp]. If c is such a call already, for other
// owners of the same lock, it adds the owner.
func (f *Fair) GiveUp(c *transport.Call, now, owner, wait any) {
	if c.Script == FairGiveUp {
		c.Args = append(c.Args, owner, wait)
		return
	}
	f.fill(c, FairGiveUp, now, owner, wait, f.Publish, codec.MessageUnlock)
}

// Inspect fills c with a call of [FairInspect], for the places from first to last. It
// counts the listeners of as many of them, by this subcommand of PUBSUB.
func (f *Fair) Inspect(c *transport.Call, listeners, count any, first, last int64) {
	f.fill(c, FairInspect, listeners, count, first, last)
}

// The scripts that keep the queue of a fair lock alive have no counterpart in
// Redisson. They change queue and timeouts only to what Redisson's scripts could
// find there anyway. None of them removes those whose deadline has come.
var (
	FairHeartbeat = load("fair_heartbeat") // keeps the places of one process's waiters, and reads the front; may run twice
	FairEvict     = load("fair_evict")     // takes dead owners out of the front; may run twice
	FairNudge     = load("fair_nudge")     // wakes the first in the queue of a free lock once more
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
	f.fill(c, FairHeartbeat, now, b.Keep, b.FairWait, int64(b.Window), int64(b.Waiters))
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
	f.fill(c, FairEvict, now, keep, f.Publish, codec.MessageUnlock)
	for _, place := range dead {
		c.Args = append(c.Args, place.Owner, place.Deadline)
	}
}

// Nudge fills c with a call of [FairNudge].
func (f *Fair) Nudge(c *transport.Call, owner string) {
	fill(c, FairNudge, 3, f.Key, f.Queue, f.Channel, owner, f.Publish, codec.MessageUnlock)
}
