package luasrc

// Acquire takes a free lock or enters it again. KEYS: lock. ARGV: lease in
// milliseconds, owner, and a third when a refusal is to say who holds the lock.
// Reply: nil when acquired, else the milliseconds that the lock has left, −1 for
// ever; with a third argument an array of them and the holder. It runs three
// commands on a free lock.
var Acquire = load("acquire")

// Release lowers the count of an owner that one process alone uses to a target,
// or frees the lock with target 0. KEYS: lock, channel. ARGV: owner, target,
// lease in milliseconds, publish command, message. Reply: nil when the owner
// does not hold the lock, 1 when it is free now, 0 when it is still held. It may
// run late or twice. It runs three commands when it frees or lowers.
var Release = load("release")

// Pass passes a lock on from the owner that holds it to an heir, without freeing it
// and without a message. KEYS: lock. ARGV: lease of the heir in milliseconds, heir,
// owner. Reply: nil when the heir holds the lock now, 0 when the owner does not hold
// it, and nothing was done. It runs five commands.
var Pass = load("pass")

// ForceRelease frees a lock, whoever holds it. KEYS: lock, channel. ARGV:
// publish command, message. Reply: 1 when there was a holder, else 0.
var ForceRelease = load("force_release")

// Renew extends the leases of the locks whose owners still hold them. KEYS: n
// locks of one hash slot. ARGV: n pairs of owner and lease in
// milliseconds. Reply: an array of n, 1 for renewed and 0 for not held. It never
// creates a key, and never shortens a time to live.
var Renew = load("renew")

// Reenter enters a lock again for an owner that holds it. KEYS: lock. ARGV: lease
// in milliseconds, owner, target. Reply: nil when the owner does not hold the lock,
// else 1. It never takes a free lock, never shortens the time to live, and may run
// more than once. With target 0 it counts one up, for owners that others use, too,
// and then runs once only.
var Reenter = load("reenter")

// ReleaseShared lowers the count of an owner that several processes may use by
// one, with Redisson's latch. KEYS: lock, channel, latch. ARGV: message, lease in
// milliseconds, owner, publish command, time to live of the latch in
// milliseconds. Reply: as Release, or the latch's value.
var ReleaseShared = load("release_shared")

// Inspect reads a lock. KEYS: lock. Reply: an array of the milliseconds that the
// lock has left, −1 for ever, −2 when it is free, and its owners and counts in
// turn. It changes nothing.
var Inspect = load("inspect")

// Replicate writes a lock once more as it is, so that it can be waited for that
// replicas have it. KEYS: lock. ARGV: owner. Reply: nil when the owner does not hold
// the lock, else 1. It changes nothing, and may run late and more than once.
var Replicate = load("replicate")
