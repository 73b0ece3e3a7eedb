// Package hold is what becomes of a lock that was granted: which owner has it on the
// server, for how long, and how it is given up. It knows no kind of lock and no strategy of
// waiting.
//
// A [Hold] begins as the claim of an attempt (acquire.Claim), or re-enters the hold that a
// context proves:
//
//	claim ──Grant──▶ live ──Unlock──▶ released, or transferred to the next caller of the process
//	  │               │ ──LetExpire──▶ left to its lease
//	  │               │ ──HandOver───▶ handed over
//	  │               │ ──lease over, or the server forgot it──▶ lost
//	  │               └ ──maximum────▶ left to its lease, or to Unlock
//	  │ refused, gave up
//	  ├────────────▶ dropped
//	  │ no reply
//	  └────────────▶ in doubt: Late or InDoubt gives back what the attempt acquired
//
// The holds of one owner are an ownership: the server's count is their number. One change of
// that count travels to the server at a time, and says where to arrive, so that it may run late
// or twice. The last hold that is given up frees the lock.
//
// # Inner holds
//
// A hold has a slot for one inner hold, so that two callers with its proof exclude each other.
// The code that has the hold itself is not excluded:
//
//	            Reenter                      granted
//	free ──────────────────────▶ entering ─────────────▶ entered
//	 ▲                            │   │ no reply           │ given up, or lost; at its maximum
//	 │ refused, gave up, not sent │   ▼                    │ when the lease it had then is over
//	 ├────────────────────────────┘  in doubt              │
//	 │                                │ resolved           │
//	 └────────────────────────────────┴────────────────────┘
//
// A caller that finds the slot taken waits in this process, in order, and sends nothing. A slot
// that becomes free goes to the first that waits. What ends the wait without the slot: the
// caller's context, Close and Shutdown, and the end of the outer hold:
//
//	outer hold lost, closed, or at its maximum ──▶ the error that its proof gives
//	outer hold unlocked or handed over ──────────▶ if the context has not ended with it, the
//	                                               next hold that the context proves is
//	                                               entered; without one, the lock is acquired
//
// An inner hold outlives its outer one. When a hold that has an inner one is given up, the
// inner one takes its place: it has the slot of the next hold further out, if there is one. So
// the holds of a slot, and those inside them, are a chain. Each hold of an owner that others may
// use, such as a resumed one, begins a chain of its own. The re-entry of such an owner is never
// resolved, since its count may be another user's: its slot is free at once.
//
// A [Kind] is what is asked of the server. What only some kinds can do is an interface of its
// own, which a kind has or has not.
package hold
