package luasrc

import (
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

// The scripts of the fair lock. KEYS, ARGV, replies, effects and messages stand in the
// header of each file. [Fair] fills calls of them.
//
// All but [FairGiveUp] and [FairInspect] first remove the dead from the head of the
// queue: the waiters whose deadline has come.
var (
	// FairTry takes a free fair lock if no other owner is queued before the owner, or
	// enters it again. It never queues the owner.
	FairTry = guarded("fair_try")

	// FairAcquire is [FairTry], but queues the owner when it does not get the lock,
	// unless it is queued already.
	FairAcquire = guarded("fair_acquire")

	// FairReenter enters a fair lock again for an owner that one process alone uses and
	// that holds it. It never takes a free lock, never shortens the time to live, and
	// with a target it may run more than once.
	FairReenter = load("fair_reenter")

	// FairRelease lowers the count of an owner that one process alone uses to a target,
	// or frees the lock and wakes the next in the queue, also when no owner held the
	// lock. It may run late or twice.
	FairRelease = load("fair_release")

	// FairReleaseShared lowers the count of an owner that several processes may use by
	// one, with Redisson's latch.
	FairReleaseShared = load("fair_release_shared")

	// FairForceRelease frees a fair lock, whichever owner holds it, and wakes the next
	// in the queue.
	FairForceRelease = load("fair_force_release")

	// FairGiveUp takes owners out of the queue and brings the deadlines of those behind
	// them forward. When the lock is free, it wakes the waiters that are in front now.
	// It may run more than once, and for an owner that is not queued.
	FairGiveUp = load("fair_give_up")

	// FairInspect reads a fair lock. It changes nothing.
	FairInspect = load("fair_inspect")
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

// begin begins a call of a script.
func (f *Fair) begin(c *transport.Call, script *transport.Script) {
	c.Script, c.NumKeys = script, 4
	c.Args = append(c.Args, f.Key, f.Queue, f.Timeouts, f.Channel)
}

// Try fills c with a call of [FairTry] whose refusal names the holder.
func (f *Fair) Try(c *transport.Call, now, owner, wait, lease any) {
	f.begin(c, FairTry)
	c.Args = append(c.Args, now, owner, wait, lease, tell)
}

// Acquire fills c with a call of [FairAcquire] whose refusal names the holder and the
// next in the queue.
func (f *Fair) Acquire(c *transport.Call, now, owner, wait, lease any) {
	f.begin(c, FairAcquire)
	c.Args = append(c.Args, now, owner, wait, lease, tell)
}

// Reenter fills c with a call of [FairReenter].
func (f *Fair) Reenter(c *transport.Call, now, owner, lease any, target int64) {
	f.begin(c, FairReenter)
	c.Args = append(c.Args, now, owner, lease, target)
}

// Release fills c with a call of [FairRelease].
func (f *Fair) Release(c *transport.Call, now, owner, lease any, target int64) {
	f.begin(c, FairRelease)
	c.Args = append(c.Args, now, owner, lease, target, f.Publish, codec.MessageUnlock)
}

// ReleaseShared fills c with a call of [FairReleaseShared].
func (f *Fair) ReleaseShared(c *transport.Call, latch string, now, owner, lease any) {
	c.Script, c.NumKeys = FairReleaseShared, 5
	c.Args = append(c.Args, f.Key, f.Queue, f.Timeouts, f.Channel, latch,
		now, owner, lease, f.Publish, codec.MessageUnlock, latchMillis)
}

// ForceRelease fills c with a call of [FairForceRelease].
func (f *Fair) ForceRelease(c *transport.Call, now any) {
	f.begin(c, FairForceRelease)
	c.Args = append(c.Args, now, f.Publish, codec.MessageUnlock)
}

// GiveUp fills c with a call of [FairGiveUp]. If c is such a call already, for other
// owners of the same lock, it adds the owner.
func (f *Fair) GiveUp(c *transport.Call, now, owner, wait any) {
	if c.Script == FairGiveUp {
		c.Args = append(c.Args, owner, wait)
		return
	}
	f.begin(c, FairGiveUp)
	c.Args = append(c.Args, now, owner, wait, f.Publish, codec.MessageUnlock)
}

// Inspect fills c with a call of [FairInspect], for the places from first to last. It
// counts the listeners of as many of them, by this subcommand of PUBSUB.
func (f *Fair) Inspect(c *transport.Call, listeners, count any, first, last int64) {
	f.begin(c, FairInspect)
	c.Args = append(c.Args, listeners, count, first, last)
}
