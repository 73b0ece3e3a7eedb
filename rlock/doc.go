// Package rlock is Redisson's reentrant lock: a hash with one field per owner,
// a lease as its time to live, and a message to the waiters when it is freed.
//
// # The life of an acquisition
//
//	Lock ──attempt──▶ held ────────────────────────────────────────▶ Hold
//	        │                                                ▲
//	        │ another owner has it                           │
//	        ▼                                                │
//	    subscribe (acknowledged)                             │
//	        │                                                │
//	        ▼                                                │
//	    attempt ◀──────────────────────────────┐             │
//	        │ └── held ────────────────────────┼─────────────┘
//	        ▼                                  │
//	    wait for the first of: message, gap, lease of the holder over,
//	    poll cap ──────────────────────────────┘
//	        │ context, WithWait, client closed
//	        ▼
//	    give up
//
// The attempt after the subscription closes the gap in which the lock could be
// freed unheard. A message never says "you have it": it is a reason to try.
//
// An attempt always runs to completion on the server; the context bounds only
// the waiting for it. If the caller has left when the reply says "acquired", the
// lock is given back at once. If the reply is lost, the attempt's owner is never
// used again, and what it may have acquired is looked for and freed in the
// background, until the server has answered for one lease.
//
// A client with redlatch.WithReplicaSync goes one step further:
//
//	held ──▶ live, unknown to the caller ──enough replicas have it──▶ Hold
//	             │
//	             └── too few in time, context, WithWait, client closed, or over by
//	                 itself ──▶ given up like a hold, ErrNotReplicated
//
// # The life of a hold
//
//	live ──Unlock──────▶ released
//	  │ ──LetExpire───▶ left to its lease
//	  │ ──lease over, not renewed in time, or gone on the server──▶ lost
//	  │ ──HandOver────▶ handed over, the lock goes on elsewhere
//	  │ ──WithMaxHold is over──▶ at its maximum, the lock left to its lease or Unlock
//	  └ ──Client.Close─▶ closed
//
// A hold ends once, for one reason, which [Hold.Err] and the cause of its
// contexts tell. It ends before the server can grant the lock to another
// owner, unless the lock was taken by force or the server forgot it: then it
// ends with the next renewal.
//
// A hold that is entered again by its proof, see [Hold.Context], is one of several of
// its owner. Each ends for itself; the last one given up frees the lock. Callers with
// the proof of one hold exclude each other.
//
// # The local queue
//
// The callers of one process that want one lock take turns: only the one whose
// turn it is goes through the states above, the others wait for the turn and send
// nothing. The turn stays with the hold and is passed on when the release is on
// its way, or when the attempt has come to nothing. Where only clients of this
// library seem to want the lock, the lock itself goes with the turn, for a burst of turns:
//
//	          Unlock                   the next caller: one script
//	hold A ──────────▶ transferred ───────────────────────────▶ hold B
//	                       │ no next caller, it has left, or no reply
//	                       ▼
//	                   release, as without a queue
package rlock
