package luasrc

// The scripts of the fair lock name their keys and arguments in one order, each
// those that it needs. KEYS: lock, queue, timeouts, channel, latch. ARGV: now,
// owner, wait, lease, target, publish command, message, time to live of the
// latch. Now is the caller's clock, milliseconds since 1970; wait, lease and
// times to live are milliseconds.
//
// All but [FairGiveUp] first remove the dead from the head of the queue: those
// whose deadline has come. So a reply of any kind may come with a shorter queue.

// FairTry takes a free fair lock if nobody is queued before the owner, or enters
// it again. KEYS: lock, queue, timeouts. ARGV: now, owner, wait, lease. Reply:
// nil when acquired, else 1, which is no time; with one argument more an array of
// the milliseconds that the lock has left and its holder. It never queues the
// owner. Taking the lock brings the deadlines of all waiters forward by wait.
var FairTry = load("fair_try")

// FairAcquire is [FairTry], but queues the owner when it does not get the lock,
// unless it is queued already. KEYS and ARGV: as FairTry. Reply: nil when
// acquired; to an owner that was queued already the milliseconds that the lock has
// left, at least 0; to one that was queued now the milliseconds to the deadline of
// the one before it, or what the lock has left, −1 for ever, −2 for free. Any
// number may be negative then, when the one before it is overdue. With one argument
// more the number comes in an array with the holder, the next in the queue, and
// whether this owner was queued now.
var FairAcquire = load("fair_acquire")

// FairReenter enters a fair lock again for an owner that one process alone uses
// and that holds it. KEYS: lock, queue, timeouts. ARGV: now, owner, lease, target.
// Reply: nil when the owner does not hold the lock, else 1. It never takes a free
// lock, never shortens the time to live, and may run more than once.
var FairReenter = load("fair_reenter")

// FairRelease lowers the count of an owner that one process alone uses to a
// target, or frees the lock with target 0 and tells the next in the queue. KEYS:
// lock, queue, timeouts, channel. ARGV: now, owner, lease, target, publish
// command, message. Reply: nil when another holds the lock, 1 when it is free now,
// 0 when it is still held, 2 when nobody held it, in which case the next in the
// queue is told all the same. It may run late or twice.
var FairRelease = load("fair_release")

// FairReleaseShared lowers the count of an owner that several processes may use
// by one, with Redisson's latch. KEYS: lock, queue, timeouts, channel, latch.
// ARGV: now, owner, lease, publish command, message, time to live of the latch.
// Reply: as [FairRelease], or the latch's value, which is an earlier reply.
var FairReleaseShared = load("fair_release_shared")

// FairForceRelease frees a fair lock, whoever holds it, and tells the next in the
// queue. KEYS: lock, queue, timeouts, channel. ARGV: now, publish command,
// message. Reply: 1 when there was a holder, else 0.
var FairForceRelease = load("fair_force_release")

// FairGiveUp takes an owner out of the queue, where its acquire with this wait has
// put it, and brings the deadlines of those behind it forward by the wait. When the
// lock is free, it wakes those who are in front now. KEYS: lock, queue, timeouts,
// channel. ARGV: now, owner, wait, publish command, message, and then any number of
// other owners and their waits, who leave with it as if one after the other. Reply:
// nil. It may run more than once, and for an owner that is not queued.
var FairGiveUp = load("fair_give_up")

// FairInspect reads a fair lock. KEYS: lock, queue, timeouts, channel. ARGV: how
// many waiters to count the listeners of, subcommand of PUBSUB that counts, the first
// and the last place to tell, from 0, -1 for the end of the queue. Reply:
// an array of the milliseconds that the lock has left, its owners and counts in
// turn, that part of the queue, its waiters and deadlines in turn, the listeners of the
// first of these waiters as far as they could be counted, and the length of the queue.
// It changes nothing.
var FairInspect = load("fair_inspect")
