// Package engine is what a client hands to the kinds of lock: the transport, the
// watchdog, owner numbers, names, and the two things that every kind does with
// calls, which are to attempt and to settle.
//
// An [Attempt] is one call that somebody waits for. The script always runs to
// completion; only the waiting ends early, by context, command timeout or close.
// What comes of a call that was left is given to its [Ghost], so that a lock
// granted to nobody is handed back.
//
// A [Doubt] is an outcome that is not known. It is settled in the background:
// the connection on which the call was sent is fenced off where the server
// permits, and the lock is released, again and again until the server has
// answered for certain, or has answered for as long as a lease lasts.
package engine
