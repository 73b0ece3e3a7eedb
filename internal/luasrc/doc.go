// Package luasrc holds the Lua scripts that change locks, one file each.
//
// A lock is one hash: a field per owner, whose value counts how often that
// owner has entered, and a time to live, which is the lease. The key is there
// if and only if the lock is held:
//
//	          acquire                acquire, same owner
//	free ───────────────▶ held(1) ─────────────────────▶ held(n)
//	 ▲                      │  ▲                            │
//	 │  release to 0        │  └──── release to 1 ──────────┤
//	 ├──────────────────────┴───────────────────────────────┤
//	 │  force release, or the lease runs out                │
//	 └──────────────────────────────────────────────────────┘
//
// [Acquire], [ForceRelease] and [Renew] leave the state and send the messages
// that Redisson's scripts do, so that programs of both kinds share locks.
// [Release] leaves the same state in the ordinary course, but carries the count
// it aims at in place of a step down by one. Running it late or twice is
// harmless, hence it writes no unlock latch, which Redisson needs for that; to
// an owner that is gone it answers nil each time.
//
// Every script runs unchanged on Redis from 6.0 on, on Valkey, and on the
// in-process server of package embedded. Therefore the scripts turn counts into
// numbers by tonumber, never the other way round, rely on no order of hash
// fields, and use no library but string. They keep no global variables. The
// comment on top of each file is its contract: keys, arguments, replies,
// effects and messages; a test holds it and the code together.
package luasrc
