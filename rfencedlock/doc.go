// Package rfencedlock is Redisson's fenced lock, RFencedLock: a lock whose every hold has a
// fencing token, a number that is higher than that of every hold before it. [New] makes it of
// the plain lock and [NewFair] of the fair lock, which Redisson does not have with tokens.
//
// # What a token is for
//
// A lease cannot stop a process that is paused, or code that does not look at its context.
// When the process goes on, its lease is over and another holder is at work; only what they
// both write to can refuse the late one. For that each write carries the token of its hold,
// and the resource refuses a token below the highest that it has seen:
//
//	A: Lock ──▶ token 7 ──▶ paused ─────────────────────────▶ writes with 7: refused
//	                           │                            ▲
//	                           ▼ its lease ends             │ the resource has seen 8
//	B:                       Lock ──▶ token 8 ──▶ writes with 8
//
// Package fence has such checks for SQL databases, for Redis and for HTTP servers. A token
// that nothing checks protects nothing.
//
// # Keys
//
// Beside the keys of the plain or fair lock is one more, the counter: a string that holds the
// last token that was given. Each acquisition raises it by one in the same script: Lock and
// TryLock, re-entry, a transfer to the next caller of the process, and Resume. It has no time
// to live, and unlock, ForceUnlock and expiry leave it alone. Redisson's RFencedLock of the
// same name uses the same counter. A plain or fair lock of that name, RLock or RFairLock in
// Java, excludes the fenced one, and gives no tokens.
//
// # When the counter is lost
//
// Tokens are worth as much as the counter lasts. An eviction (maxmemory-policy allkeys-*),
// FLUSHALL, a deleted key, or a failover to a replica that did not have the last increment
// yet, makes it begin again, at 1 or a little below where it was. A resource that has seen
// higher tokens then refuses all holders until the counter has caught up; one that has not can
// be given a token twice. [WithEpoch] makes locks refuse a counter that began again, until an
// operator has begun another epoch; it does not see one that has lost a few increments, which
// redlatch.WithReplicaSync makes rarer. docs/reliability.md says what to set.
package rfencedlock
