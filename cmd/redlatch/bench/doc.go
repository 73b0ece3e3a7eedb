// Package bench is the command redlatch bench: it measures in a few seconds how fast locks
// are on a server.
//
//	round trips ─▶ pairs, by one caller ─▶ pairs, by 64 ─▶ hand-overs ─▶ wake-ups
//
// Each part but the first has a quarter of the time. A pair is a lock that is taken and
// freed, by callers that do not contend. A hand-over is a lock that goes from one client to
// another while several callers of both want it. A wake-up is the time from the beginning
// of an unlock until a waiter of another client has the lock, which is held for long enough
// before that the waiter is asleep.
//
// The callers are goroutines of this process, which competes for the machine with a server
// on the same one. The goroutines of a part end with it, and every lock is unlocked; a
// bench that is killed leaves locks for one lease.
package bench
