// Package hold is what becomes of a lock that was granted: who owns it on the server, for how
// long, and how it is given up. It knows no kind of lock and no strategy of waiting.
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
// A [Kind] is what is asked of the server. What only some kinds can do is an interface of its
// own, which a kind has or has not.
package hold
