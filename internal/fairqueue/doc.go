// Package fairqueue is how callers wait whose place is in a queue on the server. Each has an
// owner, a place and a channel of its own; what those of one process share is the asking.
//
//	        no subscription to use again,
//	        and the lock is not contended
//	caller ───────────────────────────────▶ attempt ── granted ──────────────▶ hold
//	   │                                     ▲    │ refused, queued             ▲
//	   │ get a subscription from the pool,   │    ▼                             │
//	   └─ or make one: then the attempt ─────┘  place in the group ── granted ──┘
//	      needs no second one                     │   │  ▲
//	                                    gave up   │   └──┘ asks when its message comes, when the
//	                                              ▼        first of the group or a heartbeat
//	                                          dequeuer     calls it, or as the first, in time
//
// A [Group] has the waiters of one process for one lock. Its first asks Redis now and then, for
// all, and calls the one whose turn has come. While there are any, heartbeats keep their
// places on the server, tell dead waiters from live ones (package liveness), evict the dead
// ones in front, and nudge a head that sleeps before a free lock.
//
// The dequeuer takes owners that gave up, or whose attempts are in doubt, out of their queues,
// many by one call. The pool keeps an owner and its subscription for a second after the wait,
// for the next caller.
package fairqueue
