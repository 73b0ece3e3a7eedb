package luasrc

// The scripts that keep the queue of a fair lock alive have no counterpart in
// Redisson. They change queue and timeouts only to what Redisson's scripts could
// find there anyway. None of them removes those whose deadline has come.

// FairHeartbeat keeps the places of one process's waiters in a queue, and answers
// who is in front. KEYS: lock, queue, timeouts. ARGV: now, how long the waiters
// shall be kept, wait of who sets none, how many of the first to answer, the number
// of the process's waiters, for each of them the owner and its wait, then for each
// other one that is known the owner, its wait, and 1 if it lives. Reply: an array of
// the milliseconds that the lock has left, −1 for ever, −2 for free, the first owners
// and deadlines in turn, those of the given owners that have no place or no deadline,
// and the length of the queue. It only ever puts deadlines off, and may run more
// than once.
var FairHeartbeat = load("fair_heartbeat")

// FairEvict takes owners that are proven dead out of the front of a queue, each
// while it is the first and has the deadline that it was seen with, and takes off
// the deadlines of all others what that was too late. When the lock is free it
// wakes those who are in front then. KEYS: lock, queue, timeouts, channel. ARGV:
// now, how long waiters are kept, publish command, message, then for each of the
// dead the owner and its deadline as text, empty for none. Reply: an array of those
// that were taken out. It may run more than once.
var FairEvict = load("fair_evict")

// FairNudge wakes the owner if it is the first in the queue and the lock is free.
// KEYS: lock, queue, channel. ARGV: owner, publish command, message. Reply: 1 when
// it was woken, else 0. It changes nothing.
var FairNudge = load("fair_nudge")
