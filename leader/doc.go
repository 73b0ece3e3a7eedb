// Package leader lets one of many processes lead: the one that holds a lock.
//
// # The life of a candidate
//
//	Run ──Lock──▶ waiting ──held──▶ leading: Lead runs with a context ──▶ Lead returned, Unlock
//	  ▲              │                 │                                      │
//	  │              │                 └─ the lock is lost, or Run's context   │
//	  │              │                    ends: Lead's context ends           │
//	  │              │ error                                                  │
//	  │              ▼                                                        │
//	  └── Pause ◀── OnError ◀──────────── the lock was lost ──────────────────┤
//	                 │                                                        │
//	                 │ an error that stays, such as ErrClosed                 │ Lead returned by itself,
//	                 ▼                                                        ▼ or Run's context ended
//	               Run returns it                                           Run returns
//
// The lock is one of package rlock, or of package rfairlock where candidates are to lead in the
// order in which they came. It is renewed while Lead runs. A leader that is asked to stop frees
// the lock as soon as Lead has returned, and another candidate leads at once. A leader that dies,
// or is cut off from Redis, is followed when its lease is over: 30 seconds, or what
// redlatch.WithWatchdogTimeout says.
//
// # What it promises
//
// Lead's context ends before another candidate can lead, unless the lock was taken by force or
// the server forgot it: then it ends with the next renewal, a third of the lease later at most. A
// process that was stopped for longer than its lease finds the context ended at its first look.
// What Lead does between two looks, and what is under way elsewhere, no lock can stop: for what
// must not happen twice take fencing tokens, package rfencedlock. When Lead has not returned by
// the time at which another may lead, that is logged as an error.
package leader
