// Package engine runs calls: it is what a client hands to the packages of locks, and knows no
// kind of lock and no strategy of waiting.
//
// An [Attempt] is one call whose caller waits for the reply. The script always runs to
// completion; only the waiting ends early, by context, command timeout or close:
//
//	        started          reply
//	caller ─────────▶ awaited ────▶ the caller has the outcome
//	                     │
//	                     │ ctx, timeout, close: the caller has an error that wraps ErrUncertain
//	                     ▼
//	                    left ──── reply ────▶ Late of its [Resolver]
//	                     │
//	                     └── connection lost ─▶ InDoubt of its Resolver
//
// An [InDoubt] is a call that may have run. It is resolved in the background: the connection
// on which it was sent is fenced off where the server permits, and what the call may have done
// is undone, again and again until the server has answered for certain, or has answered for as
// long as a lease lasts.
//
// Packages above keep their state of a client in a [Slot]. [Lifecycle] is the client's end.
package engine
