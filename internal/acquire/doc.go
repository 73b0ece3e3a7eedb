// Package acquire is the loop in which a caller waits for a lock. It is written once and
// knows no kind of lock and no strategy of waiting by name.
//
//	           Enter                 granted
//	caller ───────────▶ attempt ──────────────────────▶ Granted, and the replicas have it
//	  │                  ▲   │ refused                    │ no
//	  │ gave up          │   ▼                            ▼
//	  ▼           listen │  sleep ── gave up, closed ──▶ Leave
//	Leave                └───┘ a message, the strategy's wake-up, or the time that was
//	                           agreed on with the strategy
//
// A [Waitable] says what an attempt asks of the server. A [Strategy] says how the callers of
// one process wait: which of them asks, and what wakes them. A [Claim] is what a granted
// attempt becomes, and takes care of one whose outcome is not known. The loop listens before
// it asks again, so that a release after the attempt is heard. It counts waiters, bounds the
// wait, and ends it when the client closes.
package acquire
