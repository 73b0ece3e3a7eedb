// Package localqueue is a strategy for locks that one owner holds at a time: the callers of one
// process wait in a queue, first come, first served. One of them has the turn and talks to
// Redis; the others cost nothing. [New] makes the strategy of a lock; a [Queue] has its
// callers.
//
//	          Enter                     Pass, PassLock of the one before
//	caller ──────────▶ waiter ─────────────────────────▶ has the turn
//	   │ the turn is free  │ Quit                          │  Granted, Refused, Away
//	   └─────────────────▶ has the turn                    │  say what Redis answered
//	                                                       ▼
//	                                   Pass      the lock is freed, the next one acquires it
//	                                   PassLock  the lock goes with the turn, not free in between
//
// A queue yields to other processes: after a burst of its own turns the next caller waits
// until the others had as many, see [Yield]. The lock is transferred inside the process only
// while all contenders of other processes are clients of this library.
package localqueue
