package luasrc

import (
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// The scripts for the fair lock. All of them except [FairGiveUp] and [FairInspect] first remove overdue waiters from
// the head of the queue.
var (
	FairTry           = load("fair_try", guard)     // acquires the lock if no other owner is ahead in the queue
	FairAcquire       = load("fair_acquire", guard) // [FairTry], but adds the owner to the queue on failure
	FairReenter       = load("fair_reenter")        // reenters the lock; may run twice with a target
	FairRelease       = load("fair_release")        // lowers an unshared count to a target; may run late or twice
	FairReleaseShared = load("fair_release_shared") // lowers a shared count by one, with Redisson's latch
	FairForceRelease  = load("fair_force_release")  // frees the lock regardless of its holder, and notifies the next waiter
	FairGiveUp        = load("fair_give_up")        // removes owners from the queue; may run twice
	FairInspect       = load("fair_inspect")
)

// Fair fills calls to the scripts for one fair lock. The argument now is the time on the caller's clock in int64
// milliseconds since 1970.
type Fair struct {
	// The names of the lock, its other keys and its channel, all of which are strings.
	Key, Queue, Timeouts, Channel any
	Publish                       any // PUBLISH or SPUBLISH
	Tokens
}

func (f *Fair) fill(c *transport.Call, script *transport.Script, args ...any) {
	fill(c, script, 4, f.Key, f.Queue, f.Timeouts, f.Channel)
	c.Args = append(c.Args, args...)
}

func (f *Fair) fenced(c *transport.Call, script *transport.Script, args ...any) {
	fill(c, script, 5, f.Key, f.Queue, f.Timeouts, f.Counter, f.Channel)
	c.Args = append(append(c.Args, args...), f.Least)
}

func (f *Fair) take(c *transport.Call, plain, fenced *transport.Script, args ...any) {
	if f.Counter != nil {
		f.fenced(c, fenced, args...)
		return
	}
	f.fill(c, plain, args...)
	c.Args = append(c.Args, tell)
}

// Try fills c with [FairTry] or [FencedFairTry]. If the lock is not acquired, the reply names the holder.
func (f *Fair) Try(c *transport.Call, now, owner, wait, lease any) {
	f.take(c, FairTry, FencedFairTry, now, owner, wait, lease)
}

// Acquire fills c with [FairAcquire] or [FencedFairAcquire]. If the lock is not acquired, the reply names the holder
// and the next waiter.
func (f *Fair) Acquire(c *transport.Call, now, owner, wait, lease any) {
	f.take(c, FairAcquire, FencedFairAcquire, now, owner, wait, lease)
}

// Reenter fills c with [FairReenter] or [FencedFairReenter].
func (f *Fair) Reenter(c *transport.Call, now, owner, lease any, target int64) {
	if f.Counter != nil {
		f.fenced(c, FencedFairReenter, now, owner, lease, target)
		return
	}
	f.fill(c, FairReenter, now, owner, lease, target)
}

// Release fills c with [FairRelease].
func (f *Fair) Release(c *transport.Call, now, owner, lease any, target int64) {
	f.fill(c, FairRelease, now, owner, lease, target, f.Publish, protocol.MessageUnlock)
}

// ReleaseShared fills c with [FairReleaseShared].
func (f *Fair) ReleaseShared(c *transport.Call, latch string, now, owner, lease any) {
	f.fill(c, FairReleaseShared, latch, now, owner, lease, f.Publish, protocol.MessageUnlock, latchMillis)
	c.NumKeys++
}

// ForceRelease fills c with [FairForceRelease].
func (f *Fair) ForceRelease(c *transport.Call, now any) {
	f.fill(c, FairForceRelease, now, f.Publish, protocol.MessageUnlock)
}

// GiveUp fills c with [FairGiveUp]. If c is already such a call for this lock, GiveUp adds the owner to it.
func (f *Fair) GiveUp(c *transport.Call, now, owner, wait any) {
	if c.Script == FairGiveUp {
		c.Args = append(c.Args, owner, wait)
		return
	}
	f.fill(c, FairGiveUp, now, owner, wait, f.Publish, protocol.MessageUnlock)
}

// Inspect fills c with [FairInspect] for the places in the queue from first to last. The script counts the subscribers
// for as many of these places as the argument listeners says, with the PUBSUB subcommand count.
func (f *Fair) Inspect(c *transport.Call, listeners, count any, first, last int64) {
	f.fill(c, FairInspect, listeners, count, first, last)
}

// The scripts that maintain the queue of a fair lock. Redisson does not have such scripts. They do not remove overdue
// waiters.
var (
	FairHeartbeat = load("fair_heartbeat") // keeps a process's waiters in the queue, and reads the front of the queue
	FairEvict     = load("fair_evict")     // evicts dead owners from the front of the queue; may run twice
	FairNudge     = load("fair_nudge")     // notifies the first waiter of a free lock again
)

// Beat holds the parameters of a heartbeat.
type Beat struct {
	// Keep is the minimum time for which waiters stay in the queue. FairWait is the wait of an owner that does not set
	// one. Both are int64 milliseconds.
	Keep, FairWait any
	// Window is the maximum number of waiters to return from the front of the queue.
	Window int
	// Waiters is the number of calls to [AddWaiter] that follow.
	Waiters int
}

// Heartbeat fills c with the beginning of a call to [FairHeartbeat]. To complete it, call [AddWaiter] for each waiter
// in this process and then [AddOther] for each other known owner.
func (f *Fair) Heartbeat(c *transport.Call, now any, b Beat) {
	f.fill(c, FairHeartbeat, now, b.Keep, b.FairWait, int64(b.Window), int64(b.Waiters))
}

// AddWaiter adds an owner in this process, and the wait with which it was queued.
func AddWaiter(c *transport.Call, owner string, wait any) {
	c.Args = append(c.Args, owner, wait)
}

// AddOther adds an owner in another process.
func AddOther(c *transport.Call, other reply.Other) {
	var lives any = "0"
	if other.Living {
		lives = "1"
	}
	c.Args = append(c.Args, other.Owner, other.Wait, lives)
}

// Evict fills c with [FairEvict]. The owners in dead must be in the order of the queue. For keep, see [Beat].
func (f *Fair) Evict(c *transport.Call, now, keep any, dead []reply.Place) {
	f.fill(c, FairEvict, now, keep, f.Publish, protocol.MessageUnlock)
	for _, place := range dead {
		c.Args = append(c.Args, place.Owner, place.Deadline)
	}
}

// Nudge fills c with [FairNudge].
func (f *Fair) Nudge(c *transport.Call, owner string) {
	fill(c, FairNudge, 3, f.Key, f.Queue, f.Channel, owner, f.Publish, protocol.MessageUnlock)
}
