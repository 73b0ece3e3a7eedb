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
// an owner that is gone it answers nil each time. [Pass] does what a release and an
// acquire right behind it do, in one step and without the message in between.
//
// # The fair lock
//
// A fair lock has the same hash and two keys more: the queue, a list of the owners
// that wait, and the timeouts, a sorted set that gives each of them a deadline. An
// owner whose deadline has come, by the clock of the client that asks, counts as
// dead. It is removed when it is at the head of the queue, and nowhere else.
//
//	                        acquire, when free and no other is before it
//	    ┌────────────────────────────────────────────────────────────────┐
//	    │                                                                ▼
//	outside ──────────▶ queued ────────────▶ head ────────────────────▶ held
//	    ▲    acquire      │  those before      │  acquire, when free      │
//	    │                 │  it have left      │                          │
//	    └─────────────────┴────────────────────┴──────────────────────────┘
//	         give up         give up, or dead      release, or the lease runs out
//
// A deadline is the end of the lease, or the deadline of the one before, plus the
// owner's own wait. So an owner that takes the lock ([FairTry], [FairAcquire]) or
// gives up ([FairGiveUp]) subtracts its wait from the deadlines of others again. A
// release wakes the head alone, on a channel of its own. All this is as in
// Redisson, down to queues and timeouts that disagree, which a failure can leave
// behind. There are these differences, on purpose:
//
//   - [FairReenter] and [FairRelease] have a target, as Reenter and Release have.
//   - A release of a lock that was free wakes the head, as in Redisson, but
//     answers 2 instead of 1, so that a lost hold is not taken for a released one.
//   - [FairGiveUp] wakes those in front when the lock is free. The owner that leaves
//     may have been the one that was woken; without that, the next would sleep on.
//
// # Keeping the queue
//
// In Redisson deadlines that its own rules cannot keep take places away from the
// living, and the dead stand in the way until theirs have come. Three scripts that
// Redisson does not have mend both, for its waiters, too. They use its keys, and
// write nothing there that its scripts could not find anyway:
//
//   - [FairHeartbeat] puts the deadlines of one process's waiters off, and those of
//     others where they would fall out of step; it removes no waiter.
//   - [FairEvict] takes out the first while it is known to be dead, as if its
//     deadline had come.
//   - [FairNudge] wakes the first of a free lock once more.
//
// The caller has to know which waiters are alive and which are dead.
//
// # The read/write lock
//
// Its hash has a mode, the owners of readers, and at most one of the writer, in a form of its
// own. Each hold of a reader has a key, which lives for the hold's lease: by these keys a
// release tells readers that are alive from those that crashed. A release asks for all of
// them, so it costs the server by the number of holds of readers. [Reenter], [Renew] and
// [Replicate] serve the writer as they are. On purpose different from Redisson's: no script
// makes the lock last shorter than a hold is owed, and the end of the writer's last hold wakes
// all that wait, also when its own reads remain.
//
// # Shared functions
//
// What several scripts do stands once, as a function in the folder shared. The line
// "-- Uses:" in a file's header names the functions that the file calls. They are put
// in front of the script when the program starts. They read neither KEYS nor ARGV.
//
// # On every server
//
// Every script runs unchanged on Redis from 6.0 on, on Valkey, and on the
// in-process server of package embedded. Therefore the scripts turn texts into
// numbers, never the other way round, rely on no order of hash fields, unpack no
// more than a thousand values, and use no libraries but string and math. They
// keep no global variables.
//
// Every script has at least one key, because some servers refuse scripts without. Scripts
// declare all keys that they use, except the keys of readers' holds: the caller does not know
// the other readers. Scripts that use those have a flag for Dragonfly.
//
// # The contract of a script
//
// The comment on top of each file is its contract: keys, arguments, replies, effects
// and messages; a test holds it and the code together. All scripts have one order of
// KEYS and one of ARGV, which stand in docs/protocol.md, and each script has those that
// it needs. [Plain], [Fair], [FillRenew] and [FillReplicate] fill the calls. So a change
// of a script's arguments touches the script, its method, and docs/protocol.md.
package luasrc
